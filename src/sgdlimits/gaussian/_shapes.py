"""Shape checks for arrays that may be traced by JAX: they look at shapes, never at values."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits import _checks


def square(name: str, value: ArrayLike, size: int | None = None) -> Float[Array, "..."]:
    """Return ``value`` as an array whose last two axes are equal (to ``size`` if it is given)."""
    result = jnp.asarray(value)
    shape = result.shape[-2:]
    letter = "n" if size is None else str(size)
    if len(shape) != 2 or shape[0] != shape[1] or size not in (None, shape[0]):
        raise _checks.InputError(
            f"{name} has shape {result.shape}, which is not allowed: "
            f"{name} must have shape (..., {letter}, {letter})"
        )
    return result

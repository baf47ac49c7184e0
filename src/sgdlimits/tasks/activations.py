"""The activations that tasks know by name, and where they have kinks."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Activation, Word
from sgdlimits.tasks.callables import reason

KINKS = ("none", "zero", "anywhere")  # where a loss is not analytic in its fields


class NamedActivation(NamedTuple):
    """An elementwise function, its name, whether Gauss-Hermite quadrature may be trusted.

    ``exact`` says that Gaussian averages are known in closed form, ``paired`` that those of two
    units' product are. The name does not: a caller's function may be called erf too.
    """

    name: str
    function: Activation
    kinks: str
    exact: bool = False
    paired: bool = False

    @property
    def argument(self) -> str | Activation:
        """What ``resolve`` makes this from: its name if that is known, else the function."""
        return self.name if _KNOWN.get(self.name) == self else self.function


def _erf(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return jax.scipy.special.erf(x / math.sqrt(2))


_KNOWN = {
    "erf": NamedActivation("erf", _erf, kinks="none", exact=True, paired=True),
    "relu": NamedActivation("relu", jax.nn.relu, kinks="zero", paired=True),
    "square": NamedActivation("square", jnp.square, kinks="none", exact=True, paired=True),
    "tanh": NamedActivation("tanh", jnp.tanh, kinks="none"),
}


def resolve(parameter: str, activation: Word | Activation) -> NamedActivation:
    """Look an activation up by name, or wrap a callable (which may have kinks anywhere).

    >>> resolve("activation", "relu").kinks
    'zero'
    """
    if isinstance(activation, str) and activation in _KNOWN:
        return _KNOWN[activation]
    if callable(activation):
        _check_elementwise(parameter, activation)
        name = getattr(activation, "__name__", type(activation).__name__)
        return NamedActivation(name, activation, kinks="anywhere")
    raise _checks.InputError(
        f"{parameter}={activation!r} is not allowed: "
        f"{parameter} must be one of {', '.join(map(repr, _KNOWN))} or a callable"
    )


def _check_elementwise(parameter: str, function: Any) -> None:
    problem = f"{parameter}={function!r} is not allowed: "
    wanted = f"{parameter} must be a JAX function that acts elementwise"
    with jax.enable_x64(True):
        try:
            # not the function itself: JAX cannot trace what has no weak references, as np.tanh
            output = jax.eval_shape(lambda x: function(x), jax.ShapeDtypeStruct((3,), jnp.float64))
        except Exception as error:  # whatever the caller's function raises
            raise _checks.InputError(
                f"{problem}it fails on an array of shape (3,), {reason(error)}; {wanted}"
            ) from error
    shape = getattr(output, "shape", None)
    if shape != (3,):
        described = f"a {type(output).__name__}" if shape is None else f"shape {shape}"
        raise _checks.InputError(f"{problem}it maps shape (3,) to {described}, {wanted}")
    if not jnp.issubdtype(output.dtype, jnp.floating):
        raise _checks.InputError(
            f"{problem}it returns {output.dtype}, {wanted} and returns real numbers"
        )


def roughest(*activations: NamedActivation) -> str:
    """The kinks of a loss made of these activations."""
    return max((activation.kinks for activation in activations), key=KINKS.index)

"""Gauss–Newton steps of least norm: one way to solve v(x) = 0, however many solutions there are."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

FLAT_SQUARE = 1e-13  # squared singular values below this, relative to all, are not inverted
TINY = 1e-280
SHARES = 6  # of a step that are tried, each a quarter of the one before


def least_norm_step(slope: Float[Array, "m n"], value: Float[Array, " m"]) -> Float[Array, " n"]:
    """The shortest step with slope · step = −value: −Jᵀ(JJᵀ)⁻¹v.

    Directions along which J is flat are left alone: next to a ring of solutions the step leads onto
    it, wherever it is closest, and not along it. Entries of J that are not finite count as zero.
    A Cholesky factor of JJᵀ, slightly regularised, is 50 times faster than an SVD.
    """
    slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
    square = slope @ slope.T
    square += FLAT_SQUARE * jnp.trace(square) * jnp.eye(len(value)) + TINY
    return -slope.T @ jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(square), True), value)


def least_norm(slope: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The same for NumPy arrays.

    >>> least_norm(np.array([[3.0, 4.0]]), np.array([25.0])).round(6)
    array([-3., -4.])
    """
    square = slope @ slope.T
    square += (FLAT_SQUARE * np.trace(square) + TINY) * np.eye(len(value))
    return -slope.T @ np.linalg.solve(square, value)


def damped(
    function: Callable[[Float[Array, " n"]], Float[Array, " m"]],
    x: Float[Array, " n"],
    step: Float[Array, " n"],
) -> Float[Array, " n"]:
    """X + step if that halves ‖v‖, else that part of it at which ‖v‖ is least, if only zero.

    Most steps are good as they are: the others are tried one by one.
    """
    now = jnp.linalg.norm(function(x))

    def unsettled(tried: tuple[Array, Array, Array]) -> Array:
        number, _, least = tried
        return (number < SHARES) & ~(least <= now / 2)

    def another(tried: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, best, least = tried
        share = 0.25**number
        size = jnp.linalg.norm(function(x + share * step))
        better = size < least  # not if it is nan
        return number + 1, jnp.where(better, share, best), jnp.where(better, size, least)

    none = (jnp.asarray(0), jnp.asarray(0.0), now)
    _, share, _ = jax.lax.while_loop(unsettled, another, none)
    return jnp.where(share > 0, x + share * step, x)

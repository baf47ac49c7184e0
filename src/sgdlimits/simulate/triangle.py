r"""The square root of R moves on by plane rotations when its rows gain a rank-one term: O(K²).

A step of SGD takes C with CCᵀ = R to B = [aC, 0] − κ g uᵀ with u = (η, ρ), which has one column
more. Rotations of two columns leave BBᵀ as it is. :func:`gather` turns every column of [C, 0] with
the last one, from right to left, until u is (0, …, 0, ‖u‖); this does not depend on g, and adds up
Cη, of which the fields are made. Then g enters the last column alone, and :func:`absorb` turns that
one into the others, from left to right, until it vanishes. C stays lower triangular: 2K rotations.

R is never formed: each row keeps its relative accuracy as R vanishes, and C may be singular.

A triangle is kept as panels, blocks of neighbouring columns without the rows above their first
diagonal entry: arrays (columns, rows, runs).
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._precision import staged
from sgdlimits._types import Index
from sgdlimits.simulate.kernel import computed_once, products_of_rows

WRITTEN_OUT = 6  # up to this width each column is a panel
PANEL = 16  # columns of a panel beyond it: the loop over them is compiled once for each panel

Column = Float[Array, "_ runs"]
Panel = Float[Array, "_ _ runs"]  # columns, rows, runs
Triangle = tuple[Panel, ...]


def triangle_of(C: Float[np.ndarray, "K K runs"]) -> Triangle:
    """From an array of rows."""
    K = len(C)
    size = 1 if K <= WRITTEN_OUT else PANEL
    return tuple(staged(np.swapaxes(C[i:, i : i + size], 0, 1)) for i in range(0, K, size))


def gram(triangle: Triangle) -> Float[Array, "runs K K"]:
    """R = CCᵀ."""
    K = triangle[0].shape[1]
    C = jnp.concatenate([_padded(panel, K) for panel in triangle])
    rows = jnp.swapaxes(C, 0, 1)
    return products_of_rows(rows, rows)


def squared_norms(triangle: Triangle) -> Float[Array, "K runs"]:
    """The diagonal of R."""
    K = triangle[0].shape[1]
    parts = [_padded(jnp.sum(panel**2, axis=0), K) for panel in triangle]
    return functools.reduce(jnp.add, parts)


def divided(triangle: Triangle, norms: Float[Array, "K runs"]) -> Triangle:
    """Each row divided by a number."""
    return tuple(panel / norms[-panel.shape[1] :] for panel in triangle)


def gather(
    triangle: Triangle, eta: Float[Array, "K runs"], rho: Float[Array, " runs"]
) -> tuple[Triangle, Float[Array, "K runs"], Float[Array, " runs"]]:
    """[C, 0] turned so that (η, ρ) becomes (0, …, 0, τ): all columns but the last, Cη, and τ.

    The last column is Cη/τ.
    """

    def turn(carry: tuple[Column, Array], given: tuple[Column, Array]) -> tuple[Any, Column]:
        (total, length), (column, along) = carry, given
        squared = length**2 + along**2
        inverse = jnp.where(squared > 0, jax.lax.rsqrt(squared), 0.0)
        cos = jnp.where(squared > 0, length * inverse, 1.0)
        # of the sum so far: the last column is total/length, and zero where the length is
        share = jnp.where(length > 0, along * inverse / length, 0.0)
        turned = cos * column - share * total
        return (total + along * column, squared * inverse), turned

    K, turned = len(eta), []
    total, tau = jnp.zeros_like(eta[:0]), rho
    for panel in triangle[::-1]:
        columns, rows, _ = panel.shape
        start, along = (_padded(total, rows), tau), eta[K - rows : K - rows + columns]
        (total, tau), moved = _sweep(turn, start, panel, along, reverse=True)
        turned.append(moved)
    return tuple(turned[::-1]), total, tau


def absorb(triangle: Triangle, keep: Float[Array, ""], extra: Float[Array, "K runs"]) -> Triangle:
    """C' with C'C'ᵀ = a²CCᵀ + xxᵀ for a = ``keep`` and the column x = ``extra``.

    What overflows becomes nan.
    """

    def turn(extra: Column, given: tuple[Column, Index]) -> tuple[Column, Column]:
        column, number = keep * given[0], given[1]
        diagonal, beside = column[number], extra[number]
        squared = diagonal**2 + beside**2
        inverse = jnp.where(squared < jnp.inf, jax.lax.rsqrt(squared), jnp.nan)
        cos = jnp.where(squared == 0, 1.0, diagonal * inverse)
        sin = jnp.where(squared == 0, 0.0, beside * inverse)
        return cos * extra - sin * column, cos * column + sin * extra

    turned = []
    for panel in triangle:
        extra, moved = _sweep(turn, extra[-panel.shape[1] :], panel, np.arange(len(panel)))
        turned.append(moved)
    return tuple(turned)


def _padded(block: Float[Array, "... rows runs"], K: int) -> Float[Array, "... K runs"]:
    """With rows of zeros above."""
    above = [(0, 0)] * (block.ndim - 2) + [(K - block.shape[-2], 0), (0, 0)]
    return jnp.pad(block, above)


def _sweep(
    turn: Callable[[Any, Any], tuple[Any, Column]],
    carry: Any,
    panel: Panel,
    beside: Any,
    *,
    reverse: bool = False,
) -> tuple[Any, Panel]:
    """``lax.scan`` over the columns of a panel and what belongs to them."""
    if len(panel) > 1:
        return jax.lax.scan(turn, carry, (panel, beside), reverse=reverse)
    carry, column = computed_once(turn)(carry, (panel[0], beside[0]))
    return carry, column[None]

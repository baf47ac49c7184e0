"""Gauss rules for a normal variable above a threshold: exact for polynomials, smooth in it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64, Int
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from sgdlimits import _checks
from sgdlimits._types import WholeNumber

REACH = 9.0  # thresholds below −9 cut nothing off; above 9 nothing is left
CELLS = 1152  # of the table
PIECES, FINE = 24, 24  # the rule that stands for the integral while tables are made
TOGETHER = 8  # orders whose recursion is made at once
TAIL = 40.0  # exponents below −40 are nothing


@functools.cache
def truncated_table(order: WholeNumber, least: WholeNumber = 0) -> Float64[np.ndarray, "2 c 4 n"]:
    """What ``truncated`` interpolates: a cubic for each node and weight in each cell of thresholds.

    Args:
        order: nodes of the rule.
        least: how many to pad it to, with copies of the last one that have no weight.
    """
    order = _checks.integer("order", order, least=1)
    nodes, weights = _gauss(order)
    index = np.minimum(np.arange(max(order, least)), order - 1)
    real = np.arange(len(index)) < order
    weights = ndtr(-_grid())[:, None] * weights[:, index]
    values = np.stack([nodes[:, index], np.where(real, weights, 0.0)], axis=1)
    return np.moveaxis(CubicSpline(_grid(), values).c, (2, 1), (0, 1))


@functools.cache
def truncated_tables(most: int) -> Float64[np.ndarray, "rows 8"]:
    """All rules up to an order, for ``chosen_node``: the two cubics of a node in each row."""
    nodes = [
        np.moveaxis(truncated_table(order)[..., k], 1, 0).reshape(CELLS, 8)
        for order in range(1, most + 1)
        for k in range(order)
    ]
    return np.stack(nodes, axis=1).reshape(-1, 8)


def column_of(order: int, k: int) -> int:
    """Where ``truncated_tables`` have node k of the rule of this order."""
    return order * (order - 1) // 2 + k


def truncated(
    threshold: Float[Array, "*batch"], table: Float[Array, "2 c 4 n"]
) -> tuple[Float[Array, "*batch n"], Float[Array, "*batch n"]]:
    """Nodes and weights for a standard normal variable above the threshold.

    The weights sum to the probability of that. Polynomials of degree 2n − 1 are integrated exactly,
    but for 1e-9 of interpolation.

    Args:
        threshold: any number.
        table: ``truncated_table`` of an order.

    >>> with jax.enable_x64(True):
    ...     x, weights = truncated(jnp.asarray(0.0), jnp.asarray(truncated_table(3)))
    ...     mean = float(weights @ x)
    >>> round(mean, 8)  # 1/√(2π)
    0.39894228
    """
    cell, rest, beyond = _cell(threshold)
    rest = rest[..., None]

    def interpolated(cubics: Float[Array, "c 4 n"]) -> Float[Array, "*batch n"]:
        # rows of a flat table: much faster than gathering from all of its axes
        rows = jnp.take(cubics.reshape(CELLS, -1), cell, axis=0, mode="clip")
        rows = rows.reshape(*cell.shape, *cubics.shape[1:])
        a, b, c, d = (rows[..., k, :] for k in range(4))
        return ((a * rest + b) * rest + c) * rest + d

    return interpolated(table[0]) + beyond[..., None], interpolated(table[1])


def chosen_node(
    threshold: Float[Array, "*batch"],
    column: Int[Array, "*batch"],
    tables: Float[Array, "rows 8"],
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """One node of one of the rules above each threshold, and its weight.

    Args:
        threshold: any number.
        column: which node of which rule, see ``column_of``.
        tables: ``truncated_tables``.
    """
    cell, rest, beyond = _cell(threshold)
    rows = jnp.take(tables, cell * (len(tables) // CELLS) + column, axis=0, mode="clip")
    a, b, c, d, *weight = (rows[..., k] for k in range(8))
    node = ((a * rest + b) * rest + c) * rest + d
    a, b, c, d = weight
    return node + beyond, ((a * rest + b) * rest + c) * rest + d


def _cell(threshold: Float[Array, "*batch"]) -> tuple[Array, Array, Array]:
    """The cell of the table that a threshold is in, how far, and how far beyond the last one."""
    inside = jnp.clip(threshold, -REACH, REACH)
    place = (inside + REACH) * (CELLS / (2 * REACH))
    cell = jnp.clip(jax.lax.stop_gradient(place).astype(int), 0, CELLS - 1)
    return cell, (place - cell) * (2 * REACH / CELLS), jnp.maximum(threshold - REACH, 0.0)


def _gauss(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights (thresholds, order) from the recursion, by Golub and Welsch."""
    diagonal, beside = (x[:, :order] for x in _recursion(TOGETHER * -(-order // TOGETHER)))
    matrix = np.zeros((len(diagonal), order, order))
    rows = np.arange(order)
    matrix[:, rows, rows] = diagonal
    matrix[:, rows[1:], rows[:-1]] = matrix[:, rows[:-1], rows[1:]] = beside[:, 1:]
    nodes, vectors = np.linalg.eigh(matrix)
    return nodes, vectors[:, 0] ** 2


@functools.cache
def _recursion(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Of the orthogonal polynomials above every threshold of the table, by Stieltjes."""
    x, weights = _fine(_grid())
    diagonal, beside = np.zeros((2, len(x), order))
    before, now = np.zeros_like(x), np.ones_like(x)
    for k in range(order):
        size = np.sqrt(np.sum(weights * now**2, axis=1, keepdims=True))
        beside[:, k] = size[:, 0]
        now = now / size
        diagonal[:, k] = np.sum(weights * x * now**2, axis=1)
        before, now = now, (x - diagonal[:, k, None]) * now - (k > 0) * size * before
    return diagonal, beside


def _grid() -> np.ndarray:
    return np.linspace(-REACH, REACH, CELLS + 1)


def _fine(thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Many nodes x above each threshold, with weights that sum to one."""
    share, weights = np.polynomial.legendre.leggauss(FINE)
    start = np.maximum(thresholds, -REACH)
    # where x²/2 has grown by 40 since the place of the largest density
    high = np.maximum(start, 0.0)
    end = np.sqrt(high**2 + 2 * TAIL)
    edges = start[:, None] + (end - start)[:, None] * np.linspace(0, 1, PIECES + 1)
    middle, half = (edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges, axis=1) / 2
    x = (middle[..., None] + half[..., None] * share).reshape(len(thresholds), -1)
    size = (half[..., None] * weights).reshape(x.shape)
    size = size * np.exp((high[:, None] ** 2 - x**2) / 2)
    return x, size / size.sum(axis=1, keepdims=True)

"""Which fields an orthant rule takes together, in which order, and with how many nodes.

Nearly dependent fields with kinks are taken in pairs, fields without kinks last.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import gaussian
from sgdlimits._types import Index

Orders = tuple[tuple[int, ...], ...]  # of each block: three for a pair, one for a field alone

PAIRED = 0.7  # correlation beyond which two fields are taken together
OPEN = 0.3  # at least this part of a field's deviation must be left for it to be in a pair
LITTLE = 0.1  # part of a field's deviation for which few nodes are enough
BETWEEN = 3  # at least so many nodes between the kinks of a pair
STEEP = 6  # power of the correlation by which large fields are preferred to others as dependent
BIAS = 1e-3  # in favour of later fields: what is equal by symmetry must not hang on rounding
TINY = 1e-30


class Arrangement(NamedTuple):
    """Fields in the order in which they are taken, pairs first.

    Attributes:
        order: of the fields.
        left: the part of each one's deviation that is left given all before it, in that order.
        alike: the correlation of each pair given all before it.
    """

    order: Int[Array | np.ndarray, " m"]
    left: Float[Array | np.ndarray, " m"]
    alike: Float[Array | np.ndarray, " pairs"]


def arrangement(
    made_of: Float[Array | np.ndarray, "m n"], pairs: int, whole: Sequence[int]
) -> Arrangement:
    """Greedily: large and dependent pairs first, given all before them, then single fields.

    Args:
        made_of: fields are these combinations of independent normals. Of NumPy arrays, the answer
            is in NumPy, with nothing to compile.
        pairs: how many.
        whole: fields without kinks; they come last.
    """
    m, xp = len(made_of), made_of.__array_namespace__()
    covariance = made_of @ made_of.T
    own = xp.diag(covariance) + TINY
    bias = 1 + BIAS * xp.arange(m) / m
    split = np.isin(np.arange(m), whole, invert=True)
    rest, free = covariance, xp.ones(m, dtype=bool)
    order, left, alike = [], [], []

    def take(chosen: Index | np.integer[Any]) -> tuple[Any, Any]:
        """What is left of the covariance, and of the fields."""
        order.append(chosen)
        now = xp.maximum(rest[chosen, chosen], 0.0)
        left.append(xp.sqrt(now / own[chosen]))
        lost = xp.outer(rest[:, chosen], rest[chosen]) / xp.maximum(now, TINY)
        return rest - lost, free & (xp.arange(m) != chosen)

    for _ in range(pairs):
        now = free & split & ~xp.eye(m, dtype=bool)
        scale = xp.sqrt(xp.maximum(xp.diag(rest), TINY))
        alikeness = xp.abs(rest) / xp.outer(scale, scale)
        score = xp.abs(rest) * alikeness**STEEP * xp.outer(bias, bias)
        first, second = xp.divmod(xp.argmax(xp.where(now & now.T, score, -1.0)), m)
        alike.append(alikeness[first, second])
        rest, free = take(first)
        rest, free = take(second)
    for number in range(2 * pairs, m):
        now = free & split if number < split.sum() else free
        score = xp.where(now, xp.diag(rest) ** 2 / own * bias, -1.0)
        rest, free = take(xp.argmax(score))
    return Arrangement(xp.stack(order), xp.stack(left), xp.asarray(alike))


def pairs_needed(all_paired: Arrangement) -> int:
    """How many of the pairs are nearly dependent, and not nearly fixed by those before them."""
    alike, left = np.asarray(all_paired.alike), np.asarray(all_paired.left)
    for number, correlation in enumerate(alike):
        # the second of a pair hangs on the first: what counts is what is left for the first
        if correlation < PAIRED or left[2 * number] < OPEN:
            return number
    return len(alike)


def block_orders(level: int, pairs: int, left: Sequence[float], whole: int) -> Orders:
    """Of pairs and of fields alone, with more nodes where there is more to average over."""

    def alone(part: float, most: int) -> int:
        # not one node: a rule of lower order would be the same, and its error not be seen
        return max(2, math.ceil(most / 2)) if part < LITTLE else most

    singles = len(left) - 2 * pairs - whole
    many = [*([level] * singles), *([level + 3] * whole)]
    pair = (level, level + 1, max(BETWEEN, level - 1))
    rest = zip(left[2 * pairs :], many, strict=True)
    return (*(pair for _ in range(pairs)), *((alone(part, most),) for part, most in rest))


def block_count(orders: Orders, whole: int) -> int:
    """How many nodes there are."""
    alone = [1 if len(orders) - number <= whole else 2 for number in range(len(orders))]
    return math.prod(
        2 * block[0] * (2 * block[1] + block[2]) if len(block) == 3 else sides * block[0]
        for block, sides in zip(orders, alone, strict=True)
    )


def blocks_of(orders: Orders, whole: int, *, lower: bool = False) -> list[gaussian.Block]:
    """Rules of these orders, the last ``whole`` for fields without kinks.

    Args:
        orders: of each block.
        whole: number of blocks that are not split.
        lower: whether orders are lower than that.
    """

    def fewer(order: int) -> int:
        return max(1, order - lower * max(1, order // 3))

    result: list[gaussian.Block] = []
    for number, block in enumerate(orders):
        less = [fewer(order) for order in block]
        if len(block) == 3:
            result.append(gaussian.Pair(*less))
        elif len(orders) - number <= whole:
            result.append(gaussian.Whole(*less))
        else:
            result.append(gaussian.Split(*less))
    return result


def shuffled(orders: Orders, whole: int, rng: np.random.Generator) -> np.ndarray:
    """A permutation of the fields that only exchanges blocks of the same kind and orders."""
    start = np.cumsum([0, *(2 if len(block) == 3 else 1 for block in orders)])
    kinds = [(block, len(orders) - number <= whole) for number, block in enumerate(orders)]
    turned = np.arange(len(orders))
    for kind in dict.fromkeys(kinds):
        alike = np.flatnonzero([other == kind for other in kinds])
        turned[alike] = rng.permutation(alike)
    return np.concatenate([np.arange(start[k], start[k + 1]) for k in turned])

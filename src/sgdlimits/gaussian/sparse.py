"""Sparse grids: expectations of smooth functions of many Gaussian variables (GG98)."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import WholeNumber
from sgdlimits.gaussian.quadrature import Rule, hermite_line

Levels = tuple[int, ...]

SAME = 12  # decimals in which nodes that are the same agree


def sparse_grid(levels: Sequence[WholeNumber]) -> Rule:
    r"""Smolyak's combination of products of small Gauss–Hermite rules.

    Of the products with order 2kᵢ + 1 along direction i, those with Σ kᵢ/levels[i] ≤ 1 are combined
    such that all polynomials are exact for which one of them is. With one level L everywhere that
    is a total degree of at least 2L + 1. Weights have both signs.

    Args:
        levels: along each direction; 0 for one node.

    >>> rule = sparse_grid([2] * 10)
    >>> len(rule.weights)
    241
    >>> round(float(rule.weights @ (rule.nodes[:, 0] * rule.nodes[:, 7]) ** 2), 12)  # E z₀²z₇²
    1.0
    """
    most = tuple(_checks.integer("levels", level, least=0) for level in levels)
    parts = [_scaled(index, share) for index, share in _shares(most).items() if share]
    nodes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
    # + 0.0: no node is at −0
    distinct, which = np.unique(np.round(nodes, SAME) + 0.0, axis=0, return_inverse=True)
    return Rule(distinct, np.bincount(which.ravel(), weights, len(distinct)))


def sparse_count(levels: Sequence[int]) -> int:
    """How many nodes a sparse grid has at most: so many if it has more directions than levels.

    >>> sparse_count([2] * 10)
    241
    """
    unit = math.lcm(*(level for level in levels if level > 0), 1)
    counts = np.zeros(unit + 1)
    counts[0] = 1
    for level in levels:
        # two nodes ±x for each of the k new ones of order 2k + 1; all orders share zero
        own = np.zeros(unit + 1)
        own[0] = 1
        for k in range(1, level + 1):
            own[k * unit // level] = 2 * k
        counts = np.convolve(counts, own)[: unit + 1]
    return int(counts.sum())


def _shares(most: Levels) -> dict[Levels, int]:
    """With which sign, and how often, each product enters."""
    inside = set(_indices(most, 1.0))

    def share(index: Levels, first: int) -> int:
        """Σ (−1)^|z| over those index + z inside, z of zeros and ones from ``first`` on."""
        above = ((*index[:i], index[i] + 1, *index[i + 1 :]) for i in range(first, len(index)))
        return 1 - sum(
            share(other, i + 1) for i, other in enumerate(above, start=first) if other in inside
        )

    return {index: share(index, 0) for index in inside}


def _indices(most: Levels, left: float) -> Iterator[Levels]:
    """All k with Σ kᵢ/mostᵢ at most ``left``."""
    if not most:
        yield ()
        return
    top = math.floor(left * most[0] + 1e-9)
    for k in range(top + 1):
        used = k / most[0] if k else 0.0
        for rest in _indices(most[1:], left - used):
            yield (k, *rest)


def _scaled(index: Levels, share: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a product, and its weights times its share."""
    moving = [i for i, k in enumerate(index) if k]
    lines = [_line(index[i]) for i in moving]
    nodes = np.zeros((math.prod(line.shape[1] for line in lines), len(index)))
    if moving:
        nodes[:, moving] = list(itertools.product(*(line[0] for line in lines)))
    weights = np.prod(list(itertools.product(*(line[1] for line in lines))), axis=-1)
    return nodes, share * np.broadcast_to(weights, len(nodes))


@functools.cache
def _line(k: int) -> np.ndarray:
    return hermite_line(2 * k + 1)

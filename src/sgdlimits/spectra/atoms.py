"""The law of D with few atoms, and the moments of the data that go with each.

Nodes are sorted by D. At both ends, where poles and edges are, cells of the probability of one
sample are kept one by one; those between them are joined in bins.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sgdlimits.spectra.law import Law

EACH, BINS = 64, 512  # cells at both ends, and bins between them
_EPSILON = 1e-13


class Atoms(NamedTuple):
    """D without its zeros, increasing, with E[y yᵀ; D] in coordinates of F."""

    D: np.ndarray
    probabilities: np.ndarray  # their sum is P(D ≠ 0)
    moments: np.ndarray  # (atoms, f, f)

    def matrix(self, m: float, scale: float) -> np.ndarray:
        """A(m) = E[y yᵀ D / (1 + D m/scale)], scale = φλ."""
        return np.tensordot(self.D / (1 + self.D * m / scale), self.moments, axes=1)

    def slope(self, m: float, scale: float) -> np.ndarray:
        """A'(m)."""
        factor = self.D / (1 + self.D * m / scale)
        return np.tensordot(-(factor**2) / scale, self.moments, axes=1)


def atoms(law: Law, samples: int) -> Atoms:
    """The law of D as that many samples show it, at its ends: the k-th cell has its median."""
    D, chances = law.D.ravel(), law.probabilities.ravel()
    kept = np.flatnonzero(np.abs(D) > _EPSILON * np.max(np.abs(D), initial=0.0))
    if len(kept) == 0:
        f = law.means.shape[1]
        return Atoms(np.zeros(0), np.zeros(0), np.zeros((0, f, f)))
    kept = kept[np.argsort(D[kept], kind="stable")]
    values, weights = D[kept], chances[kept]
    total = float(weights.sum())
    cells = max(1, round(total * samples))
    each = min(EACH, cells // 3)
    inner = np.linspace(each, cells - each, min(BINS, cells - 2 * each) + 1)
    ends = np.concatenate([np.arange(each), inner, cells - each + 1 + np.arange(each)])
    ends *= total / cells
    levels = np.cumsum(weights) - weights / 2
    group = np.clip(np.searchsorted(ends, levels) - 1, 0, len(ends) - 2)
    sums = np.bincount(group, weights, len(ends) - 1)
    filled = np.flatnonzero(sums > 0)
    means = np.bincount(group, weights * values, len(ends) - 1)[filled] / sums[filled]
    medians = np.interp((ends[1:] + ends[:-1])[filled] / 2, levels, values)
    outer = (filled < each) | (filled >= len(ends) - 1 - each)
    number = np.full(D.size, -1)
    number[kept] = np.searchsorted(filled, group)
    found = np.where(outer, medians, means)
    return Atoms(found, sums[filled], _moments(law, number.reshape(law.D.shape), len(filled)))


def _moments(law: Law, group: np.ndarray, count: int) -> np.ndarray:
    """Σ probability · E[y yᵀ | ξ] over the nodes of each group; group −1 is none."""
    p, f = law.nodes.shape[1], law.means.shape[1]
    upper = np.triu_indices(p)
    products = law.nodes[:, upper[0]] * law.nodes[:, upper[1]]
    features = np.concatenate([np.ones((len(law.nodes), 1)), law.nodes, products], axis=1)
    squares, total = np.zeros((count, products.shape[1])), np.zeros((count, f, f))
    for mean, chances, own in zip(law.means, law.probabilities, group, strict=True):
        here = np.flatnonzero(own >= 0)
        shape = (count, len(own))
        sums = csr_array((chances[here], (own[here], here)), shape=shape) @ features
        squares += sums[:, p + 1 :]
        cross = np.multiply.outer(sums[:, 1 : p + 1] @ law.slope.T, mean)
        constant = np.outer(mean, mean) + law.rest
        total += cross + np.swapaxes(cross, 1, 2) + np.multiply.outer(sums[:, 0], constant)
    second = np.zeros((count, p, p))
    second[:, *upper] = squares
    second += np.swapaxes(np.triu(second, 1), 1, 2)
    return total + law.slope @ second @ law.slope.T

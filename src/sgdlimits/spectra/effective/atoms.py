"""The law of a block's weight D as a discrete law with few atoms, with the data's second moments.

Quadrature gives D at some ten thousand nodes; edges and outliers need many sums over its law. So
nodes are sorted by D and joined: E[f(D)] becomes a sum over a few hundred atoms, and E[f(D) y yᵀ]
one over the atoms' moments.

Where D is largest or smallest joining would be wrong: there are the poles of 1/(1 + D m/(φλ)),
which make the edges. So a law is cut into cells of probability 1/n each, for n samples. The 64
outermost cells on either side stay single atoms, at the median of D in the cell, which is about
where a matrix of n samples has its k-th largest D; the cells between them are joined in 512 bins,
at their means.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from sgdlimits.spectra.effective.law import Law

SINGLE_CELLS, BINS = 64, 512
_ZERO = 1e-13  # a D below this, relative to the largest, is zero


class Atoms(NamedTuple):
    """Values of D other than 0, increasing, with their probabilities and parts of E[y yᵀ]."""

    D: np.ndarray
    probabilities: np.ndarray  # their sum is P(D ≠ 0)
    moments: np.ndarray  # (atoms, f, f), in coordinates of F

    def matrix(self, m: float, scale: float) -> np.ndarray:
        """A(m) = E[y yᵀ D / (1 + D m/scale)], for scale = φλ."""
        return np.tensordot(self.D / (1 + self.D * m / scale), self.moments, axes=1)

    def slope(self, m: float, scale: float) -> np.ndarray:
        """A'(m)."""
        factor = self.D / (1 + self.D * m / scale)
        return np.tensordot(-(factor**2) / scale, self.moments, axes=1)


def atoms(law: Law, weights: np.ndarray, samples: int) -> Atoms:
    """Join the nodes of a law into atoms.

    Args:
        law: nodes with their probabilities.
        weights: D at every node, (components, nodes).
        samples: n, the number of samples whose outermost D are kept apart.
    """
    D, chances = weights.ravel(), law.probabilities.ravel()
    kept = np.flatnonzero(np.abs(D) > _ZERO * np.max(np.abs(D), initial=0.0))
    if len(kept) == 0:
        f = law.means.shape[1]
        return Atoms(np.zeros(0), np.zeros(0), np.zeros((0, f, f)))
    kept = kept[np.argsort(D[kept], kind="stable")]
    values, chances = D[kept], chances[kept]
    ends, single = _cells(float(chances.sum()), samples)
    levels = np.cumsum(chances) - chances / 2  # of every node, in the distribution function of D
    cell = np.clip(np.searchsorted(ends, levels) - 1, 0, len(ends) - 2)
    sums = np.bincount(cell, chances, len(ends) - 1)
    filled = np.flatnonzero(sums > 0)
    means = np.bincount(cell, chances * values, len(ends) - 1)[filled] / sums[filled]
    medians = np.interp((ends[1:] + ends[:-1])[filled] / 2, levels, values)
    outermost = (filled < single) | (filled >= len(ends) - 1 - single)
    atom_of_node = np.full(D.size, -1)
    atom_of_node[kept] = np.searchsorted(filled, cell)
    return Atoms(
        np.where(outermost, medians, means),
        sums[filled],
        _moments(law, atom_of_node.reshape(weights.shape), len(filled)),
    )


def _cells(total: float, samples: int) -> tuple[np.ndarray, int]:
    """Ends of the cells and bins in the distribution function, and how many cells stay single."""
    count = max(1, round(total * samples))
    single = min(SINGLE_CELLS, count // 3)
    bins = np.linspace(single, count - single, min(BINS, count - 2 * single) + 1)
    ends = np.concatenate([np.arange(single), bins, count - single + 1 + np.arange(single)])
    return ends * total / count, single


def _moments(law: Law, atom_of_node: np.ndarray, count: int) -> np.ndarray:
    """Σ probability · E[y yᵀ | ξ] over the nodes of each atom; nodes of atom −1 are left out."""
    p, f = law.nodes.shape[1], law.means.shape[1]
    upper = np.triu_indices(p)
    products = law.nodes[:, upper[0]] * law.nodes[:, upper[1]]
    features = np.concatenate([np.ones((len(law.nodes), 1)), law.nodes, products], axis=1)
    squares, total = np.zeros((count, products.shape[1])), np.zeros((count, f, f))
    for mean, chances, numbers in zip(law.means, law.probabilities, atom_of_node, strict=True):
        used = np.flatnonzero(numbers >= 0)
        shape = (count, len(numbers))
        sums = csr_array((chances[used], (numbers[used], used)), shape=shape) @ features
        squares += sums[:, p + 1 :]
        cross = np.multiply.outer(sums[:, 1 : p + 1] @ law.slope.T, mean)
        constant = np.outer(mean, mean) + law.rest
        total += cross + np.swapaxes(cross, 1, 2) + np.multiply.outer(sums[:, 0], constant)
    second = np.zeros((count, p, p))
    second[:, *upper] = squares
    second += np.swapaxes(np.triu(second, 1), 1, 2)
    return total + law.slope @ second @ law.slope.T

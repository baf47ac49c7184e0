"""The bulk of S = (1/n) Σ_l D_l y_l y_lᵀ: Stieltjes transform, edges and density.

With φ = n/d and y = z/√λ outside of F, the transform m(z) = lim tr (S − z)⁻¹/d solves

    m = 1 / (−z + E[(D/λ) / (1 + D m/(φλ))]).

Off the support m is real, and z(m) = −1/m + E[…] increases there: edges are where z'(m) = 0
(Silverstein and Choi). On the support m is complex, and the density is Im m / π.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

GRID = 128  # points at which gaps in the support are looked for
SPECK = 2e-3  # intervals with less of the mass than this are not separate ones
LEVELS = 22  # heights above the real axis, each 0.35 of the one before


class Bulk(NamedTuple):
    """Weights D/λ with their probabilities, and samples per dimension."""

    weights: np.ndarray  # increasing, without zeros
    probabilities: np.ndarray  # their sum is P(D ≠ 0)
    ratio: float

    def position(self, m: np.ndarray) -> np.ndarray:
        """z(m)."""
        factor = 1 + np.multiply.outer(m, self.weights) / self.ratio
        return np.asarray(-1 / m + (self.weights / factor) @ self.probabilities)

    def slope(self, m: np.ndarray) -> np.ndarray:
        """m² z'(m), which is positive off the support."""
        scaled = np.multiply.outer(m, self.weights)
        squares = (scaled / (1 + scaled / self.ratio)) ** 2
        return np.asarray(1 - squares @ self.probabilities / self.ratio)


def atom(bulk: Bulk) -> float:
    """The mass at zero: S has rank at most n P(D ≠ 0)."""
    return max(0.0, 1 - bulk.ratio * float(bulk.probabilities.sum()))


def edges(bulk: Bulk) -> np.ndarray:
    """Transforms m at the ends of the intervals of the continuous part, from left to right."""
    if len(bulk.weights) == 0:
        return np.zeros(0)
    outer = np.array([_lowest(bulk), _highest(bulk)])
    low, high = bulk.position(outer)
    grid = low + (high - low) * (np.arange(GRID) + 0.5) / GRID
    m = transform(bulk, grid)
    empty = np.abs(m.imag) * (high - low) < 1e-5
    found = [outer[0]]
    mass = np.cumsum(m.imag) / np.sum(m.imag)
    for first, last in _stretches(empty):
        if not SPECK < mass[first] < 1 - SPECK:  # single nodes far out, not a part of the support
            continue
        inside = m.real[(first + last) // 2]
        ends = [_critical(bulk, inside, direction) for direction in (-1, 1)]
        if all(end is not None for end in ends):
            found += [end for end in ends if end is not None]
    return np.array([*found, outer[1]])


def lone_ends(bulk: Bulk, positions: np.ndarray) -> np.ndarray:
    """Ends of the spectrum of a finite matrix, whose outermost atoms are single samples.

    A sample with a large weight w makes an eigenvalue of its own, where 1 + w m/φ = 0 with m the
    transform of all the others, if that is off their bulk.
    """
    found = positions.copy()
    for place, outermost in ((-1, bulk.weights[-1] > 0), (0, bulk.weights[0] < 0)):
        others = np.delete(np.arange(len(bulk.weights)), place)
        if not outermost or len(others) == 0:
            continue
        rest = Bulk(bulk.weights[others], bulk.probabilities[others], bulk.ratio)
        m = np.asarray(-bulk.ratio / bulk.weights[place])
        if rest.slope(m) > 0:
            found[place] = rest.position(m)
    return found


def transform(bulk: Bulk, x: np.ndarray) -> np.ndarray:
    """m(x + i0) at real points, without the atom; Newton's method from far above downwards."""
    z = np.asarray(x, dtype=complex)
    height = 4 * float(np.max(np.abs(bulk.weights))) * max(1.0, 1 / bulk.ratio)
    m = -1 / (z + 1j * height)
    for level in range(LEVELS):
        height *= 0.35
        for _ in range(2 if level < LEVELS - 1 else 8):
            point = z + 1j * height
            part = bulk.weights / (1 + np.multiply.outer(m, bulk.weights) / bulk.ratio)
            mean = part @ bulk.probabilities
            slope = -(part**2) @ bulk.probabilities / bulk.ratio
            new = m - (m * (mean - point) - 1) / (mean - point + m * slope)
            m = np.where(new.imag >= 0, new, new.conj())
    return m + atom(bulk) / (z + 1j * height)


def _highest(bulk: Bulk) -> float:
    """The edge next to z = +∞, where m comes from 0 from below."""
    largest = float(bulk.weights[-1])
    if largest <= 0:
        return _far(bulk, -1.0)
    pole = -bulk.ratio / largest
    return float(brentq(lambda m: float(bulk.slope(np.asarray(m))), pole * (1 - 1e-12), -1e-300))


def _lowest(bulk: Bulk) -> float:
    """The edge next to z = −∞, where m comes from 0 from above."""
    smallest = float(bulk.weights[0])
    if smallest >= 0:
        return _far(bulk, 1.0)
    pole = -bulk.ratio / smallest
    return float(brentq(lambda m: float(bulk.slope(np.asarray(m))), 1e-300, pole * (1 - 1e-12)))


def _far(bulk: Bulk, sign: float) -> float:
    """The edge next to zero if all weights have one sign: beyond m = ±∞ if S is singular."""
    chance = float(bulk.probabilities.sum())
    nearest = float(np.min(np.abs(bulk.weights)))

    def slope(m: float) -> float:
        return float(bulk.slope(np.asarray(sign * m)))

    far = 1e9 * bulk.ratio / nearest
    if bulk.ratio * chance > 1:
        return sign * float(brentq(slope, 1e-300, far))
    pole = -bulk.ratio / nearest * (1 + 1e-12)
    return sign * float(brentq(slope, -far, pole)) if slope(-far) > 0 else -sign * far


def _stretches(mask: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of every run of true values that has false ones on both sides."""
    jumps = np.flatnonzero(np.diff(mask.astype(int)))
    found = []
    for first, last in itertools.pairwise(jumps):
        if mask[first + 1]:
            found.append((int(first) + 1, int(last)))
    return found


def _critical(bulk: Bulk, inside: float, direction: int) -> float | None:
    """The first zero of z' from a point in a gap, on one side; None if a pole comes first."""
    here, step = inside, 0.01 * abs(inside)
    if bulk.slope(np.asarray(here)) <= 0:
        return None
    for _ in range(400):
        there = here + direction * step
        if bulk.slope(np.asarray(there)) <= 0:
            ends = sorted((here, there))
            return float(brentq(lambda m: float(bulk.slope(np.asarray(m))), *ends))
        here = there
    return None

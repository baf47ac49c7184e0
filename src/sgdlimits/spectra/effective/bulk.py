"""The bulk of S = (1/n) Σ_ℓ D_ℓ y_ℓ y_ℓᵀ: Stieltjes transform, edges and density.

With φ = n/d, samples per dimension, and y = z/√λ outside of the span F of anchors and weights, the
transform m(z) = lim tr (S − z)⁻¹/d solves

    m = 1 / (−z + E[(D/λ) / (1 + D m/(φλ))]).

Off the support m is real, and z(m) = −1/m + E[…] increases there: edges are where z'(m) = 0
(Silverstein and Choi 1995). On the support m is complex, and the density is Im m / π. For D = 1 it
is the Marchenko–Pastur law of φ samples per dimension and variance 1/λ.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

GRID = 128  # points at which gaps in the support are looked for
SPECK = 2e-3  # an interval of the support with less of the mass is made by single nodes: no gap
LEVELS = 22  # heights above the real axis, each 0.35 of the one before


class Bulk(NamedTuple):
    """What the bulk depends on: the law of D/λ, and the number of samples per dimension."""

    weights: np.ndarray  # values of D/λ, increasing, without zeros
    probabilities: np.ndarray  # their sum is P(D ≠ 0)
    ratio: float  # φ = n/d

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
    """Transforms m at the ends of the intervals of the support, from left to right.

    They are given as m, not as z(m), since outliers are looked for between them as functions of m.
    """
    if len(bulk.weights) == 0:
        return np.zeros(0)
    outer = np.array([_lowest(bulk), _highest(bulk)])
    low, high = bulk.position(outer)
    grid = low + (high - low) * (np.arange(GRID) + 0.5) / GRID
    m = transform(bulk, grid)
    empty = np.abs(m.imag) * (high - low) < 1e-5
    inner: list[float] = []
    mass = np.cumsum(m.imag) / np.sum(m.imag)
    for first, last in _stretches(empty):
        if not SPECK < mass[first] < 1 - SPECK:
            continue
        inside = m.real[(first + last) // 2]
        ends = [_critical(bulk, inside, direction) for direction in (-1, 1)]
        if all(end is not None for end in ends):
            inner += [end for end in ends if end is not None]
    return np.array([outer[0], *inner, outer[1]])


def lone_ends(bulk: Bulk, positions: np.ndarray) -> np.ndarray:
    """The edges of a finite matrix, at which the outermost atoms are single samples.

    A sample with a large weight w makes an eigenvalue of its own, at the z where 1 + w m(z)/φ = 0
    with m the transform of all the others, if that z is off their bulk.

    Args:
        bulk: whose first and last atoms stand for one sample each.
        positions: edges z of the bulk, from left to right.

    Returns:
        The edges, of which the first and the last may have moved outwards.
    """
    moved = positions.copy()
    for end, outermost in ((-1, bulk.weights[-1] > 0), (0, bulk.weights[0] < 0)):
        others = np.delete(np.arange(len(bulk.weights)), end)
        if not outermost or len(others) == 0:
            continue
        rest = Bulk(bulk.weights[others], bulk.probabilities[others], bulk.ratio)
        m = np.asarray(-bulk.ratio / bulk.weights[end])
        if rest.slope(m) > 0:
            moved[end] = rest.position(m)
    return moved


def transform(bulk: Bulk, x: np.ndarray) -> np.ndarray:
    """m(x + i0) at real points x, without the part of the atom at zero.

    Newton's method at z = x + iη, from a large η, where m ≈ −1/z, down to one that is negligible.
    """
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
    """The edge next to zero where all weights have one sign, +1 for positive ones.

    If S has full rank, m rises to it from 0 on the far side of the support; if S is singular, z = 0
    lies in between, where m passes through ∞ and comes back with the other sign.
    """
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
    jumps = np.flatnonzero(np.diff(mask.astype(int))).tolist()
    return [(left + 1, right) for left, right in itertools.pairwise(jumps) if mask[left + 1]]


def _critical(bulk: Bulk, inside: float, direction: int) -> float | None:
    """The edge of a gap: the first zero of z' from an m in it, going in one direction.

    None if there is no zero in 400 steps of a hundredth of m: a pole came first.
    """
    m, step = inside, 0.01 * abs(inside)
    if bulk.slope(np.asarray(m)) <= 0:
        return None
    for _ in range(400):
        next_m = m + direction * step
        if bulk.slope(np.asarray(next_m)) <= 0:
            return float(brentq(lambda m: float(bulk.slope(np.asarray(m))), *sorted((m, next_m))))
        m = next_m
    return None

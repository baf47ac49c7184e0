"""Outliers of S = (1/n) Σ_ℓ D_ℓ Y_ℓ Y_ℓᵀ: eigenvalues off the bulk, and where their vectors point.

Off the support of the bulk, whose transform is m(z), z is an outlier where

    det(A(m(z)) − z) = 0,    A(m) = E[y yᵀ D / (1 + D m/(φλ))],

y the coordinates of Y in the span F of anchors and weights. If w is a unit vector in the kernel of
A − z, the unit eigenvector of S has in F the part w / √(1 − wᵀ(dA/dz)w), up to sign; the rest of it
is random.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from sgdlimits.spectra.effective.atoms import Atoms
from sgdlimits.spectra.effective.bulk import Bulk

SAME = 1e-3  # quadrature splits equal outliers by less than this, relative to the spectrum


class Outlier(NamedTuple):
    """An eigenvalue off the bulk.

    ``overlaps`` are squared overlaps of its unit eigenvector with unit vectors along the anchors,
    by name; with a multiplicity other than one, squared lengths of the anchors' projections on the
    eigenspace. Empty in a readout block, whose eigenvectors are not in the space of the anchors.
    """

    value: float
    multiplicity: int
    overlaps: dict[str, float]


class Eigenpair(NamedTuple):
    """An outlier of multiplicity one, and the part in F of its unit eigenvector."""

    value: float
    vector: np.ndarray


def outlier_pairs(atoms: Atoms, bulk: Bulk, edges: np.ndarray, scale: float) -> list[Eigenpair]:
    """All outliers, increasing: to the left of the bulk, in its gaps and to the right.

    Args:
        atoms: law of D with the moments of y.
        bulk: the bulk of the same law.
        edges: transforms m at the edges of the bulk, from left to right.
        scale: φλ.
    """
    stretches = [(0.0, edges[0]), *zip(edges[1:-1:2], edges[2:-1:2], strict=True), (edges[-1], 0.0)]
    pairs: list[Eigenpair] = []
    for first, last in stretches:
        if first * last < 0 or abs(first - last) < 1e-300:  # m = ∞ lies between: the point z = 0
            continue
        pairs += _crossings(atoms, bulk, first, last, scale)
    return sorted(pairs, key=lambda pair: pair.value)


def join_equal(
    pairs: list[Eigenpair], scale: float, names: tuple[str, ...], anchors: np.ndarray
) -> list[Outlier]:
    """Make one outlier, with a multiplicity, of eigenvalues that are equal in the limit.

    By symmetry of a task several outliers may be equal; the error of the quadrature tells them
    apart by a little, always less than a thousandth of the largest of ``scale`` and the value.

    Args:
        pairs: outliers by increasing value.
        scale: size of the bulk, its largest edge in absolute value.
        names: of the anchors.
        anchors: unit vectors along the anchors, as rows in coordinates of F.
    """
    groups: list[list[Eigenpair]] = []
    for pair in pairs:
        tolerance = SAME * max(scale, abs(pair.value))
        if groups and abs(pair.value - groups[-1][-1].value) < tolerance:
            groups[-1].append(pair)
        else:
            groups.append([pair])
    outliers = []
    for group in groups:
        value = float(np.mean([pair.value for pair in group]))
        squares = np.sum([(anchors @ pair.vector) ** 2 for pair in group], axis=0)
        outliers.append(Outlier(value, len(group), dict(zip(names, squares.tolist(), strict=True))))
    return outliers


def part_in_leading(pairs: list[Eigenpair], vector: np.ndarray, rank: int) -> float:
    """|P v| / |v|, P the projector on the eigenvectors of so many leading pairs; NaN for v = 0."""
    leading = sorted(pairs, key=lambda pair: -abs(pair.value))[:rank]
    square = sum(float(vector @ pair.vector) ** 2 for pair in leading)
    size = float(vector @ vector)
    return math.sqrt(square / size) if size > 0 else math.nan


def _crossings(
    atoms: Atoms, bulk: Bulk, first: float, last: float, scale: float
) -> list[Eigenpair]:
    """Outliers in one stretch off the support, which m runs through from ``first`` to ``last``.

    They are where an eigenvalue of A(m) equals z(m). The differences of the two fall as z grows, so
    each has at most one zero, and it has one if its signs at the ends say so.
    """

    def differences(m: float) -> np.ndarray:
        return np.linalg.eigvalsh(atoms.matrix(m, scale)) - bulk.position(np.asarray(m))

    # not quite to the ends: at m = 0 z is infinite, at an edge z' = 0
    ends = first + 1e-9 * (last - first), last - 1e-9 * (last - first)
    numbers = np.flatnonzero((differences(ends[0]) > 0) & (differences(ends[1]) < 0))
    pairs = []
    for number in map(int, numbers):
        width = 1e-14 * abs(last - first)
        m = float(brentq(lambda m: float(differences(m)[number]), *ends, xtol=width, rtol=1e-13))
        w = np.linalg.eigh(atoms.matrix(m, scale))[1][:, number]
        # dA/dz = A'(m) / z'(m), and bulk.slope is m² z'(m)
        change = w @ atoms.slope(m, scale) @ w * m**2 / float(bulk.slope(np.asarray(m)))
        pairs.append(Eigenpair(float(bulk.position(np.asarray(m))), w / np.sqrt(1 - change)))
    return pairs

"""The effective spectrum: bulk and outliers of a block from the summary statistics alone.

S = (1/n) Σ_l D_l Y_l Y_lᵀ is a block of the empirical Hessian or gradient matrix (:mod:`blocks`).
As n, d → ∞ with φ = n/d, its bulk is that of :mod:`bulk`, and z off the bulk is an outlier where

    det(A(m(z)) − z) = 0,    A(m) = E[y yᵀ D / (1 + D m/(φλ))],

y the coordinates of Y in the span F of anchors and weights. Its eigenvector has the squared overlap
⟨a, w⟩² / (wᵀ(1 − dA/dz)w) with a unit vector a of F, w spanning the kernel of A − z.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, StateLike, WholeNumber, Word
from sgdlimits.spectra import bulk as bulks
from sgdlimits.spectra.atoms import Atoms, atoms
from sgdlimits.spectra.blocks import MATRICES, expected_outliers, find_block
from sgdlimits.spectra.law import block_law, readout_block
from sgdlimits.tasks import MultiIndexFamily

NODES = 2**14
SAME = 1e-3  # outliers closer than this, relative to the spectrum, are one: quadrature splits them


class Outlier(NamedTuple):
    """An eigenvalue off the bulk.

    ``overlaps`` are squared overlaps of its eigenvector with unit vectors along the anchors, by
    name; of its eigenspace if the multiplicity is not one.
    """

    value: float
    multiplicity: int
    overlaps: dict[str, float]


class EffectiveSpectrum:
    """The limiting spectrum of one block.

    Attributes:
        edges: ends of the intervals of the continuous part, increasing: low, high, low, high, …
        atom: its mass at zero.
        outliers: eigenvalues off the bulk, from the largest absolute value down.
        alignment: of the weights of a diagonal block with its leading eigenvectors, as in
            :func:`sgdlimits.spectra.track`; those in the bulk add nothing. NaN off the diagonal.
    """

    edges: np.ndarray
    atom: float
    outliers: list[Outlier]
    alignment: float

    def __init__(
        self,
        bulk: bulks.Bulk | None,
        edges: np.ndarray,
        outliers: list[Outlier],
        alignment: float,
    ):
        self._bulk = bulk
        self.edges = edges
        self.atom = 0.0 if bulk is None else bulks.atom(bulk)
        self.outliers = sorted(outliers, key=lambda outlier: -abs(outlier.value))
        self.alignment = alignment

    @double_precision
    def density(self, x: Any) -> np.ndarray:
        """Density of the continuous part; its mass is 1 − ``atom``."""
        points = _checks.array("x", x, None)
        if self._bulk is None:
            return np.zeros_like(points)
        return bulks.transform(self._bulk, points.ravel()).imag.reshape(points.shape) / np.pi

    def __repr__(self) -> str:
        values = ", ".join(f"{outlier.value:.4g}" for outlier in self.outliers)
        return f"EffectiveSpectrum(edges={self.edges.round(6).tolist()}, outliers=[{values}])"


@double_precision
def effective(
    task: Any,
    state: StateLike,
    ratio: Number,
    matrix: Word = "hessian",
    block: Any = 0,
    nodes: WholeNumber = NODES,
    dim: WholeNumber | None = None,
) -> EffectiveSpectrum:
    """Predict the spectrum of a block of the empirical Hessian or gradient matrix.

    No data are drawn, and no matrix of size dim is formed.

    Args:
        task: a multi-index task with finite precision.
        state: its summary statistics.
        ratio: samples per dimension, n/d.
        matrix: "hessian" (of the loss without its ridge) or "gradient" (second moments).
        block: such as "W0W0" or (0, 0) or 0; "W0W1"; "vv" for a trained readout.
        nodes: quadrature nodes per component.
        dim: of a finite matrix, None for the limit. Where large D are rare, as at the end of
            training, a finite matrix has not met those that make the edge of the limit: its edges
            are those of the law of D as ratio·dim samples show it, where the sample with the
            largest D may make the largest eigenvalue on its own.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.GaussianMixture(classes=2, precision=10.0)
    >>> spectrum = effective(task, {"M": np.zeros((2, 2)), "R": np.eye(2)}, ratio=4.0)
    >>> [outlier.multiplicity for outlier in spectrum.outliers]
    [2]
    """
    if not isinstance(task, MultiIndexFamily):
        raise _checks.InputError(f"task={task!r} is not allowed: task must be a multi-index task")
    if not np.isfinite(task.precision):
        raise _checks.InputError(
            "task with precision=inf is not allowed: without noise there is no bulk"
        )
    ratio = _checks.positive("ratio", ratio)
    matrix = _checks.choice("matrix", matrix, MATRICES)
    nodes = _checks.integer("nodes", nodes, least=2)
    size = None if dim is None else task.check_dim(dim)
    if size is not None:  # enough nodes to know the largest D among as many samples
        nodes = max(nodes, 4 * math.ceil(ratio * size / len(task.means)))
    checked = task.check_state(state)
    found = find_block(task, block)
    if found.i is None and found.j is not None:
        raise _checks.InputError(f"block={found.name!r} is not allowed: it is not square")
    expected = expected_outliers(task, found)
    if found.i is None:
        values, vectors = np.linalg.eigh(readout_block(task, checked, matrix, nodes))
        rho = _aligned(list(zip(values, vectors.T, strict=True)), checked["v"], expected)
        alone = [Outlier(float(x), 1, {}) for x in values]
        return EffectiveSpectrum(None, np.zeros(0), alone, rho)
    law = block_law(task, checked, matrix, found, nodes)
    found_atoms = atoms(law, law.D.size if size is None else max(1, round(ratio * size)))
    bulk = bulks.Bulk(found_atoms.D / law.precision, found_atoms.probabilities, ratio)
    m = bulks.edges(bulk)
    if len(m) == 0:  # D vanishes: so does the block
        return EffectiveSpectrum(bulk, np.zeros(0), [], math.nan)
    pairs = _pairs(found_atoms, bulk, m, ratio * law.precision)
    edges = bulk.position(m)
    if size is not None:
        edges = bulks.lone_ends(bulk, edges)
    outliers = _grouped(pairs, float(np.max(np.abs(edges))), task.anchors, law.anchors)
    own = law.rows[found.i] if found.i == found.j else None
    rho = math.nan if own is None else _aligned(pairs, own, expected)
    return EffectiveSpectrum(bulk, edges, outliers, rho)


Pair = tuple[float, np.ndarray]
"""An outlier, and the part in F of its unit eigenvector."""


def _aligned(pairs: list[Pair], own: np.ndarray, rank: int) -> float:
    leading = sorted(pairs, key=lambda pair: -abs(pair[0]))[:rank]
    square = sum(float(own @ w) ** 2 for _, w in leading)
    size = float(own @ own)
    return math.sqrt(square / size) if size > 0 else math.nan


def _pairs(law: Atoms, bulk: bulks.Bulk, m: np.ndarray, scale: float) -> list[Pair]:
    """In every stretch off the support: to the left, to the right, and in the gaps."""
    stretches = [(0.0, m[0]), *zip(m[1:-1:2], m[2:-1:2], strict=True), (m[-1], 0.0)]
    found: list[Pair] = []
    for first, last in stretches:
        if first * last < 0 or abs(first - last) < 1e-300:  # m = ∞ lies between: the point z = 0
            continue
        found += _crossings(law, bulk, first, last, scale)
    return sorted(found, key=lambda pair: pair[0])


def _grouped(
    pairs: list[Pair], scale: float, names: tuple[str, ...], anchors: np.ndarray
) -> list[Outlier]:
    """Outliers that are one, joined; ``scale`` is the size of the bulk."""
    groups: list[list[Pair]] = []
    for pair in pairs:
        if groups and abs(pair[0] - groups[-1][-1][0]) < SAME * max(scale, abs(pair[0])):
            groups[-1].append(pair)
        else:
            groups.append([pair])
    return [
        Outlier(
            float(np.mean([value for value, _ in group])),
            len(group),
            dict(
                zip(
                    names,
                    np.sum([(anchors @ w) ** 2 for _, w in group], axis=0).tolist(),
                    strict=True,
                )
            ),
        )
        for group in groups
    ]


def _crossings(law: Atoms, bulk: bulks.Bulk, first: float, last: float, scale: float) -> list[Pair]:
    """Where an eigenvalue of A(m) equals z(m): every branch of A(m) − z(m) falls with z."""

    def branches(m: float) -> np.ndarray:
        return np.linalg.eigvalsh(law.matrix(m, scale)) - bulk.position(np.asarray(m))

    # at m = 0, z = ±∞, A is finite: the signs there are known
    ends = first + 1e-9 * (last - first), last - 1e-9 * (last - first)
    numbers = np.flatnonzero((branches(ends[0]) > 0) & (branches(ends[1]) < 0))
    found = []
    for number in map(int, numbers):
        width = 1e-14 * abs(last - first)
        m = float(brentq(lambda m: float(branches(m)[number]), *ends, xtol=width, rtol=1e-13))
        w = np.linalg.eigh(law.matrix(m, scale))[1][:, number]
        # dA/dz = A'(m) / z'(m)
        change = w @ law.slope(m, scale) @ w * m**2 / float(bulk.slope(np.asarray(m)))
        found.append((float(bulk.position(np.asarray(m))), w / np.sqrt(1 - change)))
    return found

"""The effective spectrum: bulk and outliers of a block from the summary statistics alone.

A block between rows of W is S = (1/n) Σ_ℓ D_ℓ Y_ℓ Y_ℓᵀ (:mod:`sgdlimits.spectra.derivatives`). As
n, d → ∞ with φ = n/d samples per dimension, its bulk is that of :mod:`bulk` and its outliers are
those of :mod:`outliers`; they depend on the joint law of D and of Y in the span of anchors and
weights, which the summary statistics determine. This goes beyond BGHJ23, where λ → ∞.
"""

import dataclasses
import math

import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, Numbers, State, StateLike, WholeNumber, Word
from sgdlimits.spectra.blocks import (
    MATRICES,
    Block,
    BlockLike,
    find_block,
    most_outliers,
    multi_index,
)
from sgdlimits.spectra.effective import bulk as bulks
from sgdlimits.spectra.effective.atoms import atoms
from sgdlimits.spectra.effective.law import block_weights, law_at
from sgdlimits.spectra.effective.outliers import (
    Eigenpair,
    Outlier,
    join_equal,
    outlier_pairs,
    part_in_leading,
)
from sgdlimits.spectra.effective.readout import readout_spectrum
from sgdlimits.tasks import MultiIndexFamily

NODES = 2**14


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class EffectiveSpectrum:
    """The limiting spectrum of one block.

    A block between rows of W has infinitely many eigenvalues in the limit, a *bulk* with a density,
    and a few outliers off it. The readout block "vv" has K eigenvalues, no bulk, and ``outliers``
    are those beyond ``threshold``.

    Attributes:
        outliers: eigenvalues that stand out, from the largest absolute value down.
        alignment: |P w| / |w| of the weights w of a diagonal block, P the projector on the leading
            eigenvectors, as in :func:`sgdlimits.spectra.track`; eigenvectors in the bulk add
            nothing to it. NaN off the diagonal.
        edges: ends of the intervals of the bulk, increasing: low, high, low, high, …; empty in a
            readout block.
        atom: mass of the bulk at zero, the share of eigenvalues that are zero.
        eigenvalues: all K of a readout block, from the largest absolute value down; else empty.
        threshold: of a readout block, the absolute value beyond which eigenvalues are outliers:
            twice the noise, see :mod:`sgdlimits.spectra.effective.readout`; else NaN.
    """

    outliers: list[Outlier]
    alignment: float
    edges: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    atom: float = 0.0
    eigenvalues: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    threshold: float = math.nan
    _bulk: bulks.Bulk | None = None

    @double_precision
    def density(self, x: Numbers) -> np.ndarray:
        """Density of the bulk without its atom; its mass is 1 − ``atom``. Zero without a bulk."""
        points = _checks.array("x", x, None)
        if self._bulk is None:
            return np.zeros_like(points)
        return bulks.transform(self._bulk, points.ravel()).imag.reshape(points.shape) / np.pi

    @property
    def outlier_values(self) -> list[float]:
        """The outliers as numbers, each as often as its multiplicity says."""
        return [outlier.value for outlier in self.outliers for _ in range(outlier.multiplicity)]

    def __repr__(self) -> str:
        ends = [f"{end:.4g}" for end in self.edges]
        intervals = [f"[{low}, {high}]" for low, high in zip(ends[::2], ends[1::2], strict=True)]
        if len(self.eigenvalues):
            base = f"{len(self.eigenvalues)} eigenvalues, no bulk"
        else:
            base = f"bulk {' ∪ '.join(intervals)}" if intervals else "no bulk but zero"
        values = ", ".join(f"{value:.4g}" for value in self.outlier_values) or "none"
        return f"EffectiveSpectrum({base}; outliers: {values})"


@double_precision
def effective(
    task: MultiIndexFamily,
    state: StateLike,
    ratio: Number,
    matrix: Word = "hessian",
    block: BlockLike = 0,
    nodes: WholeNumber = NODES,
    dim: WholeNumber | None = None,
) -> EffectiveSpectrum:
    """Predict the spectrum of a block of the empirical Hessian or gradient matrix.

    No data are drawn, and no matrix of size dim is formed.

    Args:
        task: a multi-index task with finite precision.
        state: its summary statistics.
        ratio: φ = n/d, samples per dimension, as everywhere in ``sgdlimits.spectra``.
        matrix: "hessian" (of the loss without its ridge) or "gradient" (second moments).
        block: such as "W0W0" or (0, 0) or 0; "W0W1"; "vv" for a trained readout, whose K
            eigenvalues do not depend on ratio and dim as long as there are many more samples.
        nodes: quadrature nodes per component.
        dim: of a finite matrix, None for the limit. Where large D are rare, as at the end of
            training, a matrix of ratio · dim samples has not met those that make the edge of the
            limit. Its own edges are those of the law of D cut at what so many samples show, where
            the sample with the largest D may make the largest eigenvalue on its own.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.GaussianMixture(classes=2, precision=10.0)
    >>> spectrum = effective(task, {"M": np.zeros((2, 2)), "R": np.eye(2)}, ratio=4.0)
    >>> spectrum
    EffectiveSpectrum(bulk [0.005953, 0.05378]; outliers: 0.1503, 0.1503)
    >>> [outlier.multiplicity for outlier in spectrum.outliers]
    [2]
    """
    task = multi_index(task)
    if not np.isfinite(task.precision):
        raise _checks.InputError(
            f"task={task!r} with precision=inf is not allowed: without noise there is no bulk"
        )
    ratio = _checks.positive("ratio", ratio)
    matrix = _checks.choice("matrix", matrix, MATRICES)
    nodes = _checks.integer("nodes", nodes, least=2)
    size = None if dim is None else task.check_dim(dim)
    checked = task.check_state(state)
    chosen = find_block(task, block)
    if chosen.i is None and chosen.j is not None:
        raise _checks.InputError(
            f"block={chosen.name!r} is not allowed: it is not square, so it has no eigenvalues"
        )
    if chosen.i is None:
        return _of_readout(task, checked, matrix, nodes)
    return _of_rows(task, checked, ratio, matrix, chosen, nodes, size)


def _of_readout(task: MultiIndexFamily, state: State, matrix: str, nodes: int) -> EffectiveSpectrum:
    values, vectors, count, threshold = readout_spectrum(task, state, matrix, nodes)
    pairs = [Eigenpair(float(x), u) for x, u in zip(values, vectors.T, strict=True)]
    return EffectiveSpectrum(
        outliers=[Outlier(pair.value, 1, {}) for pair in pairs[:count]],
        alignment=part_in_leading(pairs, state["v"], most_outliers(task, Block(None, None))),
        eigenvalues=values,
        threshold=threshold,
    )


def _of_rows(
    task: MultiIndexFamily,
    state: State,
    ratio: float,
    matrix: str,
    block: Block,
    nodes: int,
    dim: int | None,
) -> EffectiveSpectrum:
    if dim is not None:  # enough nodes to know the largest D among as many samples
        nodes = max(nodes, 4 * math.ceil(ratio * dim / len(task.means)))
    law = law_at(task, state, nodes)
    D = block_weights(task, state, matrix, block, law)
    own_atoms = atoms(law, D, D.size if dim is None else max(1, round(ratio * dim)))
    bulk = bulks.Bulk(own_atoms.D / task.precision, own_atoms.probabilities, ratio)
    m = bulks.edges(bulk)
    if len(m) == 0:  # D vanishes: so does the block
        return EffectiveSpectrum(outliers=[], alignment=math.nan, atom=1.0)
    edges = bulk.position(m)
    if dim is not None:
        edges = bulks.lone_ends(bulk, edges)
    pairs = outlier_pairs(own_atoms, bulk, m, ratio * task.precision)
    outliers = join_equal(pairs, float(np.max(np.abs(edges))), task.anchors, law.anchors)
    aligned = math.nan
    if block.diagonal and block.i is not None:
        aligned = part_in_leading(pairs, law.rows[block.i], most_outliers(task, block))
    return EffectiveSpectrum(
        outliers=sorted(outliers, key=lambda outlier: -abs(outlier.value)),
        alignment=aligned,
        edges=edges,
        atom=bulks.atom(bulk),
        _bulk=bulk,
    )

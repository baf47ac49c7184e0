"""Spectra along training: eigenvalues, and how weights and eigenvectors align."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Flag, Number, Numbers, State, StateLike, WholeNumber, Word
from sgdlimits.simulate import Training, anchors
from sgdlimits.simulate.training import increasing_times
from sgdlimits.spectra.alignment import alignment, orthonormal
from sgdlimits.spectra.blocks import (
    MATRICES,
    Block,
    BlockLike,
    diagonal_blocks,
    find_block,
    most_outliers,
    multi_index,
)
from sgdlimits.spectra.empirical.matrices import Empirical
from sgdlimits.spectra.krylov import Pairs
from sgdlimits.tasks import MultiIndexFamily

EXTRA_RANKS = 2  # eigenvalues beyond the expected outliers: the top of the bulk


@double_precision
def track(
    task: MultiIndexFamily,
    dim: WholeNumber,
    samples: WholeNumber,
    times: Numbers,
    step: Number = 1.0,
    seed: WholeNumber = 0,
    data: Word = "test",
    init: StateLike | None = None,
    blocks: Sequence[BlockLike] | None = None,
    full: Flag = False,
) -> xr.Dataset:
    """Train by direct SGD, and look at diagonal blocks of both matrices on the way.

    A block of a row of W is expected to have as many outliers as there are anchors, the block "vv"
    as many as the data have components (BGHJ23, Theorems 2.3 and 2.6): E below is the space of so
    many leading eigenvectors.

    Args:
        task: a multi-index task.
        dim: the dimension d.
        samples: n, the size of the data set on which the matrices are computed.
        times: when to look, in units of dim/step samples, increasing.
        step: c in the learning rate c/dim.
        seed: of start, training and test data.
        data: "test", independent of training; or "train", the first samples that SGD steps on.
        init: the state to start from; a random one by default.
        blocks: diagonal blocks such as 0, "W0W0" or "vv"; all of them by default.
        full: whether to keep all eigenvalues of every block.

    Returns:
        A Dataset over ``time``, ``matrix`` (hessian, gradient), ``block`` and ``rank``:
        ``eigenvalues`` by decreasing absolute value; ``alignment``, |P_E w| / |w| for the block's
        own weights w, P_E the projector on E; ``overlap``, squared, of leading eigenvectors with
        each anchor (unit vectors); ``residual``, the norm of the weights of each neuron outside the
        span of the anchors divided by their norm; the statistics of the run; and ``spectrum``, all
        eigenvalues increasing, if ``full``. Where weights are zero, ``alignment`` and ``residual``
        are NaN.
    """
    task = multi_index(task)
    dim, step = task.check_dim(dim), _checks.positive("step", step)
    samples = _checks.integer("samples", samples, least=1)
    seed = _checks.integer("seed", seed, least=0)
    data = _checks.choice("data", data, ("test", "train"))
    full = _checks.flag("full", full)
    grid = increasing_times(times)
    chosen = diagonal_blocks(task) if blocks is None else _diagonal(task, blocks)
    needed = max(min(dim, len(task.anchors) + EXTRA_RANKS), task.width if task.trained else 0)
    if samples < needed:
        raise _checks.InputError(
            f"samples={samples} is not allowed: {needed} eigenvalues of a block need at least as "
            "many samples"
        )
    if data == "train" and samples > round(grid[-1] * dim / step):
        raise _checks.InputError(
            f"samples={samples} is not allowed: SGD sees only {round(grid[-1] * dim / step)} "
            f"samples until time {grid[-1]:g}"
        )
    training = Training(task, dim, step, seed, init)
    sampled = training.seen(samples) if data == "train" else training.unseen(samples)
    looks = []
    with progress(f"spectra in dim {dim}", len(grid)) as advance:
        last_vectors: dict[str, np.ndarray] = {}
        for weights in training.weights_at(grid):
            matrices = Empirical(task, sampled, weights.W, weights.v)
            looks.append(_look(matrices, chosen, last_vectors, full=full))
            advance(1)
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    names = [block.name for block in chosen]
    attrs = {"dim": dim, "samples": samples, "step": step, "seed": seed, "data": data}
    return _dataset(task, values, grid, names, attrs)


def _diagonal(task: MultiIndexFamily, blocks: Sequence[BlockLike]) -> list[Block]:
    chosen = [find_block(task, block) for block in blocks]
    if not chosen or not all(block.diagonal for block in chosen):
        raise _checks.InputError(
            f"blocks={_checks.shown(list(blocks))} is not allowed: blocks must be on the diagonal, "
            "at least one"
        )
    return chosen


def _look(
    matrices: Empirical, blocks: list[Block], last_vectors: dict[str, np.ndarray], *, full: bool
) -> State:
    """Everything that is recorded at one time.

    ``last_vectors`` holds the eigenvectors of the rows' blocks at the time before, by matrix: with
    large blocks Lanczos starts from them. They are replaced by those of this time.
    """
    task, dim = matrices.task, matrices.dim
    rows = [block for block in blocks if block.i is not None]
    r = len(task.anchors)
    count = min(dim, r + EXTRA_RANKS)
    most = max(count if rows else 0, task.width if len(rows) < len(blocks) else 0)
    A = anchors(task, dim)
    units = A / np.linalg.norm(A, axis=1, keepdims=True)
    shape = (len(MATRICES), len(blocks))
    look = {
        "eigenvalues": np.full((*shape, most), np.nan),
        "alignment": np.full(shape, np.nan),
        "overlap": np.full((*shape, most, r), np.nan),
    }
    if full:
        look["spectrum"] = np.full((*shape, dim), np.nan)
    for number, matrix in enumerate(MATRICES):
        if rows:
            of_rows = matrices.leading(matrix, rows, count, start=last_vectors.get(matrix))
            last_vectors[matrix] = of_rows.vectors
        for position, block in enumerate(blocks):
            at = (number, position)
            if block.i is None:
                pairs, own = _readout_pairs(matrices, matrix), matrices.v
            else:
                row = rows.index(block)
                pairs, own = Pairs(of_rows.values[row], of_rows.vectors[row]), matrices.W[block.i]
                look["overlap"][*at, :count] = (pairs.vectors.T @ units.T) ** 2
            rank = most_outliers(task, block)
            look["eigenvalues"][*at, : len(pairs.values)] = pairs.values
            if own is not None and np.any(own):
                look["alignment"][at] = alignment(own, pairs.vectors[:, :rank])
            if full:
                spectrum = matrices.eigenvalues(matrix, block)
                look["spectrum"][*at, : len(spectrum)] = spectrum
    return look | _statistics(matrices, A)


def _readout_pairs(matrices: Empirical, matrix: str) -> Pairs:
    """All eigenpairs of the block vv, by decreasing absolute value."""
    values, vectors = np.linalg.eigh(matrices.dense(matrix, "vv"))
    order = np.argsort(-np.abs(values))
    return Pairs(values[order], vectors[:, order])


def _statistics(matrices: Empirical, A: np.ndarray) -> State:
    """M, R and v, if it is trained; and the share of each row of W outside of the anchors' span."""
    W, v = matrices.W, matrices.v
    span = orthonormal(A.T, matrices.dim)
    outside = W - W @ span @ span.T
    norms = np.linalg.norm(W, axis=1)
    lengths = np.linalg.norm(outside, axis=1)
    residual = np.divide(lengths, norms, out=np.full(len(W), np.nan), where=norms > 0)
    state: State = {"residual": residual, "M": W @ A.T, "R": outside @ outside.T}
    return state if v is None else state | {"v": v}


def _dataset(
    task: MultiIndexFamily,
    values: State,
    times: np.ndarray,
    blocks: list[str],
    attrs: dict[str, Any],
) -> xr.Dataset:
    lead = ("time", "matrix", "block")
    dims = {
        "eigenvalues": (*lead, "rank"),
        "alignment": lead,
        "overlap": (*lead, "rank", "anchor"),
        "spectrum": (*lead, "index"),
        "residual": ("time", "neuron"),
    } | {name: ("time", *axes) for name, axes in task.layout.dims.items()}
    coords = {
        "time": times,
        "matrix": list(MATRICES),
        "block": blocks,
    } | task.layout.coords
    about = {
        "kind": "spectra",
        "task": type(task).__name__,
        "parameters": task.parameters(),
    } | attrs
    own = {name: dims[name] for name in values}
    return results.build(values, own, coords, about, **task.layout.kinds)

"""Spectra along training: eigenvalues, and how weights and eigenvectors align."""

from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, State, StateLike, WholeNumber, Word
from sgdlimits.spectra.alignment import alignment, orthonormal
from sgdlimits.spectra.blocks import MATRICES, diagonal_blocks, expected_outliers
from sgdlimits.spectra.data import Training, Weights, anchors
from sgdlimits.spectra.empirical import Empirical, at
from sgdlimits.tasks import MultiIndex

EXTRA_RANKS = 2  # eigenvalues beyond the expected outliers: the top of the bulk


@double_precision
def track(
    task: Any,
    dim: WholeNumber,
    samples: WholeNumber,
    times: Any,
    step: Number = 1.0,
    seed: WholeNumber = 0,
    data: Word = "test",
    init: StateLike | None = None,
    full: bool = False,
) -> xr.Dataset:
    """Train by direct SGD, and look at the diagonal blocks of both matrices on the way.

    Outliers are expected to be as many as anchors in a block of a row of W, and as many as
    components of the data in the block "vv": E below is the space of so many leading eigenvectors.

    Args:
        task: a multi-index task.
        dim: the dimension d.
        samples: size of the data set on which the matrices are computed.
        times: when to look, in units of dim/step samples, increasing.
        step: c in the learning rate c/dim.
        seed: of start, training and test data.
        data: "test", independent of training; or "train", the first samples that SGD steps on.
        init: the state to start from; a random one by default.
        full: whether to keep all eigenvalues of every block.

    Returns:
        A Dataset over ``time``, ``matrix`` (hessian, gradient), ``block`` and ``rank``:
        ``eigenvalues`` by decreasing absolute value; ``alignment`` of the block's own weights with
        E; ``overlap``, squared, of leading eigenvectors with each anchor (unit vectors);
        ``residual``, the norm of the block's weights outside the span of the anchors divided by
        their norm; the statistics of the run; and ``spectrum`` if ``full``.
    """
    if not isinstance(task, MultiIndex):
        raise ValueError(f"task={task!r} is not allowed: task must be a multi-index task")
    dim, step = task.check_dim(dim), _checks.positive("step", step)
    samples = _checks.integer("samples", samples, least=1)
    seed = _checks.integer("seed", seed, least=0)
    data = _checks.choice("data", data, ("test", "train"))
    grid = _times(times)
    if data == "train" and samples > round(grid[-1] * dim / step):
        raise ValueError(
            f"samples={samples} is not allowed: SGD sees only {round(grid[-1] * dim / step)} "
            f"samples until time {grid[-1]:g}"
        )
    start = task.random_state(dim, seed) if init is None else task.check_state(init)
    training = Training(task, dim, step, seed, start)
    seen = training.seen(samples) if data == "train" else training.unseen(samples)
    looks = []
    with progress(f"spectra in dim {dim}", len(grid)) as advance:
        previous: dict[str, np.ndarray] = {}
        for weights in training.weights_at(grid):
            looks.append(_look(at(task, seen, weights), weights, previous, full=full))
            advance(1)
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    return _dataset(task, values, grid, {"dim": dim, "samples": samples, "step": step}, seed, data)


def _times(times: Any) -> np.ndarray:
    grid = _checks.array("times", times, None)
    if grid.ndim != 1 or len(grid) == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise ValueError(
            f"times={_checks.shown(times)} is not allowed: times must be increasing and >= 0"
        )
    return grid


def _look(
    matrices: Empirical, weights: Weights, previous: dict[str, np.ndarray], *, full: bool
) -> State:
    """Everything that is recorded at one time."""
    task, dim = matrices.task, matrices.dim
    blocks = diagonal_blocks(task)
    rows = [block for block in blocks if block.i is not None]
    r = len(task.anchors)
    count = min(dim, r + EXTRA_RANKS)
    most = max(count, task.width if task.trained else 0)
    A = anchors(task, dim)
    units = A / np.linalg.norm(A, axis=1, keepdims=True)
    shape = (len(MATRICES), len(blocks))
    found = {
        "eigenvalues": np.full((*shape, most), np.nan),
        "alignment": np.full(shape, np.nan),
        "overlap": np.full((*shape, most, r), np.nan),
    }
    if full:
        found["spectrum"] = np.full((*shape, dim), np.nan)
    for number, matrix in enumerate(MATRICES):
        pairs = matrices.leading(matrix, rows, count, start=previous.get(matrix))
        previous[matrix] = pairs.vectors
        for place, block in enumerate(blocks):
            if block.i is None:
                values, vectors = np.linalg.eigh(matrices.dense(matrix, block))
                order = np.argsort(-np.abs(values))
                values, vectors = values[order], vectors[:, order]
                own = weights.v
                if full:
                    found["spectrum"][number, place, : len(values)] = np.sort(values)
            else:
                values, vectors = pairs.values[place], pairs.vectors[place]
                own = weights.W[block.i]
                found["overlap"][number, place, :count] = (vectors.T @ units.T) ** 2
                if full:
                    found["spectrum"][number, place] = matrices.eigenvalues(matrix, block)
            found["eigenvalues"][number, place, : len(values)] = values
            assert own is not None
            found["alignment"][number, place] = alignment(
                own, vectors[:, : expected_outliers(task, block)]
            )
    span = orthonormal(A.T, dim)
    outside = weights.W - weights.W @ span @ span.T
    found["residual"] = np.linalg.norm(outside, axis=1) / np.linalg.norm(weights.W, axis=1)
    state: State = {"M": weights.W @ A.T, "R": outside @ outside.T}
    return found | state | ({} if weights.v is None else {"v": weights.v})


def _dataset(
    task: MultiIndex,
    values: State,
    times: np.ndarray,
    sizes: dict[str, Any],
    seed: int,
    data: str,
) -> xr.Dataset:
    lead = ("time", "matrix", "block")
    dims = {
        "eigenvalues": (*lead, "rank"),
        "alignment": lead,
        "overlap": (*lead, "rank", "anchor"),
        "spectrum": (*lead, "index"),
        "residual": ("time", "neuron"),
    } | {name: ("time", *axes) for name, axes in task.dims.items()}
    coords = {
        "time": times,
        "matrix": list(MATRICES),
        "block": [block.name for block in diagonal_blocks(task)],
    } | task.labels_of_dims
    attrs = {
        "kind": "spectra",
        "task": type(task).__name__,
        "parameters": task.parameters(),
        "seed": seed,
        "data": data,
    } | sizes
    return results.build(values, {name: dims[name] for name in values}, coords, attrs)


def hidden_classes(task: MultiIndex, state: StateLike, margin: Number = 0.1) -> int:
    """How many components of the data a two-layer classifier with labels 0 and 1 discerns.

    A component counts if the network's output at its mean is on the right side by ``margin``.

    >>> import sgdlimits as sl
    >>> four = {"v": [1, 1, -1, -1.0], "M": [[1, 0], [-1, 0], [0, 1], [0, -1.0]], "R": np.eye(4)}
    >>> hidden_classes(sl.tasks.XorMixture(), four)
    4
    """
    checked = task.check_state(state)
    if "v" not in checked or task.labels is None:
        raise ValueError(f"task={task!r} is not allowed: it must be a trained two-layer classifier")
    fields = np.asarray(task.means) @ checked["M"].T
    outputs = np.maximum(fields, 0.0) @ checked["v"]
    signs = 2 * np.asarray(task.labels) - 1
    return int(np.sum(signs * outputs > _checks.nonnegative("margin", margin)))

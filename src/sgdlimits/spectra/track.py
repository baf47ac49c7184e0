"""Spectra along training: eigenvalues, and how weights and eigenvectors align."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, State, StateLike, WholeNumber, Word
from sgdlimits.spectra.alignment import alignment, orthonormal
from sgdlimits.spectra.blocks import MATRICES, Block, diagonal_blocks, expected_outliers, find_block
from sgdlimits.spectra.data import Training, anchors
from sgdlimits.spectra.empirical import Empirical, at
from sgdlimits.tasks import MultiIndexFamily

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
    blocks: Sequence[Any] | None = None,
    full: bool = False,
) -> xr.Dataset:
    """Train by direct SGD, and look at diagonal blocks of both matrices on the way.

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
        blocks: diagonal blocks such as 0, "W0W0" or "vv"; all of them by default.
        full: whether to keep all eigenvalues of every block.

    Returns:
        A Dataset over ``time``, ``matrix`` (hessian, gradient), ``block`` and ``rank``:
        ``eigenvalues`` by decreasing absolute value; ``alignment`` of the block's own weights with
        E; ``overlap``, squared, of leading eigenvectors with each anchor (unit vectors);
        ``residual``, the norm of the block's weights outside the span of the anchors divided by
        their norm; the statistics of the run; and ``spectrum`` if ``full``.
    """
    if not isinstance(task, MultiIndexFamily):
        raise _checks.InputError(f"task={task!r} is not allowed: task must be a multi-index task")
    dim, step = task.check_dim(dim), _checks.positive("step", step)
    samples = _checks.integer("samples", samples, least=1)
    seed = _checks.integer("seed", seed, least=0)
    data = _checks.choice("data", data, ("test", "train"))
    grid = _times(times)
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
    start = task.random_state(dim, seed) if init is None else task.check_state(init)
    training = Training(task, dim, step, seed, start)
    seen = training.seen(samples) if data == "train" else training.unseen(samples)
    looks = []
    with progress(f"spectra in dim {dim}", len(grid)) as advance:
        previous: dict[str, np.ndarray] = {}
        for weights in training.weights_at(grid):
            looks.append(_look(at(task, seen, weights), chosen, previous, full=full))
            advance(1)
    values = {name: np.stack([look[name] for look in looks]) for name in looks[0]}
    names = [block.name for block in chosen]
    attrs = {"dim": dim, "samples": samples, "step": step, "seed": seed, "data": data}
    return _dataset(task, values, grid, names, attrs)


def _diagonal(task: MultiIndexFamily, blocks: Sequence[Any]) -> list[Block]:
    found = [find_block(task, block) for block in blocks]
    off = [block.name for block in found if block.i != block.j]
    if off or not found:
        raise _checks.InputError(
            f"blocks={_checks.shown(list(blocks))} is not allowed: blocks must be on the diagonal, "
            "at least one"
        )
    return found


def _times(times: Any) -> np.ndarray:
    grid = _checks.array("times", times, None)
    if grid.ndim != 1 or len(grid) == 0 or grid[0] < 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(times)} is not allowed: times must be increasing and >= 0"
        )
    return grid


def _look(
    matrices: Empirical, blocks: list[Block], previous: dict[str, np.ndarray], *, full: bool
) -> State:
    """Everything that is recorded at one time."""
    task, dim = matrices.task, matrices.dim
    rows = [block for block in blocks if block.i is not None]
    r = len(task.anchors)
    count = min(dim, r + EXTRA_RANKS)
    most = max(count if rows else 0, task.width if len(rows) < len(blocks) else 0)
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
        if rows:
            pairs = matrices.leading(matrix, rows, count, start=previous.get(matrix))
            previous[matrix] = pairs.vectors
        for place, block in enumerate(blocks):
            if block.i is None:
                values, vectors = np.linalg.eigh(matrices.dense(matrix, block))
                order = np.argsort(-np.abs(values))
                values, vectors = values[order], vectors[:, order]
                own = matrices.v
                if full:
                    found["spectrum"][number, place, : len(values)] = np.sort(values)
            else:
                number_of_row = rows.index(block)
                values, vectors = pairs.values[number_of_row], pairs.vectors[number_of_row]
                own = matrices.W[block.i]
                found["overlap"][number, place, :count] = (vectors.T @ units.T) ** 2
                if full:
                    found["spectrum"][number, place] = matrices.eigenvalues(matrix, block)
            found["eigenvalues"][number, place, : len(values)] = values
            assert own is not None
            found["alignment"][number, place] = alignment(
                own, vectors[:, : expected_outliers(task, block)]
            )
    span = orthonormal(A.T, dim)
    W, v = matrices.W, matrices.v
    outside = W - W @ span @ span.T
    found["residual"] = np.linalg.norm(outside, axis=1) / np.linalg.norm(W, axis=1)
    state: State = {"M": W @ A.T, "R": outside @ outside.T}
    return found | state | ({} if v is None else {"v": v})


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
    return results.build(values, {name: dims[name] for name in values}, coords, about)


def hidden_classes(task: MultiIndexFamily, state: StateLike, margin: Number = 0.1) -> int:
    """How many components of the data a two-layer classifier with labels 0 and 1 discerns.

    A component counts if the network's output at its mean is on the right side by ``margin``.

    >>> import sgdlimits as sl
    >>> four = {"v": [1, 1, -1, -1.0], "M": [[1, 0], [-1, 0], [0, 1], [0, -1.0]], "R": np.eye(4)}
    >>> hidden_classes(sl.tasks.XorMixture(), four)
    4
    """
    checked = task.check_state(state)
    if "v" not in checked or task.labels is None:
        raise _checks.InputError(
            f"task={task!r} is not allowed: it must be a trained two-layer classifier"
        )
    fields = np.asarray(task.means) @ checked["M"].T
    outputs = np.maximum(fields, 0.0) @ checked["v"]
    signs = 2 * np.asarray(task.labels) - 1
    return int(np.sum(signs * outputs > _checks.nonnegative("margin", margin)))

"""Effective spectra along a solution: outlier curves, and when outliers come and go."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._progress import progress
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.spectra.blocks import find_block
from sgdlimits.spectra.effective import NODES, EffectiveSpectrum, effective
from sgdlimits.tasks import MultiIndexFamily

PRECISION = 1e-3  # of the times of transitions, relative to the spacing of the solution


class Transition(NamedTuple):
    """An outlier leaves the bulk, or enters it: a BBP transition in time."""

    time: float
    side: str  # "above" or "below" the bulk
    change: int  # by how many outliers on that side: +1 if one leaves the bulk


class EffectivePath(NamedTuple):
    """Spectra over time, as a Dataset and as objects, and the transitions between them.

    The Dataset has ``outliers`` over ``time`` and ``rank`` (NaN where there are fewer), by
    decreasing absolute value and repeated by multiplicity, and the outer edges ``low`` and ``high``
    of the bulk.
    """

    dataset: xr.Dataset
    spectra: list[EffectiveSpectrum]
    transitions: list[Transition]


def effective_path(
    task: Any,
    solution: xr.Dataset,
    ratio: Number,
    matrix: Word = "hessian",
    block: Any = 0,
    nodes: WholeNumber = NODES,
    dim: WholeNumber | None = None,
) -> EffectivePath:
    """The effective spectrum of a block at every time of a solution, or of a run of SGD.

    Args:
        task: the task that was solved.
        solution: states over ``time``: from ``effective_dynamics(task).solve``, or one run.
        ratio: samples per dimension, n/d.
        matrix: "hessian" or "gradient".
        block: as in :func:`sgdlimits.spectra.effective`.
        nodes: quadrature nodes per component.
        dim: of finite matrices, None for the limit.
    """
    if not isinstance(task, MultiIndexFamily):
        raise _checks.InputError(f"task={task!r} is not allowed: task must be a multi-index task")
    missing = [name for name in task.shapes if name not in solution]
    if missing or "run" in solution.dims:
        raise _checks.InputError(
            f"solution with {list(solution.data_vars)} over {list(solution.dims)} is not allowed: "
            f"it must have {list(task.shapes)} over time, of one run"
        )
    name = find_block(task, block).name
    times = solution.time.values

    def at(time: float) -> EffectiveSpectrum:
        here = solution.interp(time=time)
        state = {key: here[key].values for key in task.shapes}
        return effective(task, state, ratio, matrix, name, nodes, dim)

    with progress("spectra along the solution", len(times)) as advance:
        found = []
        for time in times:
            found.append(at(float(time)))
            advance(1)
    values = [
        [o.value for o in spectrum.outliers for _ in range(o.multiplicity)] for spectrum in found
    ]
    most = max(map(len, values))
    table = np.array([row + [np.nan] * (most - len(row)) for row in values]).reshape(-1, most)
    ends = np.array(
        [(s.edges[0], s.edges[-1]) if len(s.edges) else (np.nan, np.nan) for s in found]
    )
    dataset = results.build(
        {"outliers": table, "low": ends[:, 0], "high": ends[:, 1]},
        {"outliers": ("time", "rank"), "low": ("time",), "high": ("time",)},
        {"time": times},
        {
            "kind": "effective spectra",
            "task": type(task).__name__,
            "parameters": task.parameters(),
            "ratio": _checks.positive("ratio", ratio),
            "matrix": matrix,
            "block": name,
        },
    )
    transitions = list(_transitions(found, times, at))
    return EffectivePath(dataset, found, transitions)


def _counts(spectrum: EffectiveSpectrum) -> dict[str, int]:
    if len(spectrum.edges) == 0:
        return {"above": 0, "below": 0}
    low, high = spectrum.edges[0], spectrum.edges[-1]
    return {
        "above": sum(o.multiplicity for o in spectrum.outliers if o.value > high),
        "below": sum(o.multiplicity for o in spectrum.outliers if o.value < low),
    }


def _transitions(
    found: list[EffectiveSpectrum], times: np.ndarray, at: Any
) -> Iterator[Transition]:
    """Between two times with different numbers of outliers, where the number changes."""
    for k in range(len(times) - 1):
        first, last = _counts(found[k]), _counts(found[k + 1])
        for side in first:
            change = last[side] - first[side]
            if change == 0:
                continue
            low, high = float(times[k]), float(times[k + 1])
            span = high - low
            while high - low > PRECISION * span:
                middle = (low + high) / 2
                if _counts(at(middle))[side] == first[side]:
                    low = middle
                else:
                    high = middle
            yield Transition((low + high) / 2, side, change)

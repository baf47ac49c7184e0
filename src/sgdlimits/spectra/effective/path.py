"""Effective spectra along a solution: outlier curves, and when outliers come and go."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._progress import progress
from sgdlimits._types import Number, State, WholeNumber, Word
from sgdlimits.spectra.blocks import BlockLike, find_block, multi_index
from sgdlimits.spectra.effective.spectrum import NODES, EffectiveSpectrum, effective
from sgdlimits.tasks import MultiIndexFamily

PRECISION = 1e-3  # of the times of transitions, relative to the spacing of the solution


class Transition(NamedTuple):
    """An outlier leaves the bulk or enters it: a BBP transition in time (BGHJ23, section 2.2).

    In a readout block, which has no bulk, an eigenvalue passes the threshold.
    """

    time: float
    side: str  # "above" or "below" the bulk
    change: int  # by how many outliers on that side: +1 if one leaves the bulk


class EffectivePath(NamedTuple):
    """Spectra over time, as a Dataset and as objects, and the transitions between them.

    The Dataset has ``outliers`` over ``time`` and ``rank`` (NaN where there are fewer), by
    decreasing absolute value and repeated by multiplicity. It also has the outer edges ``low`` and
    ``high`` of the bulk (NaN where the block vanishes); of a readout block, which has none, all
    ``eigenvalues`` over ``time`` and ``index``, and the ``threshold`` beyond which they are
    outliers.
    """

    dataset: xr.Dataset
    spectra: list[EffectiveSpectrum]
    transitions: list[Transition]


def effective_path(
    task: MultiIndexFamily,
    solution: xr.Dataset,
    ratio: Number,
    matrix: Word = "hessian",
    block: BlockLike = 0,
    nodes: WholeNumber = NODES,
    dim: WholeNumber | None = None,
) -> EffectivePath:
    """The effective spectrum of a block at every time of a solution, or of a run of SGD.

    Args:
        task: the task that was solved.
        solution: states over ``time``: from ``effective_dynamics(task).solve``, or one run.
        ratio: φ = n/d, samples per dimension.
        matrix: "hessian" or "gradient".
        block: as in :func:`sgdlimits.spectra.effective`.
        nodes: quadrature nodes per component.
        dim: of finite matrices, None for the limit.
    """
    task = multi_index(task)
    missing = [name for name in task.shapes if name not in solution]
    if missing or "run" in solution.dims:
        raise _checks.InputError(
            f"solution with {list(solution.data_vars)} over {list(solution.dims)} is not allowed: "
            f"it must have {list(task.shapes)} over time, of one run"
        )
    name = find_block(task, block).name
    times = solution.time.values

    def spectrum_at(time: float) -> EffectiveSpectrum:
        at_time = solution.interp(time=time)
        state = _feasible(task, {key: at_time[key].values for key in task.shapes})
        return effective(task, state, ratio, matrix, name, nodes, dim)

    spectra = []
    with progress("spectra along the solution", len(times)) as advance:
        for time in times:
            spectra.append(spectrum_at(float(time)))
            advance(1)
    attrs = {
        "kind": "effective spectra",
        "task": type(task).__name__,
        "parameters": task.parameters(),
        "ratio": _checks.positive("ratio", ratio),
        "matrix": matrix,
        "block": name,
    }
    transitions = list(_transitions(spectra, times, spectrum_at))
    return EffectivePath(_dataset(spectra, times, attrs), spectra, transitions)


def _feasible(task: MultiIndexFamily, state: State) -> State:
    """A state between two of a solution: on the sphere, the rows of W regain their norm of 1."""
    if not task.spherical:
        return state
    scale = 1 / np.sqrt(task.squared_norms(state["M"], state["R"]))
    M, R = scale[:, None] * state["M"], np.outer(scale, scale) * state["R"]
    return state | {"M": M, "R": R}


def _dataset(
    spectra: list[EffectiveSpectrum], times: np.ndarray, attrs: dict[str, Any]
) -> xr.Dataset:
    listed = [spectrum.outlier_values for spectrum in spectra]
    most = max(map(len, listed))
    table = np.array([row + [np.nan] * (most - len(row)) for row in listed]).reshape(-1, most)
    values = {"outliers": table}
    dims: dict[str, tuple[str, ...]] = {"outliers": ("time", "rank")}
    if attrs["block"] == "vv":
        values["eigenvalues"] = np.array([spectrum.eigenvalues for spectrum in spectra])
        values["threshold"] = np.array([spectrum.threshold for spectrum in spectra])
        dims |= {"eigenvalues": ("time", "index"), "threshold": ("time",)}
    else:
        values["low"], values["high"] = np.array([_outer_edges(s) for s in spectra]).T
        dims |= {"low": ("time",), "high": ("time",)}
    return results.build(values, dims, {"time": times}, attrs)


def _outer_edges(spectrum: EffectiveSpectrum) -> tuple[float, float]:
    if len(spectrum.edges) == 0:
        return (np.nan, np.nan)
    return float(spectrum.edges[0]), float(spectrum.edges[-1])


def _counts(spectrum: EffectiveSpectrum) -> dict[str, int]:
    """How many outliers lie above and below the bulk; those in its gaps do not count."""
    low, high = _outer_edges(spectrum)
    if np.isfinite(spectrum.threshold):
        low, high = -spectrum.threshold, spectrum.threshold
    return {
        "above": sum(value > high for value in spectrum.outlier_values),
        "below": sum(value < low for value in spectrum.outlier_values),
    }


def _transitions(
    spectra: list[EffectiveSpectrum],
    times: np.ndarray,
    spectrum_at: Callable[[float], EffectiveSpectrum],
) -> Iterator[Transition]:
    """Where the number of outliers on a side changes, between times at which it is different.

    An outlier that comes and goes between two times of the solution is missed.
    """

    def between(
        side: str, low: float, high: float, counts: tuple[int, int]
    ) -> Iterator[Transition]:
        if counts[0] == counts[1]:
            return
        middle = (low + high) / 2
        if high - low <= precision:
            yield Transition(middle, side, counts[1] - counts[0])
            return
        count = _counts(spectrum_at(middle))[side]
        yield from between(side, low, middle, (counts[0], count))
        yield from between(side, middle, high, (count, counts[1]))

    for k in range(len(times) - 1):
        before, after = _counts(spectra[k]), _counts(spectra[k + 1])
        low, high = float(times[k]), float(times[k + 1])
        precision = PRECISION * (high - low)
        for side in before:
            yield from between(side, low, high, (before[side], after[side]))

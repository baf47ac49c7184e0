"""When solutions of the limit meet an event."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from sgdlimits import _checks, results
from sgdlimits._events import Event, EventLike, event_of, holds
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, StateLike
from sgdlimits.dynamics.flow.init import start_vectors
from sgdlimits.dynamics.flow.solve import follow_steps, followed
from sgdlimits.dynamics.model import Limit, as_state

WINDOWS = (1 / 64, 1 / 8, 1.0)  # ends of the stretches that are solved, parts of the longest time
POINTS = 400  # in each of them, at which the event is looked at
BETWEEN = 8  # places between two of them, where a spline tells
ZOOMS = 2  # each solves once more, from the last point before the event
AT_END = 4  # more of them where the solution blows up, faster and faster
CLOSER = 32  # cells into which a zoom divides one


class Passage(NamedTuple):
    """Where a solution meets the event, or stops; ``passed`` tells."""

    time: float
    vector: np.ndarray
    passed: bool


@double_precision
def first_passage(  # noqa: D417 - a method: self needs no word
    self: Limit, event: EventLike, init: StateLike, max_time: Number = 100.0
) -> xr.Dataset:
    """When the solution of the ODE du/dt = h(u) first meets an event.

    The solution is looked at 400 times in each of [0, T/64], [T/64, T/8] and [T/8, T] for T =
    ``max_time``, and by a spline in between. The cell with the event is solved again, twice, on a
    grid 32 times as fine, so that the time is as accurate as the solution.

    Args:
        event: ``("M[0,teacher]", ">", 0.3)``, ``("m", "<", 0.1)``, the same with a JAX function of
            the state in place of a name, or such a function alone, which crosses zero from either
            side.
        init: where to start; arrays with one more leading axis start one solution per entry.
        max_time: how long to wait, in units of dim/step samples.

    Returns:
        A Dataset with ``time`` and the statistics then, ``censored`` where the event has not
        happened by ``max_time``, ``at_start`` where it held from the start, and ``diverged`` where
        the solution ended before: over ``run`` if there are several starts.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> passage = limit.first_passage(("m", ">", 0.5), {"m": 0.01, "r2": 1.0})
    >>> float(passage.time.round(6)), float(passage.m.round(9)), bool(passage.censored)
    (1.013954, 0.5, False)
    """
    longest = _checks.positive("max_time", max_time)
    read = event_of(event, self.task.layout, self.quantity)
    vectors, batch = start_vectors(self.model, self.task, init)
    starts = np.asarray(vectors)
    heights = _heights(self, read, starts)
    sides = read.sides(heights)
    at_start = holds(sides, heights)
    passages = [
        Passage(0.0, vector, bool(now)) for vector, now in zip(starts, at_start, strict=True)
    ]
    begin, on_the_way, error = 0.0, np.flatnonzero(~at_start), 0.0
    for end in longest * np.array(WINDOWS):
        if len(on_the_way) == 0:
            break
        grid = np.linspace(begin, end, POINTS + 1)
        before = np.array([passages[i].vector for i in on_the_way])
        values, _, reached = followed(self, before, grid)
        error = max(error, reached)
        for i, path in zip(on_the_way, values, strict=True):
            passages[i] = _within(self, read, sides[i], grid, path)
        unfinished = [i for i in on_the_way if not passages[i].passed and passages[i].time >= end]
        begin, on_the_way = float(end), np.array(unfinished, int)
    self.warn_if_poor(error, "along this solution")
    attrs = {"kind": "passage"} | self.provenance | {"event": read.words, "max_time": longest}
    told = {
        "time": np.array([passage.time for passage in passages]),
        "censored": np.array([not passage.passed for passage in passages]),
        "at_start": at_start,
        "diverged": np.array([not (p.passed or p.time >= longest) for p in passages]),
    }
    ends = np.array([passage.vector for passage in passages])
    return _dataset(self, told, ends, batch is not None, attrs | {"drift_error": error})


def _heights(limit: Limit, event: Event, vectors: np.ndarray) -> np.ndarray:
    return event.heights(as_state(limit.task.layout.unravel(vectors)))


def _within(
    limit: Limit, event: Event, side: float, grid: np.ndarray, path: np.ndarray, zooms: int = ZOOMS
) -> Passage:
    """The event along a solution that is known at a grid of times, else where it ends."""
    finite = np.all(np.isfinite(path), axis=1)
    known = len(path) if finite.all() else int(np.argmin(finite))
    heights = side * _heights(limit, event, path[:known])
    if np.any(lost := np.isnan(heights)):  # nothing is known from there on
        known = int(np.argmax(lost))
        if known == 0:
            return Passage(float(grid[0]), path[0], False)
    times, vectors, heights = grid[:known], path[:known], heights[:known]
    last = Passage(float(times[-1]), vectors[-1], False)
    for cell in _candidates(times, heights, known < len(path)):
        at_end = cell == known - 1
        if zooms > 0 or (at_end and zooms > -AT_END):
            finer = np.linspace(grid[cell], grid[cell + 1], CLOSER + 1)
            start = path[cell][None]
            model, _ = limit.suited(start, time=float(finer[0]))
            again, _ = follow_steps(limit, model, start, finer, limit.rtol)
            passage = _within(limit, event, side, finer, again[0], zooms - 1)
            if passage.passed:
                return passage
            last = passage if at_end else last
        elif cell + 1 < known and heights[cell + 1] > 0:
            return _root(times, vectors, heights, cell)
    return last


def _candidates(times: np.ndarray, heights: np.ndarray, ends: bool) -> np.ndarray:
    """Cells of the grid in which heights become positive, as far as points and a spline tell.

    A solution that ends does so in the cell after the last point, where the event may be too.
    """
    last = [len(times) - 1] if ends else []
    if len(times) < 4:
        return np.array([*np.flatnonzero(heights[1:] > 0), *last], int)
    inner = (np.arange(BETWEEN) + 0.5) / BETWEEN
    places = times[:-1, None] + np.diff(times)[:, None] * inner
    above = np.any(CubicSpline(times, heights)(places) > 0, axis=1) | (heights[1:] > 0)
    return np.array([*np.flatnonzero(above), *last], int)


def _root(times: np.ndarray, vectors: np.ndarray, heights: np.ndarray, cell: int) -> Passage:
    """Where a spline through the heights is zero, and the vector there."""
    near = slice(max(0, cell - 3), cell + 5)
    if len(times[near]) < 4 or heights[cell] >= 0:
        share = 0.0 if heights[cell] >= 0 else heights[cell] / (heights[cell] - heights[cell + 1])
        vector = (1 - share) * vectors[cell] + share * vectors[cell + 1]
        return Passage(float(times[cell] + share * (times[cell + 1] - times[cell])), vector, True)
    time = brentq(CubicSpline(times[near], heights[near]), times[cell], times[cell + 1], xtol=1e-14)
    return Passage(float(time), CubicSpline(times[near], vectors[near])(time), True)


def _dataset(
    limit: Limit,
    told: dict[str, np.ndarray],
    vectors: np.ndarray,
    batched: bool,
    attrs: dict[str, Any],
) -> xr.Dataset:
    layout = limit.task.layout
    states = as_state(limit.task.project(layout.unravel(vectors)))
    values = told | states
    if not batched:
        values = {name: x[0] for name, x in values.items()}
    lead: tuple[str, ...] = ("run",) if batched else ()
    dims = {name: lead + layout.dims.get(name, ()) for name in values}
    coords = layout.coords | ({"run": np.arange(len(vectors))} if batched else {})
    return results.build(values, dims, coords, attrs, **layout.kinds)

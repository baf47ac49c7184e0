"""Solutions by the method that suits the drift: smooth, sliding along jumps, or chattering."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sgdlimits import _checks, _cores
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, Numbers, StateLike, WholeNumber
from sgdlimits._warn import warn
from sgdlimits.dynamics.flow.chattering import chattering_solutions
from sgdlimits.dynamics.flow.dataset import to_dataset
from sgdlimits.dynamics.flow.init import start_vectors
from sgdlimits.dynamics.flow.methods import EIGHTH
from sgdlimits.dynamics.flow.runge_kutta import integrate
from sgdlimits.dynamics.flow.schedule import moving_rates, pieces, steps_of
from sgdlimits.dynamics.flow.sliding import sliding_solutions
from sgdlimits.dynamics.model import Limit, Model, Table
from sgdlimits.dynamics.model.moved import noise_step

CHECKS = 4  # times after the start at which the rule is checked
GAIN = 0.5  # another rule must have at most this part of the error, else all is in vain
SEEN = 3  # runs that are looked at, at each of them
STEP = 0.3  # part of the error of expectations that one step may have
TO_ZERO = 0.01  # absolute tolerance over relative one
TOGETHER = 64  # solutions at once where every drift is a sum over many nodes


@double_precision
def solve(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike,
    time: Number = 10.0,
    *,
    points: WholeNumber = 201,
    times: Numbers | None = None,
) -> xr.Dataset:
    """Solve the ODE du/dt = h(u).

    Args:
        init: where to start; arrays with one more leading axis start one solution per entry,
            along a dimension ``run``.
        time: where to stop, in units of dim/step samples.
        points: number of equally spaced times in the result, 0 and ``time`` included.
        times: the times themselves, increasing from 0, in place of ``time`` and ``points``:
            ``runs.time`` puts the solution beside a simulation.

    Returns:
        A Dataset with the statistics by name over ``time``.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> path = limit.solve({"m": 0.1, "r2": 1.0}, time=20.0)
    >>> float(path.m[-1].round(6)), float(path.r2[-1].round(6))
    (1.0, 1.0)
    """
    grid = _even_times(time, points) if times is None else _given_times(times)
    vectors, batch = start_vectors(self.model, self.task, init)
    starts = np.asarray(vectors)
    values, finished, error = followed(self, starts, grid)
    self.warn_if_poor(error, "along this solution")
    if batch is None and not bool(finished[0]):
        warn(
            f"the solution did not reach time={grid[-1]:g}: the effective dynamics diverges or "
            "is too stiff; later values are not finite"
        )
    attrs = {"kind": "limit"} | self.provenance | {"drift_error": error}
    return to_dataset(self.model, values[0] if batch is None else values, grid, attrs)


def followed(
    limit: Limit, starts: np.ndarray, grid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Solutions by rules that are renewed where they are no longer accurate, and their error.

    Expectations are checked at a few times. Where the error of the rule is larger than was asked
    for and than it was at the start, the solution is taken up again from the check before with a
    rule that suits the state there.
    """
    model, error = limit.suited(starts, time=float(grid[0]))
    values, finished = follow_steps(limit, model, starts, grid, limit.rtol)
    if model.exact:
        return values, finished, 0.0
    times = np.linspace(0, len(grid) - 1, CHECKS + 1).round().astype(int)
    worst, checked = error, 0
    while True:
        errors = _errors_at(limit, model, values, grid, times[checked + 1 :])
        poor = [k for k, reached in enumerate(errors) if reached > max(limit.rtol, 2 * error)]
        if not poor or limit.nodes is not None:
            break
        first = int(times[checked + 1 + poor[0]])
        better, error = limit.suited(values[:, first], time=float(grid[first]))
        if error > GAIN * errors[poor[0]]:
            break
        worst = max(worst, error, *errors[: poor[0]])
        model, checked = better, checked + poor[0]
        first = int(times[checked])
        again, finished = follow_steps(limit, model, values[:, first], grid[first:], limit.rtol)
        values = np.concatenate([values[:, :first], again], axis=1)
        checked += 1
    return values, finished, max(worst, *errors, 0.0)


def _errors_at(
    limit: Limit, model: Model, values: np.ndarray, grid: np.ndarray, places: np.ndarray
) -> list[float]:
    """The errors of a rule at these places of the grid, in threads."""

    def one(k: int) -> float:
        with jax.enable_x64(True):  # a setting of each thread
            return _error_at(limit.with_step_of(model, float(grid[k])), values[:, k])

    with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
        return list(pool.map(one, places))


def _error_at(model: Model, vectors: np.ndarray) -> float:
    """The largest error at some of the vectors, relative to the terms of the drift."""
    finite = np.flatnonzero(np.all(np.isfinite(vectors), axis=1))
    if len(finite) == 0:
        return 0.0
    few = finite[np.unique(np.linspace(0, len(finite) - 1, SEEN).round().astype(int))]
    return max(float(model.errors(vectors[None, k]).relative[0]) for k in few)


def follow_steps(
    limit: Limit, model: Model, starts: Any, times: Any, rtol: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """As ``follow``, by the step of every time.

    A drift that jumps is one without noise, and without a corrector: no step enters there.
    """
    schedule = limit.moves.step
    starts, times = np.asarray(starts), np.asarray(times)
    if schedule.constant or model.motion != "smooth":
        return follow(model, starts, times, rtol)
    if schedule.function is not None:

        def steps(some: np.ndarray) -> np.ndarray:
            return noise_step(limit.moves, 1.0) * steps_of(schedule, some)

        rates = moving_rates(Table(model), float(model.step), steps)
        begun = np.column_stack([starts, np.full(len(starts), times[0])])
        values, finished = integrate(rates, begun, times, *_tolerance(model, rtol))
        return values[..., :-1], finished
    values = np.full((len(starts), len(times), starts.shape[1]), np.nan)
    values[:, 0] = starts
    cuts = pieces(schedule, times)
    finished = np.ones(len(starts), bool)
    for begin, end in itertools.pairwise(cuts):
        inside = np.flatnonzero((times > begin) & (times <= end))
        wanted = np.unique([begin, *times[inside], end])
        now = limit.with_step_of(model, float(begin))
        part, finished = follow(now, starts, wanted, rtol)
        values[:, inside] = part[:, 1 : 1 + len(inside)]
        starts = part[:, -1]
    return values, finished


def follow(
    model: Model, starts: Any, times: Any, rtol: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Solve du/dt = h(u) from every start; values at ``times``, and which reached the last.

    Where expectations have an error of ``rtol`` a step may have a third of it; else its tolerance
    is the model's own, below which the drift is no longer smooth.
    """
    starts, times = np.asarray(starts), np.asarray(times)
    table = Table(model)
    if table.slides:
        return sliding_solutions(table, starts, times, *model.tolerance)
    if model.motion == "chattering":
        tolerance = jnp.array(_tolerance(model, rtol))
        found = chattering_solutions(model, jnp.asarray(starts), jnp.asarray(times), tolerance)
        values, finished = np.asarray(found[0]), np.asarray(found[1])
        return np.where(np.isfinite(values), values, np.nan), finished
    at_once = functools.partial(table.stages, EIGHTH.tableau) if model.exact else None
    rates = (lambda u: at_once(u, np.zeros(len(u)))[:, 0]) if at_once else table.drift
    return integrate(rates, starts, times, *_tolerance(model, rtol), at_once)


def _tolerance(model: Model, rtol: float) -> tuple[float, float]:
    """(rtol, atol) of a step, where expectations have an error of ``rtol``."""
    relative, absolute = model.tolerance
    if model.exact:
        return relative, absolute
    return max(relative, STEP * rtol), max(absolute, STEP * TO_ZERO * rtol)


def ends_of(model: Model, starts: jax.Array, time: float) -> np.ndarray:
    """Where the starts are after ``time``, NaN if they diverge."""
    count = len(starts)
    rows = np.array_split(np.arange(count), 1 if model.exact else -(-count // TOGETHER))
    parts = []
    with progress("following starts", len(rows)) as advance:
        for chunk in rows:
            values, finished = follow(model, starts[chunk], np.array([0.0, time]))
            parts.append(np.where(finished[:, None], values[:, -1], np.nan))
            advance(1)
    return np.concatenate(parts)


def _even_times(time: Any, points: Any) -> np.ndarray:
    end = _checks.positive("time", time)
    return np.linspace(0, end, _checks.integer("points", points, least=2))


def _given_times(times: Any) -> np.ndarray:
    grid = _checks.array("times", times, np.shape(times))
    if grid.ndim != 1 or len(grid) < 2 or grid[0] != 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(grid)} is not allowed: times must increase from 0, two or more"
        )
    return grid

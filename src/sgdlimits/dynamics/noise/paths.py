"""Sample paths of the effective dynamics at finite dimension."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import _checks, _cores
from sgdlimits._events import EventLike, event_of
from sgdlimits._pieces import Pieces
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._segments import segment_of
from sgdlimits._types import Number, StateLike, WholeNumber
from sgdlimits.dynamics.flow import start_vectors, to_dataset
from sgdlimits.dynamics.model import Limit, Model
from sgdlimits.dynamics.noise.integrator import RECORDS, SDE, Grid, advance, fastest_rate, path_keys
from sgdlimits.dynamics.noise.stretches import busiest, stretches
from sgdlimits.dynamics.noise.until import Waiting

TOGETHER = 64  # paths in one call: their number is padded, so that one program serves all
FEW = 8  # the same where every drift is a sum over many nodes
LONGEST = 0.1  # a step, in units of the fastest time scale
FASTER = 1.5  # times as many steps as were taken: if more are needed, paths start again
MOST = 8  # times as many at once
TRIALS = 4
MOST_STEPS = 50_000  # of twice the length between two records
LOOKS = 16  # states on the way at which expectations and time scale are checked

Paths = Float[np.ndarray, "runs t n"]


@double_precision
def sample_paths(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike,
    dim: WholeNumber = 3000,
    *,
    time: Number = 10.0,
    runs: WholeNumber = 64,
    seed: WholeNumber = 0,
    points: WholeNumber = 201,
    until: EventLike | None = None,
) -> xr.Dataset:
    r"""Sample the SDE du = h dt + √(Σ/dim) dB of SGD in dimension ``dim``.

    A step τ is at most a tenth of the fastest time scale that the first paths meet. Expectations
    err by O(τ⁴) + O(τ²/dim) + O(τ/dim²): steps of the classical Runge–Kutta method along the drift,
    and kicks of noise half-way. The attribute ``time_step`` is τ, and ``step_error`` estimates its
    effect on the mean over runs: a third of what doubling τ changes in the mean of the first paths
    (64, or 8 where expectations are sums over nodes) along the same Brownian motions, the largest
    over statistics and times. Paths that are not finite are left out of it; one that ends in
    another basin with other steps counts fully.

    For tasks that need quadrature the exact chain (``simulate``) is often faster.

    Args:
        init: where all paths start, or one state per run along a leading axis. The end of other
            paths of the same seed, ``paths.isel(time=-1)``, has noise of the next ``segment``, as
            in ``simulate``.
        dim: the dimension d.
        time: where to stop, in units of dim/step samples.
        runs: number of paths.
        seed: of the noise; path i is the same whatever ``runs``.
        points: number of equally spaced times in the result.
        until: an event at which a path stops, as in ``simulate``. What happens between two steps
            counts too, by Brownian bridges; from then on the statistics of a path stay as they are.
            The Dataset tells ``passage_time``, ``censored`` and ``at_start`` for every path.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> paths = limit.sample_paths({"m": 0.5, "r2": 0.5}, dim=1000, time=1.0, runs=8, points=11)
    >>> paths.attrs["time_step"], paths.attrs["step_error"] < 1e-3
    (0.005, True)
    """
    dim = self.task.check_dim(dim)
    time = _checks.positive("time", time)
    runs = _checks.integer("runs", runs, least=1)
    points = _checks.integer("points", points, least=2)
    seed = _checks.integer("seed", seed, least=0)
    segment = segment_of(init, seed)
    event = None if until is None else event_of(until, self.task.layout, self.quantity)
    starts = np.asarray(start_vectors(self.model, self.task, init, runs)[0])
    lanes = TOGETHER if self.model.exact else FEW
    rows = np.minimum(np.arange(-(-runs // lanes) * lanes), len(starts) - 1)
    chunks = [
        (jnp.asarray(starts[some]), path_keys(seed, k * lanes, lanes, segment))
        for k, some in enumerate(rows.reshape(-1, lanes))
    ]
    times, spacing = np.linspace(0, time, points), time / (points - 1)
    when = busiest(self, time)
    with progress("sampling paths", len(chunks)) as report:

        def follow(
            model: Model, chunk: int, steps: int, merged: int = 1, wait: Waiting | None = None
        ) -> Paths:
            with jax.enable_x64(True):  # in every thread
                return _stretched(self, model, *chunks[chunk], times, steps, merged, dim, wait)

        model, steps, twice = _settled(self, follow, starts, spacing, when)
        waits: list[Waiting] = []
        if event is not None:
            waits = [Waiting(event, self.task.layout, np.asarray(some)) for some, _ in chunks]
        first = follow(model, 0, steps)
        report(1)

        def other(chunk: int) -> Paths:
            values = follow(model, chunk, steps, wait=waits[chunk] if waits else None)
            report(1)
            return values

        free = [first] if event is None else []
        with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
            others = list(pool.map(other, range(len(free), len(chunks))))
    values = np.concatenate([*free, *others])[:runs]
    attrs = {"kind": "paths"} | self.provenance | {"dim": dim, "seed": seed}
    attrs |= {"time_step": spacing / steps, "step_error": _step_error(first, twice)}
    attrs |= {"segment": segment} if segment else {}
    attrs |= {"event": event.words} if event else {}
    dataset = to_dataset(self.model, values, times, attrs)
    return dataset if event is None else dataset.assign(_told(waits, runs, time))


def _told(waits: list[Waiting], runs: int, time: float) -> dict[str, tuple[str, np.ndarray]]:
    """What there is to say of an event for every path."""
    passed = np.concatenate([wait.passed for wait in waits])[:runs]
    return {
        "passage_time": ("run", np.minimum(passed, time)),
        "censored": ("run", np.isinf(passed)),
        "at_start": ("run", passed == 0),
    }


def _stretched(
    limit: Limit,
    model: Model,
    starts: Float[Array, "runs n"],
    keys: Array,
    times: np.ndarray,
    steps: int,
    merged: int,
    dim: float,
    wait: Waiting | None = None,
) -> Paths:
    """Paths at equally spaced times, so many steps between two, none across a change of SGD's."""
    go_on = followed if wait is None else wait.followed
    parts, timed = stretches(limit, model, times)
    vectors = jnp.pad(starts, ((0, 0), (0, int(timed))))
    recorded, done = [np.asarray(vectors)[:, None]], 0
    for part in parts:
        share = part.spacing / (times[-1] / (len(times) - 1))
        halves = math.ceil(round(steps * merged / 2 * share, 9))
        elementary = 2 * max(1, halves)  # whatever ``merged`` is
        grid = Grid.of(part.spacing, elementary // merged, merged)
        values = go_on(part.model, vectors, keys, part.intervals, grid, dim, done // merged)
        done += part.intervals * elementary
        vectors = jnp.asarray(values[:, -1])
        recorded.append(values[:, 1:] if part.recorded else values[:, :0])
    values = np.concatenate(recorded, axis=1)
    return values[..., :-1] if timed else values


def followed(
    model: SDE,
    starts: Float[Array, "runs n"],
    keys: Array,
    intervals: int,
    grid: Grid,
    dim: float,
    kicked: int = 0,
) -> Paths:
    """Paths at equally spaced times, the start included, after so many kicks."""
    size, pieces = jnp.asarray(float(dim)), Pieces()
    vectors, recorded = starts, [np.asarray(starts)[None]]
    for done in range(0, intervals, RECORDS):
        now = min(RECORDS, intervals - done)
        kicks = jnp.asarray(kicked + done * int(grid.steps))
        vectors, some = advance(model, vectors, keys, kicks, now, grid, size, pieces)
        recorded.append(some)
    return np.moveaxis(np.concatenate(recorded), 0, 1)


def _settled(
    limit: Limit, follow: Callable[..., Paths], starts: np.ndarray, spacing: float, when: float
) -> tuple[Model, int, Paths]:
    """Model and steps between two records that suit the first paths, and these at half the steps.

    All that is known beforehand is the start; where paths go is seen at twice the time step. Time
    scales are those of the largest step of SGD.
    """

    def needed(rate: float) -> int:
        return math.ceil(min(spacing * rate / (2 * LONGEST), MOST_STEPS))

    model = limit.cheaper(jnp.asarray(starts), "at the start", when)
    half = needed(fastest_rate(model, starts))
    for trial in range(TRIALS):
        paths = follow(model, 0, half, merged=2)
        finite = paths[np.all(np.isfinite(paths), axis=(1, 2))]
        if len(finite) == 0 or trial == TRIALS - 1:
            break
        lanes, times = (np.linspace(0, size - 1, LOOKS).astype(int) for size in finite.shape[:2])
        seen = finite[lanes, times]
        suited = limit.cheaper(jnp.asarray(seen), "along these paths", when)
        more = needed(fastest_rate(suited, seen))
        if more <= FASTER * half and bool(eqx.tree_equal(suited, model)):
            break
        model, half = suited, max(half, min(more, MOST * half))
    return model, 2 * half, paths


def _step_error(paths: Paths, doubled: Paths) -> float:
    """The error of second order that paths with steps twice as long tell."""
    both = np.isfinite(paths) & np.isfinite(doubled)
    gaps = np.where(both, doubled, 0.0) - np.where(both, paths, 0.0)
    means = np.sum(gaps, axis=0) / np.maximum(np.sum(both, axis=0), 1)
    return float(np.max(np.abs(means))) / 3

"""``simulate``: many runs of SGD on one task, as a labelled Dataset."""

import threading
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import jax
import numpy as np
import xarray as xr

from sgdlimits import _checks, _cores, results
from sgdlimits._moves import MomentumLike, Moves, StepLike, moves
from sgdlimits._precision import double_precision, staged
from sgdlimits._progress import Advance, progress
from sgdlimits._types import Flag, Number, State, StateLike, WholeNumber, Word
from sgdlimits.simulate.base import Moving, Process, observe_at, process_of, seed_words
from sgdlimits.simulate.clock import Marks, steps_at
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.layout import Layout, Statistic

# A call into compiled code cannot be interrupted, so calls are brief: they report progress too.
BRIEF = 0.1  # seconds
FIRST = 128  # steps in the first call
RECORDS = 16  # recorded times in a call, at most: of any number of them the program is the same


@double_precision
def simulate(
    task: Task,
    dim: WholeNumber = 2000,
    *,
    runs: WholeNumber = 100,
    time: Number = 10.0,
    step: StepLike = 1.0,
    batch: WholeNumber = 1,
    momentum: MomentumLike = 0.0,
    readout_step: Number = 1.0,
    normalised: Flag = False,
    sphere: Word = "rescaled",
    seed: WholeNumber = 0,
    init: StateLike | None = None,
    method: Word = "chain",
    points: WholeNumber = 201,
) -> xr.Dataset:
    """Run SGD with learning rate δ = step/dim, many times independently.

    ``method="chain"`` simulates the summary statistics themselves, exactly in law, at a cost that
    does not depend on ``dim``. ``method="direct"`` simulates all coordinates of the weights.
    ``method="population"`` takes the same steps along the expected gradient, SGD of endless
    batches: expectations are sums over nodes, and a start at which they are wrong by more than one
    per cent of a sample's gradient is refused.

    A step at time t takes time δ = c(t)/dim, whatever the batch: time is the sum of all δ.

    Args:
        task: what is learned.
        dim: the data dimension d.
        runs: number of independent runs.
        time: length of a run, in units of dim/step steps.
        step: c in δ = c/dim; a JAX function c(t) of time, or pairs (time, step) from each of which
            on that step is taken, the first at time 0.
        batch: how many fresh samples the gradient of a step is averaged over.
        momentum: β in [0, 1): V ← βV + δ∇L, W ← W − V; or ("slow", κ) for β = 1 − κδ and
            U ← βU + δ∇L, W ← W − δU. The velocity is zero at the start.
        readout_step: ε ≥ 0; a trained readout moves with εδ.
        normalised: gradients, without the ridge's, are divided by their norm, times √dim.
        sphere: on spherical tasks, "rescaled": rows of W are divided by their norms after a step;
            "tangential": besides, gradients are made tangential before it.
        seed: of all randomness. Run i is the same whatever ``runs``, ``points`` and cores.
        init: the state all runs start from, or one state per run along a leading axis; by default
            each run starts from its own random state (``task.random_state``).
        method: "chain", "direct" or "population".
        points: number of equally spaced times recorded, at most one per step.

    Returns:
        A Dataset with the statistics by name over ``run`` and ``time``, ``diverged`` per run and
        ``diverged_at``, the first recorded time at which a run was no longer finite. The coordinate
        ``samples`` along ``time`` counts the samples seen.

    >>> import sgdlimits as sl
    >>> runs = sl.simulate(sl.tasks.SpikedTensor(snr=2.0), dim=500, runs=8, time=2.0, points=5)
    >>> dict(runs.sizes)
    {'run': 8, 'time': 5}
    """
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    dim = task.check_dim(dim)
    runs = _checks.integer("runs", runs, least=1)
    time = _checks.positive("time", time)
    how = moves(
        step=step,
        batch=batch,
        momentum=momentum,
        readout_step=readout_step,
        normalised=normalised,
        sphere=sphere,
    )
    seed = _checks.integer("seed", seed, least=0)
    points = _checks.integer("points", points, least=2)
    method = _checks.choice("method", method, ("chain", "direct", "population"))
    marks = steps_at(how, dim, np.linspace(0, time, points), "time")
    starts = _starts(task, dim, runs, seed, init)
    records = _run_chunks(task, dim, how, seed, starts, marks.steps, method)
    further = process_of(task, method=method, dim=dim, moves=how, first_run=0).further
    return _dataset(task, starts, records, marks, dim, how, seed, method, further)


def _starts(task: Task, dim: int, runs: int, seed: int, init: StateLike | None) -> State:
    if init is None:
        return task.random_states(dim, seed, range(runs))
    state = task.check_state(init, runs=runs, argument="init")
    shapes = task.shapes
    return {
        name: np.broadcast_to(value, (runs, *shapes[name])).copy() for name, value in state.items()
    }


def _run_chunks(
    task: Task,
    dim: int,
    moves: Moves,
    seed: int,
    starts: State,
    marks: np.ndarray,
    method: str,
) -> State:
    """Advance chunks of runs on a pool of threads, one per usable core; JAX releases the lock.

    All chunks have the same size, the last one padded: other sizes compile to other code, which may
    round differently.
    """
    runs = len(next(iter(starts.values())))
    options: dict[str, Any] = {"method": method, "dim": dim, "moves": moves}
    lanes = process_of(task, first_run=0, **options).lanes
    chunks = range(0, runs, lanes)
    words, stop = staged(seed_words(seed)), threading.Event()

    def begin(first: int) -> tuple[Process, Moving]:
        chunk = {name: _padded(x[first : first + lanes], lanes) for name, x in starts.items()}
        process = process_of(task, first_run=first, **options)
        return process, process.begin(chunk)

    # no step at all: compiled here, or each of the threads would compile the same
    nothing = staged(np.zeros(RECORDS + 1, np.int64))
    jax.block_until_ready(observe_at(*begin(0), words, nothing))

    with progress(f"SGD ({method}), {runs} runs in dim {dim}", len(chunks)) as advance:

        def one(first: int) -> State:
            with jax.enable_x64(True):
                return _record_all(*begin(first), words, marks, advance, stop)

        with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
            try:
                parts = list(pool.map(one, chunks))
            except BaseException:  # such as an interruption by the user
                stop.set()
                raise
    return {name: np.concatenate([part[name] for part in parts])[:runs] for name in parts[0]}


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    missing = size - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values


def _record_all(
    process: Process,
    moving: Moving,
    words: jax.Array,
    marks: np.ndarray,
    advance: Advance,
    stop: threading.Event,
) -> State:
    """The statistics at marks[1:], in calls as long as ``BRIEF``; ``stop`` ends them."""
    pieces: list[State] = []
    done, recorded, stride = 0, 0, FIRST
    while recorded < len(marks) - 1 and not stop.is_set():
        reach = min(done + stride, int(marks[-1]))
        ends = marks[recorded + 1 : recorded + 1 + RECORDS]
        ends = ends[ends <= reach]
        if len(ends) == RECORDS:
            reach = int(ends[-1])
        rest = np.full(RECORDS - len(ends), reach)
        began = perf_counter()
        piece = staged(np.concatenate([[done], ends, rest]))
        moving, seen = observe_at(process, moving, words, piece)
        pieces.append({name: np.asarray(x)[: len(ends)] for name, x in seen.items()})
        advance((reach - done) / marks[-1])
        factor = BRIEF / (perf_counter() - began)
        stride = max(1, int((reach - done) * min(max(factor, 0.25), 8.0)))
        done, recorded = reach, recorded + len(ends)
    names = pieces[0] if pieces else {}
    return {name: np.moveaxis(np.concatenate([p[name] for p in pieces]), 1, 0) for name in names}


def _dataset(
    task: Task,
    starts: State,
    records: State,
    marks: Marks,
    dim: int,
    moves: Moves,
    seed: int,
    method: str,
    further: tuple[Statistic, ...],
) -> xr.Dataset:
    starts = starts | {one.name: np.zeros_like(records[one.name][:, 0]) for one in further}
    values = {name: np.concatenate([starts[name][:, None], records[name]], 1) for name in starts}
    layout = Layout((*task.layout.statistics, *further))
    flags = results.divergence(values, marks.times)
    along: dict[str, Any] = {"time": marks.times}
    if method != "population":  # which sees all samples at every step
        along["samples"] = ("time", moves.batch * marks.steps)
    return results.build(
        values | flags,
        {name: ("run", "time", *dims) for name, dims in layout.dims.items()}
        | {"diverged": ("run",), "diverged_at": ("run",)},
        {"run": np.arange(len(flags["diverged"]))} | along | task.layout.coords,
        {
            "kind": "simulation",
            "task": type(task).__name__,
            "parameters": task.parameters(),
            "dim": dim,
            "step": moves.step_words,
            **moves.words,
            "seed": seed,
            "method": method,
        },
        states=list(task.shapes),
        symmetric=layout.symmetric,
    )

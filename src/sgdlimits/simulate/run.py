"""``simulate``: many runs of SGD on one task, as a labelled Dataset."""

import threading
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import jax
import numpy as np
import xarray as xr

from sgdlimits import _checks, _cores, results
from sgdlimits._precision import double_precision, staged
from sgdlimits._progress import Advance, progress
from sgdlimits._types import Number, State, StateLike, WholeNumber, Word
from sgdlimits.simulate.base import Carry, Process, observe_at, process_of, seed_words
from sgdlimits.tasks.base import Task

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
    step: Number = 1.0,
    seed: WholeNumber = 0,
    init: StateLike | None = None,
    method: Word = "chain",
    points: WholeNumber = 201,
) -> xr.Dataset:
    """Run SGD with learning rate δ = step/dim for time/δ steps, many times independently.

    ``method="chain"`` simulates the summary statistics themselves, exactly in law, at a cost that
    does not depend on ``dim``. ``method="direct"`` simulates all coordinates of the weights.

    Args:
        task: what is learned.
        dim: the data dimension d.
        runs: number of independent runs.
        time: length of a run, in units of dim/step samples.
        step: c in δ = c/dim.
        seed: of all randomness. Run i is the same whatever ``runs``, ``points`` and cores.
        init: the state all runs start from, or one state per run along a leading axis; by default
            each run starts from its own random state (``task.random_state``).
        method: "chain" or "direct".
        points: number of equally spaced times recorded, at most one per step.

    Returns:
        A Dataset with the statistics by name over ``run`` and ``time``, ``diverged`` per run and
        ``diverged_at``, the first recorded time at which a run was no longer finite.

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
    step = _checks.positive("step", step)
    seed = _checks.integer("seed", seed, least=0)
    points = _checks.integer("points", points, least=2)
    method = _checks.choice("method", method, ("chain", "direct"))
    steps = round(time * dim / step)
    if steps >= 2**53:
        raise _checks.InputError(
            f"time={time} is not allowed: with dim={dim} and step={step} it takes {steps:.3g} steps"
        )
    if steps < 1:
        raise _checks.InputError(
            f"time={time} is not allowed: with dim={dim} and step={step} it must be "
            f"at least {step / dim} (one step of SGD)"
        )
    starts = _starts(task, dim, runs, seed, init)
    wanted = np.linspace(0, steps, points)
    marks = np.unique(np.round(wanted).astype(np.int64))
    times = marks * step / dim
    if len(marks) == points and np.array_equal(marks, wanted):
        times = np.linspace(0, times[-1], points)  # to the last bit those of a solution
    records = _run_chunks(task, dim, step, seed, starts, marks, method)
    return _dataset(task, starts, records, times, dim, step, seed, method)


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
    step: float,
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
    options: dict[str, Any] = {"method": method, "dim": dim, "step": step}
    lanes = process_of(task, first_run=0, **options).lanes
    chunks = range(0, runs, lanes)
    words, stop = staged(seed_words(seed)), threading.Event()

    def begin(first: int) -> tuple[Process, Carry]:
        chunk = {name: _padded(x[first : first + lanes], lanes) for name, x in starts.items()}
        process = process_of(task, first_run=first, **options)
        return process, process.start(chunk)

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
    return {name: np.concatenate([part[name] for part in parts])[:runs] for name in starts}


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    missing = size - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values


def _record_all(
    process: Process,
    carry: Carry,
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
        carry, seen = observe_at(process, carry, words, piece)
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
    times: np.ndarray,
    dim: int,
    step: float,
    seed: int,
    method: str,
) -> xr.Dataset:
    values = {name: np.concatenate([starts[name][:, None], records[name]], 1) for name in starts}
    flags = results.divergence(values, times)
    return results.build(
        values | flags,
        {name: ("run", "time", *dims) for name, dims in task.layout.dims.items()}
        | {"diverged": ("run",), "diverged_at": ("run",)},
        {"run": np.arange(len(flags["diverged"])), "time": times} | task.layout.coords,
        {
            "kind": "simulation",
            "task": type(task).__name__,
            "parameters": task.parameters(),
            "dim": dim,
            "step": step,
            "seed": seed,
            "method": method,
        },
        **task.layout.kinds,
    )

"""Many runs in chunks of the same size, on a pool of threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from sgdlimits import _cores
from sgdlimits._events import Event, holds
from sgdlimits._precision import staged
from sgdlimits._progress import progress
from sgdlimits._types import State
from sgdlimits.simulate.base import Moving, Process, Watch
from sgdlimits.simulate.checkpoint import Checkpoint
from sgdlimits.simulate.ends import Ends, moving_of
from sgdlimits.simulate.records import Recorded, compiled_before, record
from sgdlimits.simulate.setting import Setting


def run_chunks(
    setting: Setting,
    starts: State,
    marks: np.ndarray,
    *,
    event: Event | None = None,
    ends: Ends | None = None,
    checkpoint: Checkpoint | None = None,
) -> Recorded:
    """Advance all runs from step marks[0], and record their statistics at marks[1:].

    All chunks have the same size, the last one padded: other sizes compile to other code, which may
    round differently. JAX releases the lock, so that there is a thread for every usable core.

    Args:
        setting: what is simulated.
        starts: statistics of all runs at the start.
        marks: numbers of steps.
        event: runs stand still once it has happened to them.
        ends: the internal states in which they start, if they have gone on before.
        checkpoint: where what is done is kept, if anywhere.
    """
    runs = len(next(iter(starts.values())))
    lanes = setting.process(0).lanes
    words, stop = setting.words, threading.Event()

    def begin(first: int) -> tuple[Process, Moving, Watch | None]:
        some = slice(first, first + lanes)
        chunk = {name: _padded(x[some], lanes) for name, x in starts.items()}
        process = setting.process(first)
        if ends is None:
            moving = process.begin(chunk)
        else:  # the statistics of runs that diverged are no state
            like = process.begin(setting.task.random_states(setting.dim, 0, range(lanes)))
            moving = moving_of(process, like, _padded(ends[some], lanes))
        watch = None
        if event is not None:
            watch = _watch(event, chunk, runs - first, int(marks[0]), moving)
        return process, moving, watch

    compiled_before(*begin(0), words)  # or each of the threads would compile the same
    title = f"SGD ({setting.method}), {runs} runs in dim {setting.dim}"
    with progress(title, -(-runs // lanes)) as report:

        def one(first: int) -> Recorded:
            with jax.enable_x64(True):
                kept = None if checkpoint is None else checkpoint.of(first)
                return record(*begin(first), words, marks, kept=kept, report=report, stop=stop)

        with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
            try:
                parts = list(pool.map(one, range(0, runs, lanes)))
            except BaseException:  # such as an interruption by the user
                stop.set()
                raise
    return Recorded(
        done=int(marks[-1]),
        values={n: np.concatenate([part.values[n] for part in parts])[:runs] for n in starts},
        ends=np.concatenate([part.ends for part in parts])[:runs],
        steps=np.concatenate([part.steps for part in parts])[:runs],
        times=np.concatenate([part.times for part in parts])[:runs],
    )


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    missing = size - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values


def _watch(event: Event, states: State, runs: int, steps: int, moving: Moving) -> Watch:
    """At the start; runs of which it holds, and lanes beyond the last run, stand still."""
    heights = event.heights(states)
    sides = event.sides(heights)
    still = holds(sides, heights) | (np.arange(len(sides)) >= runs)
    return Watch(
        event=event,
        sides=staged(sides),
        steps=staged(np.where(still, steps, -1)),
        times=staged(np.full(len(sides), float(moving.time))),
    )

"""The statistics of one chunk of runs at marked steps, in calls that are brief."""

import threading
from time import perf_counter
from typing import NamedTuple, Protocol

import jax
import numpy as np

from sgdlimits._precision import staged
from sgdlimits._progress import Advance
from sgdlimits._types import State
from sgdlimits.simulate.base import Moving, Process, Watch, observe_at, observe_until
from sgdlimits.simulate.ends import Ends, ends_of, moving_of

# A call into compiled code cannot be interrupted, so calls are brief: they report progress too.
BRIEF = 0.1  # seconds
FIRST = 128  # steps in the first call
RECORDS = 16  # recorded times in a call, at most: of any number of them the program is the same


class Recorded(NamedTuple):
    """What is known of runs after so many steps, runs along axis 0."""

    done: int
    values: State  # at the marks until then, along axis 1
    ends: Ends  # internal state
    steps: np.ndarray  # after which an event happened, −1 for not yet
    times: np.ndarray  # the times of these


class Kept(Protocol):
    """Where what is known of a chunk outlives the process."""

    def load(self) -> Recorded | None:
        """What an earlier process has kept."""

    def is_due(self) -> bool:
        """Whether it is time to save."""

    def save(self, recorded: Recorded) -> None:
        """Replace what is kept."""


def compiled_before(
    process: Process, moving: Moving, watch: Watch | None, words: jax.Array
) -> None:
    """Compile what ``record`` needs, by taking no step at all."""
    _call(process, moving, watch, words, np.zeros(RECORDS + 1, np.int64))


def record(
    process: Process,
    moving: Moving,
    watch: Watch | None,
    words: jax.Array,
    marks: np.ndarray,
    *,
    kept: Kept | None,
    report: Advance,
    stop: threading.Event,
) -> Recorded:
    """The statistics at marks[1:], in calls as long as ``BRIEF``; ``stop`` ends them.

    Args:
        process: the runs.
        moving: where they are after marks[0] steps.
        watch: for what they wait, if for anything.
        words: of the key of all noise.
        marks: numbers of steps.
        kept: where they were when an earlier process ended, and where to keep it.
        report: of the part that is done.
        stop: set by others.
    """
    first, last = int(marks[0]), int(marks[-1])
    pieces: list[State] = []
    done, recorded, stride = first, 0, FIRST
    saved = None if kept is None else kept.load()
    if saved is not None:
        pieces, done = [saved.values], saved.done
        recorded = next(iter(saved.values.values())).shape[1]
        moving = moving_of(process, moving, saved.ends)
        watch = watch and watch._replace(steps=staged(saved.steps), times=staged(saved.times))
        report((done - first) / (last - first))

    def known() -> Recorded:
        none = np.full(process.lanes, -1), np.zeros(process.lanes)
        steps, times = none if watch is None else (np.asarray(watch.steps), np.asarray(watch.times))
        names = pieces[0] if pieces else {}
        values = {name: np.concatenate([p[name] for p in pieces], axis=1) for name in names}
        return Recorded(done, values, ends_of(process, moving, done), steps, times)

    while recorded < len(marks) - 1 and not stop.is_set():
        reach = min(done + stride, last)
        if watch is not None and np.all(np.asarray(watch.steps) >= 0):
            reach = last  # all stand still
        ends = marks[recorded + 1 : recorded + 1 + RECORDS]
        ends = ends[ends <= reach]
        if len(ends) == RECORDS:
            reach = int(ends[-1])
        rest = np.full(RECORDS - len(ends), reach)
        began = perf_counter()
        moving, watch, seen = _call(
            process, moving, watch, words, np.concatenate([[done], ends, rest])
        )
        pieces.append({name: np.moveaxis(x[: len(ends)], 0, 1) for name, x in seen.items()})
        report((reach - done) / (last - first))
        factor = BRIEF / (perf_counter() - began)
        stride = max(1, int((reach - done) * min(max(factor, 0.25), 8.0)))
        done, recorded = reach, recorded + len(ends)
        if kept is not None and (kept.is_due() or recorded == len(marks) - 1):
            now = known()
            kept.save(now)
            pieces = [now.values]
    return known()


def _call(
    process: Process, moving: Moving, watch: Watch | None, words: jax.Array, marks: np.ndarray
) -> tuple[Moving, Watch | None, State]:
    if watch is None:
        moving, seen = observe_at(process, moving, words, staged(marks))
    else:
        moving, watch, seen = observe_until(process, moving, watch, words, staged(marks))
    return moving, watch, {name: np.asarray(x) for name, x in seen.items()}

"""First passage against simulations of the same runs and steps."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import sgdlimits as sl
from benchmarks.row import Row

RUNS, DIM, STEP, STEPS = 20_000, 3000, 0.05, 1500
REPEATS = 5


def first_passage() -> Iterator[Row]:
    """Of an event that none of the runs comes to: every one of them takes every step."""
    task = sl.tasks.PhaseRetrieval(width=1, noise=0.5)
    start = task.random_state(DIM, seed=0)
    length = STEPS * STEP / DIM

    def trajectories() -> Any:
        return sl.simulate(task, DIM, runs=RUNS, time=length, step=STEP, init=start, points=2)

    def passages() -> Any:
        event = ("M[0,teacher]", ">", 0.9)
        return sl.first_passage(task, event, DIM, RUNS, length, step=STEP, init=start)

    if not bool(passages().censored.all()):
        raise AssertionError("runs have passed: they did not take all steps")
    trajectories()  # compile
    seconds = [(_timed(trajectories), _timed(passages)) for _ in range(REPEATS)]
    ratio = min(pair[1] for pair in seconds) / min(pair[0] for pair in seconds)
    what = "first passage / simulate, 20 000 runs of phase retrieval, per run-step"
    yield Row(what, ratio, 1.15, False)


def _timed(function: Callable[[], Any]) -> float:
    """Seconds of processor time, of all cores: what others do does not count."""
    begun = time.process_time()
    function()
    return time.process_time() - begun

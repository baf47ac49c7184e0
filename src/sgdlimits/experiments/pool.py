"""Processes that run jobs: one job each at a time, so that a process that dies names its job.

A process may be killed at any moment, most often by the system for want of memory. What it ran is
run once more, alone, after all the others: with all of the memory, and so that nobody else can be
to blame. ``concurrent.futures`` would give up all that is pending and not tell the culprit.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from sgdlimits import _cache, _cores
from sgdlimits.experiments import catalogue
from sgdlimits.experiments.version import library_version

J = TypeVar("J")
R = TypeVar("R")


@dataclass
class _Worker(Generic[J]):
    """A process, our end of the pipe to it, and what it is running."""

    process: SpawnProcess
    pipe: Connection
    job: J | None = None

    def give(self, job: J) -> None:
        """Let it run a job; if it is dead already, the end of its pipe will tell."""
        self.job = job
        with suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(job)


def run_all(
    run: Callable[[J], R],
    jobs: Sequence[J],
    *,
    processes: int,
    finished: Callable[[R], None],
    lost: Callable[[J, str], None],
) -> None:
    """Call ``run`` on every job in that many processes.

    Args:
        run: a function that a new process can import.
        jobs: what can be pickled.
        processes: how many at once.
        finished: called with each result, as it comes.
        lost: called with each job that ended its process twice, and with how, on one line.
    """
    orphans = _run(run, jobs, min(processes, len(jobs)), finished)
    for job, _ in orphans:
        for _, end in _run(run, [job], 1, finished):
            lost(job, f"its process {end} twice")


def _run(
    run: Callable[[J], R], jobs: Sequence[J], processes: int, finished: Callable[[R], None]
) -> list[tuple[J, str]]:
    """Run jobs, and return those whose process ended, with how."""
    waiting = list(jobs)[::-1]
    orphans: list[tuple[J, str]] = []
    workers: dict[Connection, _Worker[J]] = {}
    try:
        while waiting or any(worker.job is not None for worker in workers.values()):
            while waiting and len(workers) < processes:
                with _cores.shared_by(processes), _interrupts_wait():
                    worker: _Worker[J] = _start(run)
                    workers[worker.pipe] = worker
                worker.give(waiting.pop())
            for pipe in wait(list(workers)):
                worker = workers[pipe]  # type: ignore[index]
                try:
                    result = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    del workers[worker.pipe]
                    if worker.job is not None:
                        orphans.append((worker.job, _end(worker.process.exitcode or 0)))
                    continue
                worker.job = None
                if waiting:
                    worker.give(waiting.pop())
                finished(result)
        for worker in workers.values():
            worker.pipe.close()  # the end of its work: it ends by itself
        for worker in workers.values():
            worker.process.join()
    finally:
        for worker in workers.values():  # on Ctrl-C, say
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
    return orphans


def _start(run: Callable[[J], Any]) -> _Worker[J]:
    # spawn: forking a process that runs threads of JAX is not safe
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(
        target=_serve, args=(its, run, list(catalogue.__path__), _cache.used())
    )
    process.start()
    its.close()
    return _Worker(process, ours)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Ctrl-C is heard at the end of this, by us, and never by a process that is started inside.

    Otherwise one that is being started would tell that its parent has gone, and one that is
    importing that it was interrupted, with a traceback each.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears it
        return
    resource_tracker.ensure_running()  # the first process would start it, and change the mask
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child inherits it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _serve(
    pipe: Connection, run: Callable[[Any], Any], path: list[str], cache: Path | None
) -> None:
    """In the process: run what comes through the pipe until it is closed."""
    _follow_parent()
    catalogue.__path__ = path  # experiments may have been added to it
    if cache is not None:
        _cache.use_cache(cache)
    library_version()  # of what has just been imported, not of what somebody edits meanwhile
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        pipe.send(run(job))


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _end(exitcode: int) -> str:
    if exitcode == -signal.SIGKILL:
        return "was killed (out of memory?)"
    if exitcode < 0:
        names = [known.name for known in signal.Signals if known == -exitcode]
        return f"was ended by {(*names, f'signal {-exitcode}')[0]}"
    return f"ended by itself with exit code {exitcode}"

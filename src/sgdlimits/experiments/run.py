"""Run experiments: one, or many on several processes; what is finished is not run again."""

import dataclasses
import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sgdlimits import _checks, _progress, plot, results
from sgdlimits.experiments import store
from sgdlimits.experiments.base import PRESETS
from sgdlimits.experiments.checks import FAILED
from sgdlimits.experiments.registry import get
from sgdlimits.experiments.version import code_version, versions


@dataclasses.dataclass(frozen=True)
class Job:
    """One experiment with all that decides its result."""

    name: str
    preset: str
    parameters: dict[str, Any]
    seed: int
    folder: Path


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a job: its record, or an error on one line."""

    job: Job
    record: dict[str, Any] | None = None
    error: str = ""
    computed: bool = False  # now, not in an earlier run
    wrong_input: bool = False  # the error is about a parameter or a damaged folder

    @property
    def failed(self) -> bool:
        """Whether a check failed."""
        checks = self.record["checks"] if self.record else []
        return any(check["status"] == FAILED for check in checks)


def plan(
    name: str,
    out: Path,
    *,
    preset: str = "quick",
    texts: dict[str, str] | None = None,
    seed: int = 0,
) -> Job:
    """The job of running an experiment; ``texts`` are parameters to change, as text."""
    experiment = get(name)
    if preset not in PRESETS:
        raise _checks.InputError(
            f"preset={preset!r} is not allowed: preset must be {', '.join(PRESETS)}"
        )
    settings = experiment.parameters.read(texts or {}, experiment.preset(preset))
    decisive = {"parameters": settings.values(), "seed": seed, "code": code_version(name)}
    text = json.dumps(store.plain(decisive), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Job(name, preset, settings.values(), seed, out / f"{name}-{digest}")


def execute(job: Job, *, force: bool = False) -> Outcome:
    """Run a job, or read its result if it is there; errors are returned, not raised."""
    try:
        if job.folder.exists() and not force:
            return Outcome(job, store.read_record(job.folder))
        return Outcome(job, _compute(job), computed=True)
    except store.CorruptEntryError as error:
        return Outcome(job, error=f"{error}; --force runs it again", wrong_input=True)
    except ValueError as error:
        return Outcome(job, error=f"{job.name}: {error}", wrong_input=True)
    except Exception as error:  # one broken experiment must not end the others
        return Outcome(job, error=f"{job.name}: {type(error).__name__}: {error}")


def execute_all(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    force: bool = False,
    done: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run jobs on ``workers`` processes, with the same results whatever their number.

    ``done`` is called after each of them. Outcomes come in the order of the jobs.
    """
    if min(workers, len(jobs)) <= 1:
        found = []
        for job in jobs:
            found.append(execute(job, force=force))
            done(found[-1])
        return found
    # spawn: forking a process that runs threads of JAX is not safe
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(jobs)), context, _follow_parent) as pool:
        futures = [pool.submit(execute, job, force=force) for job in jobs]
        outcomes: dict[int, Outcome] = {}
        try:
            for future in as_completed(futures):
                number = futures.index(future)
                error = future.exception()  # a worker that was killed, say for want of memory
                outcome = Outcome(jobs[number], error=str(error)) if error else future.result()
                outcomes[number] = outcome
                done(outcome)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.kill()
            raise
    return [outcomes[number] for number in range(len(jobs))]


def _compute(job: Job) -> dict[str, Any]:
    experiment = get(job.name)
    settings = experiment.parameters.restore(job.parameters)
    started = datetime.now(UTC)
    with warnings.catch_warnings(record=True) as caught, _progress.silent():
        warnings.simplefilter("always", RuntimeWarning)
        clock = time.perf_counter()
        data = experiment.compute(settings, job.seed)
        compute_seconds = time.perf_counter() - clock
        checks = [check.as_dict() for check in experiment.check(settings, data)]
        with plot.style.figure_style():
            figure = experiment.draw(settings, data)
        plot.style.put_caption(figure, _caption(job))
    with store.new_entry(job.folder) as folder:
        for name, dataset in data.items():
            results.save(dataset, folder / f"{name}.nc")
        for suffix in ("png", "svg"):
            plot.save(figure, folder / f"{store.PICTURE}.{suffix}")
        record = {
            "name": job.name,
            "paper": experiment.paper,
            "figure": experiment.figure,
            "claim": experiment.claim,
            "preset": job.preset,
            "parameters": job.parameters,
            "seed": job.seed,
            "checks": checks,
            "seconds": {
                "compute": round(compute_seconds, 3),
                "all": round(time.perf_counter() - clock, 3),
            },
            "started": started.isoformat(timespec="seconds"),
            "code": code_version(job.name),
            "versions": versions(),
            "warnings": sorted({str(warning.message) for warning in caught}),
        }
        store.write_record(folder, record)
    return store.read_record(job.folder)


def _caption(job: Job) -> str:
    def word(value: Any) -> str:
        if isinstance(value, list):
            return "(" + ", ".join(map(word, value)) + ")"
        return f"{value:g}".replace("inf", "∞") if isinstance(value, float) else str(value)

    return " · ".join(
        [job.name, *(f"{name} {word(value)}" for name, value in job.parameters.items())]
    )


def _follow_parent() -> None:
    """In a worker: leave Ctrl-C to the parent, and end when the parent is gone, even if killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()

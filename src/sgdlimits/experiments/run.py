"""Run experiments: one, or many on several processes; what is finished is not run again."""

import dataclasses
import functools
import hashlib
import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sgdlimits import _checks, _cores, _disk, _progress, plot, results
from sgdlimits.experiments import claims, pool, store
from sgdlimits.experiments.base import PRESETS
from sgdlimits.experiments.checks import FAILED
from sgdlimits.experiments.exact import exact
from sgdlimits.experiments.plain import one_line, plain
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
    code: str = ""  # version of the sources when it was planned


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a job: its record, or an error on one line."""

    job: Job
    record: dict[str, Any] | None = None
    error: str = ""
    computed: bool = False  # now, not in an earlier run
    wrong_input: bool = False  # the error is about a parameter or a damaged folder
    traceback: str = ""
    error_file: Path | None = None  # where the traceback is as well, if the fault is ours

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
    seed = _checks.integer("seed", seed, least=0)
    try:
        settings = experiment.parameters.read(texts or {}, experiment.preset(preset))
    except _checks.InputError as error:
        raise _checks.InputError(f"{name}: {error}") from error
    code = code_version(name)
    # other versions of JAX, say, are another result; that of Python computes nothing
    libraries = {library: v for library, v in versions().items() if library != "python"}
    decisive = {
        "parameters": settings.values(),
        "seed": seed,
        "code": code,
        "libraries": libraries,
    }
    text = json.dumps(plain(decisive), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Job(name, preset, settings.values(), seed, out / f"{name}-{digest}", code)


def execute(job: Job, *, force: bool = False) -> Outcome:
    """Run a job, or read its result if it is there; errors are returned, not raised.

    While another process computes it, wait.
    """
    outcome = _attempt(job, force=force, wait=True)
    assert outcome is not None
    return outcome


def _attempt(job: Job, *, force: bool, wait: bool) -> Outcome | None:
    """The same; without ``wait`` None if another process is computing it."""
    try:
        if _is_there(job) and not force:
            return Outcome(job, store.read_record(job.folder))
        if not (job.folder.parent / store.MARKER).exists():
            store.open_store(job.folder.parent)
        with claims.claimed(job.folder, wait=wait) as mine:
            if not mine:
                return None
            if _is_there(job) and not force:  # since a moment ago
                return Outcome(job, store.read_record(job.folder))
            computed = _compute(job, force=force)
            return Outcome(job, store.read_record(job.folder), computed=computed)
    except store.CorruptEntryError as error:
        return Outcome(job, error=f"{error}; --force runs it again", wrong_input=True)
    except _checks.InputError as error:
        said, told = f"{job.name}: {one_line(str(error))}", _told(error)
        return Outcome(job, error=said, wrong_input=True, traceback=told)
    except OSError as error:
        return _no_room(job, error) if _disk.full(error) else _broken(job, error)
    except (Exception, SystemExit) as error:  # one broken experiment must not end the others
        return _broken(job, error)


def execute_all(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    force: bool = False,
    done: Callable[[Outcome], None] = lambda _: None,
    waiting: Callable[[Sequence[Job]], None] = lambda _: None,
) -> list[Outcome]:
    """Run jobs on ``workers`` processes, with the same results whatever their number.

    A job that ends its process, most often for want of memory, is run once more, alone. Jobs that
    other commands are computing in the same folder come last, and are waited for.

    Args:
        jobs: what to run; outcomes come in this order.
        workers: how many processes.
        force: whether what is finished is run again.
        done: called after each job.
        waiting: called with the jobs that others are computing, before they are waited for.
    """
    workers = _checks.integer("workers", workers, least=1)
    outcomes: dict[int, Outcome] = {}

    def finish(number: int, outcome: Outcome) -> None:
        outcomes[number] = outcome
        done(outcome)

    def give_up(lost: tuple[int, Job], end: str) -> None:
        number, job = lost
        finish(number, Outcome(job, error=f"{job.name}: {end}"))

    new: list[tuple[int, Job]] = []
    busy: list[tuple[int, Job]] = []
    for number, job in enumerate(jobs):
        if _is_there(job) and not force:
            finish(number, execute(job))
        else:
            new.append((number, job))

    def take(result: tuple[int, Outcome | None]) -> None:
        number, outcome = result
        if outcome is None:
            busy.append((number, jobs[number]))
        else:
            finish(number, outcome)

    def run_all(some: list[tuple[int, Job]], *, wait: bool) -> None:
        run = functools.partial(_attempt_numbered, force=force, wait=wait)
        if min(workers, len(some)) > 1:
            # what takes long begins first, or it would be alone at the end
            some.sort(key=lambda numbered: -get(numbered[1].name).cost)
            pool.run_all(run, some, processes=workers, finished=take, lost=give_up)
        else:
            for numbered in some:
                take(run(numbered))

    run_all(new, wait=False)
    if busy:
        waiting([job for _, job in busy])
        run_all(busy[:], wait=True)
    return [outcomes[number] for number in range(len(jobs))]


# --- inside -------------------------------------------------------------------------------------


def _is_there(job: Job) -> bool:
    return os.path.lexists(job.folder)


def _attempt_numbered(
    numbered: tuple[int, Job], *, force: bool, wait: bool
) -> tuple[int, Outcome | None]:
    number, job = numbered
    return number, _attempt(job, force=force, wait=wait)


def _compute(job: Job, *, force: bool) -> bool:
    """Compute, and store unless another process was faster; say whether it was stored."""
    if job.code and code_version(job.name) != job.code:
        raise RuntimeError(
            "its source has changed since this run began: give the same command again"
        )
    experiment = get(job.name)
    settings = experiment.parameters.restore(job.parameters)
    started = datetime.now(UTC)
    with (
        warnings.catch_warnings(record=True) as caught,
        _progress.silent(),
        _cores.one_blas_thread(),
    ):
        warnings.simplefilter("always", RuntimeWarning)
        clock = time.perf_counter()
        data = experiment.compute(settings, job.seed)
        compute_seconds = time.perf_counter() - clock
        checks = [check.as_dict() for check in experiment.check(settings, data)]
        with plot.style.figure_style():
            figure = experiment.draw(settings, data)
        plot.style.put_caption(figure, _caption(job))

    def fill(folder: Path) -> None:
        for name, dataset in data.items():
            results.save(dataset, folder / f"{name}.nc")
        for suffix in ("png", "svg"):
            plot.save(figure, folder / f"{store.PICTURE}.{suffix}")
            figure.set_layout_engine("none")  # all others are laid out as the first one
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

    stored = store.add(job.folder, fill, replace=force)
    store.error_file(job.folder).unlink(missing_ok=True)  # it told of an earlier attempt
    return stored


def _no_room(job: Job, error: OSError) -> Outcome:
    """The outcome of a full disk, which is nobody's fault."""
    said = f"{job.name}: {error.strerror}: make room on the disk of {job.folder.parent}/"
    return Outcome(job, error=f"{said}; the same command goes on", traceback=_told(error))


def _broken(job: Job, error: BaseException) -> Outcome:
    """The outcome of an error that is ours: on one line, with its traceback in a file."""
    said = f"{job.name}: {type(error).__name__}: {one_line(str(error))}"
    told = _told(error)
    facts = dataclasses.asdict(job) | {"versions": versions(), "folder": str(job.folder)}
    text = f"{told}\n{json.dumps(plain(facts), indent=1)}\n"
    try:
        path = store.write_error(job.folder, text)
    except OSError as problem:  # the disk is full, say
        return Outcome(job, error=f"{said} (no traceback: {problem.strerror})", traceback=told)
    return Outcome(job, error=f"{said} (traceback: {path})", traceback=told, error_file=path)


def _told(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _caption(job: Job) -> str:
    def word(value: Any) -> str:
        if isinstance(value, list):
            return "(" + ", ".join(map(word, value)) + ")"
        return exact(value).replace("inf", "∞") if isinstance(value, float) else exact(value)

    return " · ".join(
        [job.name, *(f"{name} {word(value)}" for name, value in job.parameters.items())]
    )

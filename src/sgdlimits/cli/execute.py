"""Run what a command asks for, and show how far it is."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sgdlimits import _cores, experiments
from sgdlimits._cache import use_cache
from sgdlimits.cli import guard
from sgdlimits.experiments import Job, Outcome


def execute(
    planned: Sequence[Job], out: Path, *, jobs: int | None, force: bool, traceback: bool
) -> list[Outcome]:
    """Run jobs: a terminal shows a bar, anything else gets a line for each that is finished."""
    workers = jobs or _cores.usable()
    experiments.open_store(out)
    keep_programs()
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    done = finished = 0

    def count(outcome: Outcome) -> None:
        nonlocal done, finished
        done += 1
        finished += outcome.record is not None
        bar.update(task, advance=1, description=f"last: {outcome.job.name}")
        if traceback and outcome.traceback:
            print(outcome.traceback, file=sys.stderr, end="")
        if outcome.error:
            guard.complain(outcome.error)
        elif not console.is_terminal:
            print(f"{done} of {len(planned)}: {_told(outcome)}", file=sys.stderr, flush=True)

    def wait_for(others: Sequence[Job]) -> None:
        names = ", ".join(job.name for job in others)
        guard.complain(f"another command is computing {names} in {out}/: waiting for it")

    try:
        with bar:
            task = bar.add_task("experiments", total=len(planned))
            return experiments.execute_all(
                planned, workers=workers, force=force, done=count, waiting=wait_for
            )
    except KeyboardInterrupt:
        guard.stop(
            f"interrupted: {finished} of {len(planned)} experiments are finished in {out}/; "
            "the same command goes on from there",
            guard.INTERRUPTED,
        )


def keep_programs() -> None:
    """For the next command; where that is not possible, a line says so, and work goes on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use_cache()
    for warning in caught:
        guard.complain(str(warning.message))


def _told(outcome: Outcome) -> str:
    """One line on an experiment that is finished."""
    assert outcome.record is not None
    checks = "a check failed" if outcome.failed else "all checks passed"
    seconds = f"{outcome.record['seconds']['all']:.1f} s" if outcome.computed else "was there"
    return f"{outcome.job.name}, {checks} ({seconds})"

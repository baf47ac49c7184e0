"""The command line: ``sgdlimits list | show | run | report``."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sgdlimits import experiments
from sgdlimits._version import __version__
from sgdlimits.experiments import Job, Outcome
from sgdlimits.report import write_page

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
CORES = os.cpu_count() or 1
COLOURS = {"passed": "green", "failed": "red", "erratum": "blue"}

app = typer.Typer(
    name="sgdlimits",
    help="The high-dimensional limits of SGD: rerun the papers' figures, and check them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _complete(incomplete: str) -> list[str]:
    return [name for name in experiments.names() if name.startswith(incomplete)]


Names = Annotated[list[str], typer.Argument(help="Experiments.", autocompletion=_complete)]
Some = Annotated[
    list[str] | None,
    typer.Argument(help="Experiments; all if left out.", autocompletion=_complete),
]
Preset = Annotated[str, typer.Option(help="tiny (seconds), quick, or paper (the papers' sizes).")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of all random numbers.")]
Out = Annotated[Path, typer.Option(help="Folder for results.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes; the results do not depend on it.")]
Force = Annotated[bool, typer.Option("--force", help="Run again what is finished.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]
Paper = Annotated[str | None, typer.Option(help="Only of this paper: 000 to 004, or ours.")]


def _version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"sgdlimits {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="And exit.")
    ] = False,
) -> None:
    """The high-dimensional limits of SGD: rerun the papers' figures, and check them."""


@app.command("list")
def list_(paper: Paper = None, as_json: AsJson = False) -> None:
    """All experiments: name, paper, figure and claim."""
    rows = [
        {"name": name, "paper": found.paper, "figure": found.figure, "claim": found.claim}
        for name in _names_of(paper)
        for found in [experiments.get(name)]
    ]
    if as_json:
        _print_json(rows)
        return
    table = Table("name", "paper", "figure", "claim", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row.values())
    Console().print(table)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="An experiment.", autocompletion=_complete)],
    as_json: AsJson = False,
) -> None:
    """One experiment: its parameters with defaults, its presets, and what it checks."""
    experiment = _or_exit(experiments.get, name)
    about = {
        "name": name,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "claim": experiment.claim,
        "checks": (experiment.check.__doc__ or "").strip(),
        "parameters": experiment.parameters.describe(),
        "presets": {
            preset: experiment.parameters(**experiment.preset(preset)).values()
            for preset in ("tiny", "quick", "paper")
        },
    }
    if as_json:
        _print_json(about)
        return
    console = Console()
    console.print(f"[bold]{name}[/bold]: paper {experiment.paper}, {experiment.figure}")
    console.print(experiment.claim, f"Checks: {about['checks']}", sep="\n", highlight=False)
    table = Table("parameter", "type", "allowed", "tiny", "quick", "paper", "meaning", box=None)
    for row in about["parameters"]:
        values = [_shown(about["presets"][preset][row["name"]]) for preset in about["presets"]]
        table.add_row(row["name"], row["type"], row["allowed"], *values, row["meaning"])
    console.print(table)


@app.command()
def run(
    names: Names,
    preset: Preset = "quick",
    settings: Settings = None,
    seed: Seed = 0,
    out: Out = Path("results"),
    jobs: Jobs = CORES,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run experiments; each becomes a folder with data, scorecard and picture."""
    outcomes = _execute(names, preset, settings, seed, out, jobs, force)
    if as_json:
        _print_json([_for_machines(outcome) for outcome in outcomes])
    else:
        _print_checks(outcomes)
    raise typer.Exit(_exit_code(outcomes))


@app.command()
def report(
    names: Some = None,
    headline: Annotated[
        bool, typer.Option("--headline", help="Only the few that tell the story.")
    ] = False,
    paper: Paper = None,
    preset: Preset = "quick",
    seed: Seed = 0,
    out: Out = Path("results"),
    jobs: Jobs = CORES,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run what is missing, and write one page with all pictures and checks."""
    wanted = names or _names_of(paper)
    if headline:
        wanted = [name for name in wanted if _or_exit(experiments.get, name).headline]
    outcomes = _execute(wanted, preset, None, seed, out, jobs, force)
    page = out / "report.html"
    write_page(outcomes, page)
    if as_json:
        found = [_for_machines(outcome) for outcome in outcomes]
        _print_json({"page": str(page), "experiments": found})
    else:
        _print_checks(outcomes)
        typer.echo(f"page: {page}")
    raise typer.Exit(_exit_code(outcomes))


# --- inside -------------------------------------------------------------------------------------


def _names_of(paper: str | None) -> list[str]:
    names = experiments.names()
    papers = sorted({experiments.get(name).paper for name in names})
    if paper is not None and paper not in papers:
        _stop(f"paper={paper!r} is not allowed: paper must be {', '.join(papers)}")
    return [name for name in names if paper in (None, experiments.get(name).paper)]


def _execute(
    names: Sequence[str],
    preset: str,
    settings: Sequence[str] | None,
    seed: int,
    out: Path,
    workers: int,
    force: bool,
) -> list[Outcome]:
    texts = dict(_pair(text) for text in settings or [])
    planned: list[Job] = [
        _or_exit(experiments.plan, name, out, preset=preset, texts=texts, seed=seed)
        for name in dict.fromkeys(names)
    ]
    _or_exit(experiments.open_store, out)
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
    done = 0

    def count(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        bar.update(task, advance=1, description=f"last: {outcome.job.name}")
        if outcome.error:
            _complain(outcome.error)

    try:
        with bar:
            task = bar.add_task("experiments", total=len(planned))
            return experiments.execute_all(planned, workers=workers, force=force, done=count)
    except KeyboardInterrupt:
        _complain(
            f"interrupted: {done} of {len(planned)} experiments are finished in {out}/; "
            "the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        _stop(f"--set {text} is not allowed: it must be key=value")
    return key.strip(), value.strip()


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    if any(outcome.wrong_input for outcome in outcomes):
        return BAD_USAGE
    return FAILED if any(outcome.error or outcome.failed for outcome in outcomes) else 0


def _for_machines(outcome: Outcome) -> dict[str, Any]:
    found = {"name": outcome.job.name, "folder": str(outcome.job.folder)}
    if outcome.record is None:
        return found | {"error": outcome.error}
    return outcome.record | found | {"computed": outcome.computed}


def _print_checks(outcomes: Sequence[Outcome]) -> None:
    console = Console()
    table = Table("experiment", "check", "expected", "measured", "tolerance", "verdict", box=None)
    for outcome in outcomes:
        for check in outcome.record["checks"] if outcome.record else []:
            error = f" ± {_shown(check['error'], 2)}" if check["error"] else ""
            verdict = f"[{COLOURS[check['status']]}]{check['status']}"
            numbers = (_shown(check["expected"]), _shown(check["measured"]) + error)
            table.add_row(
                outcome.job.name, check["name"], *numbers, _shown(check["tolerance"], 2), verdict
            )
    console.print(table)
    for outcome in outcomes:
        if outcome.record:
            word = f"{outcome.record['seconds']['all']:.1f} s" if outcome.computed else "was there"
            typer.echo(f"{outcome.job.folder}  ({word})")


def _shown(value: Any, digits: int = 4) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item, digits) for item in value)
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(experiments.plain(value), indent=1, ensure_ascii=False))


def _or_exit(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except ValueError as error:
        _stop(str(error))


def _complain(message: str) -> None:
    print(f"sgdlimits: {message}", file=sys.stderr)


def _stop(message: str) -> NoReturn:
    _complain(message)
    raise typer.Exit(BAD_USAGE)

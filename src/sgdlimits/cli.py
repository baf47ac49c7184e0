"""The command line: ``sgdlimits list | show | run | report``."""

import functools
import json
import sys
import traceback as tracebacks
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sgdlimits import _cores, experiments
from sgdlimits._checks import InputError
from sgdlimits._version import __version__
from sgdlimits.experiments import Job, Outcome, store
from sgdlimits.experiments.exact import exact
from sgdlimits.experiments.papers import PAPERS, reference
from sgdlimits.experiments.run import one_line
from sgdlimits.report import write_page

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
COLOURS = {"passed": "green", "failed": "red", "erratum": "blue"}

app = typer.Typer(
    name="sgdlimits",
    help="The high-dimensional limits of SGD: rerun the papers' figures, and check them.",
    epilog="Exit codes: 0; 1 if a check failed or something broke; 2 for wrong input; 130 if "
    "interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _complete(incomplete: str) -> list[str]:
    return [name for name in experiments.names() if name.startswith(incomplete)]


def _complete_paper(incomplete: str) -> list[str]:
    return [key for key in PAPERS if key.casefold().startswith(incomplete.casefold())]


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
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        show_default="one per core",
        help="Processes, which share the cores; the results do not depend on their number.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Run again what is finished.")]
AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]
Traceback = Annotated[
    bool, typer.Option("--traceback", help="Show where in the code an error was raised.")
]
Paper = Annotated[
    str | None,
    typer.Option(help=f"Only of one paper: {', '.join(PAPERS)}.", autocompletion=_complete_paper),
]


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose wrong input is one line and code 2, and any other error one line and code 1.

    Of the latter, which are faults of ours, the traceback is in a file of the store.
    """

    @functools.wraps(command)
    def guarded(**options: Any) -> None:
        try:
            command(**options)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            _stop("interrupted", INTERRUPTED)
        except Exception as error:
            told = "".join(tracebacks.format_exception(error))
            if options["traceback"]:
                print(told, file=sys.stderr, end="")
            if isinstance(error, InputError):
                _stop(one_line(str(error)))
            where = _kept(told, command.__name__, options.get("out"))
            _stop(f"{type(error).__name__}: {one_line(str(error))} ({where})", FAILED)

    return guarded


def _kept(told: str, command: str, out: Path | None) -> str:
    """Keep a traceback in the store, if there is or can be one, and say where it is."""
    if out is not None:
        try:
            store.open_store(out)
            return f"traceback: {store.write_error(out / f'sgdlimits-{command}', told)}"
        except (InputError, OSError):
            pass  # not ours to write to, or full
    return "--traceback shows where"


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
@_guarded
def list_(
    paper: Paper = None,
    as_json: AsJson = False,
    traceback: Traceback = False,  # noqa: ARG001  # for the guard
) -> None:
    """All experiments: name, paper, figure and claim, and the references of the papers."""
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
        table.add_row(*map(escape, row.values()))
    console = Console()
    console.print(table)
    for key in _sorted_papers({row["paper"] for row in rows}):
        if reference(key):
            console.print(f"\n[bold]{key}[/bold]: {escape(reference(key))}", highlight=False)


@app.command()
@_guarded
def show(
    name: Annotated[str, typer.Argument(help="An experiment.", autocompletion=_complete)],
    as_json: AsJson = False,
    traceback: Traceback = False,  # noqa: ARG001  # for the guard
) -> None:
    """One experiment: its parameters with defaults, its presets, and what it checks."""
    experiment = experiments.get(name)
    about = {
        "name": name,
        "paper": experiment.paper,
        "reference": reference(experiment.paper),
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
    where = f"{experiment.paper}, {experiment.figure}"
    console.print(f"[bold]{name}[/bold]: {escape(where)}", highlight=False)
    lines = (experiment.claim, f"Checks: {about['checks']}")
    console.print(*lines, sep="\n", highlight=False, markup=False)
    table = Table("parameter", "type", "allowed", "tiny", "quick", "paper", "meaning", box=None)
    for row in about["parameters"]:
        values = [exact(about["presets"][preset][row["name"]]) for preset in about["presets"]]
        cells = (row["name"], row["type"], row["allowed"], *values, row["meaning"])
        table.add_row(*map(escape, cells))
    console.print(table)
    if about["reference"]:
        console.print(f"{experiment.paper}: {about['reference']}", highlight=False, markup=False)


@app.command()
@_guarded
def run(
    names: Names,
    preset: Preset = "quick",
    settings: Settings = None,
    seed: Seed = 0,
    out: Out = Path("results"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    traceback: Traceback = False,
) -> None:
    """Run experiments; each becomes a folder with data, scorecard and picture."""
    planned = _plan(names, preset, settings, seed, out)
    outcomes = _execute(planned, out, jobs, force, traceback)
    if as_json:
        _print_json([_for_machines(outcome) for outcome in outcomes])
    else:
        _print_checks(outcomes)
    raise typer.Exit(_exit_code(outcomes))


@app.command()
@_guarded
def report(
    names: Some = None,
    headline: Annotated[
        bool, typer.Option("--headline", help="Only the few that tell the story.")
    ] = False,
    paper: Paper = None,
    preset: Preset = "quick",
    seed: Seed = 0,
    out: Out = Path("results"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    traceback: Traceback = False,
) -> None:
    """Run what is missing, and write one page with all pictures and checks."""
    of_paper = _names_of(paper)
    wanted = [
        name
        for name in names or of_paper
        if experiments.get(name).headline >= headline and name in of_paper
    ]
    if not wanted:
        raise InputError("no experiment is left by names, --paper and --headline together")
    planned = _plan(wanted, preset, None, seed, out)
    outcomes = _execute(planned, out, jobs, force, traceback)
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
    if paper is None:
        return names
    keys = _sorted_papers(PAPERS.keys() | {experiments.get(name).paper for name in names})
    meant = {key.casefold(): key for key in keys}.get(paper.casefold())
    if meant is None:
        raise InputError(f"paper={paper!r} is not allowed: paper must be {', '.join(keys)}")
    return [name for name in names if experiments.get(name).paper == meant]


def _sorted_papers(keys: set[str]) -> list[str]:
    """In the order of our references; others, of experiments that somebody added, come last."""
    return [key for key in PAPERS if key in keys] + sorted(keys - PAPERS.keys())


def _plan(
    names: Sequence[str], preset: str, settings: Sequence[str] | None, seed: int, out: Path
) -> list[Job]:
    texts: dict[str, str] = {}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting} is not allowed: it must be key=value")
        if key.strip() in texts:
            raise InputError(f"--set {setting} is not allowed: {key.strip()} is given twice")
        texts[key.strip()] = value.strip()
    return [
        experiments.plan(name, out, preset=preset, texts=texts, seed=seed)
        for name in dict.fromkeys(names)
    ]


def _execute(
    planned: Sequence[Job], out: Path, jobs: int | None, force: bool, traceback: bool
) -> list[Outcome]:
    workers = jobs or _cores.usable()
    experiments.open_store(out)
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
        if traceback and outcome.traceback:
            print(outcome.traceback, file=sys.stderr, end="")
        if outcome.error:
            _complain(outcome.error)

    try:
        with bar:
            task = bar.add_task("experiments", total=len(planned))
            return experiments.execute_all(planned, workers=workers, force=force, done=count)
    except KeyboardInterrupt:
        _stop(
            f"interrupted: {done} of {len(planned)} experiments are finished in {out}/; "
            "the same command goes on from there",
            INTERRUPTED,
        )


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    if any(outcome.wrong_input for outcome in outcomes):
        return BAD_USAGE
    return FAILED if any(outcome.error or outcome.failed for outcome in outcomes) else 0


def _for_machines(outcome: Outcome) -> dict[str, Any]:
    found = {"name": outcome.job.name, "folder": str(outcome.job.folder)}
    if outcome.record is None:
        file = str(outcome.error_file) if outcome.error_file else None
        return found | {
            "error": outcome.error,
            "wrong_input": outcome.wrong_input,
            "error_file": file,
        }
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
                outcome.job.name,
                escape(check["name"]),
                *numbers,
                _shown(check["tolerance"], 2),
                verdict,
            )
    console.print(table)
    for outcome in outcomes:
        if outcome.record:
            word = f"{outcome.record['seconds']['all']:.1f} s" if outcome.computed else "was there"
            typer.echo(f"{outcome.job.folder}  ({word})")


def _shown(value: Any, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(experiments.plain(value), indent=1, ensure_ascii=False))


def _complain(message: str) -> None:
    print(f"sgdlimits: {message}", file=sys.stderr)


def _stop(message: str, code: int = BAD_USAGE) -> NoReturn:
    _complain(message)
    raise typer.Exit(code) from None

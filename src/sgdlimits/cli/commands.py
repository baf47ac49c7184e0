"""The commands: their options, and which experiments they run.

Help, completion and the list are asked for often: what only runs of experiments need is imported in
the functions that run them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sgdlimits import experiments
from sgdlimits._errors import InputError
from sgdlimits._version import __version__
from sgdlimits.cli import guard, predict, printing
from sgdlimits.cli.options import AsJson, Seed, Traceback
from sgdlimits.experiments.papers import PAPERS, reference

if TYPE_CHECKING:
    from sgdlimits.experiments import Job

app = typer.Typer(
    name="sgdlimits",
    cls=guard.Commands,
    help="The high-dimensional limits of SGD: rerun the papers' figures, and check them.",
    epilog="Exit codes: 0; 1 if a check failed or something broke; 2 for wrong input; 130 if "
    "interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(predict.app, name="predict")


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
Paper = Annotated[
    str | None,
    typer.Option(help=f"Only of one paper: {', '.join(PAPERS)}.", autocompletion=_complete_paper),
]


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
@guard.guarded
def list_(
    paper: Paper = None,
    as_json: AsJson = False,
    traceback: Traceback = False,  # noqa: ARG001  # for the guard
) -> None:
    """All experiments: name, paper, figure and claim, and the references of the papers."""
    rows = [
        {"name": name, "paper": found.paper, "figure": found.figure, "claim": found.claim}
        for name in _names_of(paper)
        for found in [experiments.summary(name)]
    ]
    if as_json:
        printing.print_json(rows)
    else:
        printing.print_list(rows, _sorted_papers({row["paper"] for row in rows}))


@app.command()
@guard.guarded
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
        printing.print_json(about)
    else:
        printing.print_experiment(about)


@app.command()
@guard.guarded
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
    from sgdlimits.cli.execute import execute

    planned = _plan(names, preset, settings, seed, out)
    outcomes = execute(planned, out, jobs=jobs, force=force, traceback=traceback)
    if as_json:
        printing.print_json([printing.for_machines(outcome) for outcome in outcomes])
    else:
        printing.print_checks(outcomes)
    raise typer.Exit(guard.exit_code(outcomes))


@app.command()
@guard.guarded
def report(
    names: Some = None,
    headline: Annotated[
        bool, typer.Option("--headline", help="Only the few that tell the story.")
    ] = False,
    paper: Paper = None,
    existing: Annotated[
        bool,
        typer.Option(
            "--existing", help="Run nothing: a page of what is there, whatever it was run with."
        ),
    ] = False,
    preset: Preset = "quick",
    seed: Seed = 0,
    out: Out = Path("results"),
    jobs: Jobs = None,
    force: Force = False,
    as_json: AsJson = False,
    traceback: Traceback = False,
) -> None:
    """Run what is missing, and write one page with all pictures and checks."""
    from sgdlimits.cli.execute import execute
    from sgdlimits.report import write_page

    if existing and force:
        raise InputError("--force is not allowed with --existing, which runs nothing")
    of_paper = _names_of(paper)
    wanted = [
        name
        for name in names or of_paper
        if (experiments.summary(name).headline or not headline) and name in of_paper
    ]
    if not wanted:
        raise InputError("no experiment is left by names, --paper and --headline together")
    if existing:
        some = bool(names or paper or headline)
        outcomes = experiments.existing(out, wanted if some else None)
        for outcome in outcomes:
            if outcome.error:
                guard.complain(outcome.error)
    else:
        planned = _plan(wanted, preset, None, seed, out)
        outcomes = execute(planned, out, jobs=jobs, force=force, traceback=traceback)
    page = out / "report.html"
    write_page(outcomes, page)
    if as_json:
        found = [printing.for_machines(outcome) for outcome in outcomes]
        printing.print_json({"page": str(page), "experiments": found})
    else:
        printing.print_checks(outcomes)
        typer.echo(f"page: {page}")
    raise typer.Exit(guard.exit_code(outcomes))


# --- inside -------------------------------------------------------------------------------------


def _names_of(paper: str | None) -> list[str]:
    names = experiments.names()
    if paper is None:
        return names
    keys = _sorted_papers(PAPERS.keys() | {experiments.summary(name).paper for name in names})
    meant = {key.casefold(): key for key in keys}.get(paper.casefold())
    if meant is None:
        raise InputError(f"paper={paper!r} is not allowed: paper must be {', '.join(keys)}")
    return [name for name in names if experiments.summary(name).paper == meant]


def _sorted_papers(keys: set[str]) -> list[str]:
    """In the order of our references; others, of experiments that somebody added, come last."""
    return [key for key in PAPERS if key in keys] + sorted(keys - PAPERS.keys())


def _plan(
    names: Sequence[str], preset: str, settings: Sequence[str] | None, seed: int, out: Path
) -> "list[Job]":
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

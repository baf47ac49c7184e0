"""What commands print: tables for people, JSON for machines."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sgdlimits.experiments.exact import exact
from sgdlimits.experiments.papers import reference
from sgdlimits.experiments.plain import plain

if TYPE_CHECKING:
    from sgdlimits.experiments import Outcome

WIDEST = 110  # characters of a scorecard, so that numbers stay near their names
ERRATUM = (
    "erratum: the formula as the paper prints it gives the printed number, which the measurement "
    "contradicts; expected is what the corrected formula gives, and the measurement agrees with it"
)
COLOURS = {"passed": "green", "failed": "red", "erratum": "blue"}


def print_json(value: Any) -> None:
    """Print strict JSON."""
    typer.echo(json.dumps(plain(value), indent=1, ensure_ascii=False))


def print_list(rows: Sequence[Mapping[str, str]], papers: Iterable[str]) -> None:
    """Print experiments, and then the references of their papers."""
    console = Console()
    table = _table("name", "paper", "figure", "claim")
    for row in rows:
        table.add_row(*map(escape, row.values()))
    console.print(table)
    for key in papers:
        if reference(key):
            console.print(f"\n[bold]{key}[/bold]: {escape(reference(key))}", highlight=False)


def print_experiment(about: Mapping[str, Any]) -> None:
    """Print all that ``show`` tells of one experiment."""
    console = Console(highlight=False)
    where = escape(f"{about['paper']}, {about['figure']}")
    console.print(f"[bold]{about['name']}[/bold]: {where}")
    console.print(about["claim"], f"Checks: {about['checks']}", sep="\n", markup=False)
    table = _table("parameter", "type", "allowed", *about["presets"], "meaning")
    for row in about["parameters"]:
        values = [exact(preset[row["name"]]) for preset in about["presets"].values()]
        cells = (row["name"], row["type"], row["allowed"], *values, row["meaning"])
        table.add_row(*map(escape, cells))
    console.print(table)
    if about["reference"]:
        console.print(f"{about['paper']}: {about['reference']}", markup=False)


def print_checks(outcomes: "Sequence[Outcome]") -> None:
    """Print the scorecards of all experiments under their names, and then their folders."""
    console = Console()
    console.width = min(console.width, WIDEST)
    cards = [(o.job.name, o.record["checks"]) for o in outcomes if o.record and o.record["checks"]]
    for number, (name, checks) in enumerate(cards):
        table = _scorecard(header=number == 0)
        for check in checks:
            error = f" ± {_rounded(check['error'], 2)}" if check["error"] else ""
            printed = f"\n[dim]printed: {_rounded(check['printed'])}[/dim]"
            table.add_row(
                escape(check["name"]) + ("" if check["printed"] is None else printed),
                _rounded(check["expected"]),
                _rounded(check["measured"]) + error,
                _rounded(check["tolerance"], 2),
                f"[{COLOURS[check['status']]}]{check['status']}",
            )
        console.print(f"[bold]{name}[/bold]", highlight=False)
        console.print(table)
    if any(check["status"] == "erratum" for _, checks in cards for check in checks):
        console.print(ERRATUM, style="dim", highlight=False)
    for outcome in outcomes:
        if outcome.record:
            word = f"{outcome.record['seconds']['all']:.1f} s" if outcome.computed else "was there"
            typer.echo(f"{outcome.job.folder}  ({word})")


def for_machines(outcome: "Outcome") -> dict[str, Any]:
    """What became of an experiment: its record, or its error."""
    found = {"name": outcome.job.name, "folder": str(outcome.job.folder)}
    if outcome.record is not None:
        return outcome.record | found | {"computed": outcome.computed}
    return found | {
        "error": outcome.error,
        "wrong_input": outcome.wrong_input,
        "error_file": str(outcome.error_file) if outcome.error_file else None,
    }


def _table(*names: str) -> Table:
    """Whose long words go on in the next line, those of the first column never."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, overflow="fold", no_wrap=number == 0)
    return table


def _scorecard(*, header: bool) -> Table:
    """Tables of several experiments have their columns at the same places."""
    table = Table(box=None, pad_edge=False, expand=True, show_header=header)
    table.add_column("check", overflow="fold", ratio=1)
    for name, width in (("expected", 9), ("measured", 18), ("tolerance", 9), ("verdict", 7)):
        table.add_column(name, overflow="fold", min_width=width, max_width=width)
    return table


def _rounded(value: Any, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)

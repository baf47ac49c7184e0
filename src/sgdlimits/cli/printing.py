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
    """Print the scorecards of all experiments in one table, and their folders."""
    table = _table("experiment", "check", "expected", "measured", "tolerance", "verdict")
    for outcome in outcomes:
        for check in outcome.record["checks"] if outcome.record else []:
            error = f" ± {_rounded(check['error'], 2)}" if check["error"] else ""
            table.add_row(
                outcome.job.name,
                escape(check["name"]),
                _rounded(check["expected"]),
                _rounded(check["measured"]) + error,
                _rounded(check["tolerance"], 2),
                f"[{COLOURS[check['status']]}]{check['status']}",
            )
    if table.row_count:
        Console().print(table)
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
    """Whose long words go on in the next line: a name without its end is no name."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _rounded(value: Any, digits: int = 4) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)

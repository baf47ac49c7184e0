"""``sgdlimits predict …``: what theory says of one setting, and SGD beside it if asked for."""

from pathlib import Path
from typing import Annotated

import typer

from sgdlimits.cli import guard
from sgdlimits.cli.options import AsJson, Seed, Traceback

app = typer.Typer(
    help="What to expect of SGD in one setting, before it is run.", no_args_is_help=True
)


@app.callback()
def main() -> None:
    """What to expect of SGD in one setting, before it is run."""


@app.command()
@guard.guarded
def escape(
    dim: Annotated[int, typer.Option(help="Dimension d of the data.")],
    width: Annotated[int, typer.Option(help="Number of neurons p.")] = 1,
    noise: Annotated[float, typer.Option(help="Variance Δ of the label noise.")] = 0.0,
    step: Annotated[
        float | None,
        typer.Option(
            help="Step γ in γ/dim.", show_default="the fastest that is reliable at this dim"
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Part T of the excess risk that is lost at exit.")
    ] = 0.1,
    check: Annotated[
        bool, typer.Option("--check", help="Run SGD too, by its exact chain, and compare.")
    ] = False,
    runs: Annotated[int, typer.Option(min=10, help="Independent runs, with --check.")] = 200,
    seed: Seed = 0,
    picture: Annotated[
        Path | None,
        typer.Option("--out", help="Draw the laws of exit times: .png, .pdf or .svg."),
    ] = None,
    as_json: AsJson = False,
    traceback: Traceback = False,  # noqa: ARG001  # for the guard
) -> None:
    """How many samples a network of squares needs to escape from a random start, and which step.

    Phase retrieval on the sphere (AKLS23): labels are squared projections on a teacher, plus noise.
    With --check, code 1 says that SGD contradicts the prediction.
    """
    from sgdlimits.cli import escape as of_escape
    from sgdlimits.cli.execute import keep_programs

    keep_programs()
    prediction = of_escape.predict(dim, width, noise, step, threshold, seed=seed)
    measured = of_escape.measure(prediction, runs=runs, seed=seed) if check else None
    if picture is not None:
        of_escape.draw(prediction, measured, picture)
    if as_json:
        of_escape.print_for_machines(prediction, measured)
    else:
        of_escape.print_for_people(prediction, measured)
    if measured is not None and not measured.agrees:
        raise typer.Exit(guard.FAILED)

"""Options that several commands have."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="For machines: JSON on standard output.")]
Seed = Annotated[int, typer.Option(min=0, help="Of all random numbers.")]
Traceback = Annotated[
    bool, typer.Option("--traceback", help="Show where in the code an error was raised.")
]

"""How a command ends: what went wrong is one line on standard error, and an exit code."""

import functools
import os
import sys
import traceback as tracebacks
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from sgdlimits import _disk
from sgdlimits._errors import InputError
from sgdlimits.experiments.plain import one_line

if TYPE_CHECKING:
    from sgdlimits.experiments import Outcome

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose wrong input is one line and code 2, and any other error one line and code 1.

    Of the latter, which are faults of ours, the traceback is in a file of the store; with the
    option ``traceback`` it is on standard error as well.
    """

    @functools.wraps(command)
    def call(**options: Any) -> None:
        try:
            command(**options)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            stop("interrupted", INTERRUPTED)
        except Exception as error:
            told = "".join(tracebacks.format_exception(error))
            if options["traceback"]:
                print(told, file=sys.stderr, end="")
            if isinstance(error, InputError):
                stop(one_line(str(error)), BAD_USAGE)
            if full := _disk.full(error):
                stop(_no_room(full), FAILED)
            where = _kept(told, command.__name__, options.get("out"))
            stop(f"{type(error).__name__}: {one_line(str(error))} ({where})", FAILED)

    return call


class Commands(TyperGroup):
    """What is printed before there is a command, help and version: no room is one line too."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line."""
        try:
            try:
                return super().main(*args, **options)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if isinstance(error, BrokenPipeError) or not (full := _disk.full(error)):
                raise
            complain(_no_room(full))
            sys.exit(FAILED)


def exit_code(outcomes: "Sequence[Outcome]") -> int:
    """Of a command that has run experiments."""
    if any(outcome.wrong_input for outcome in outcomes):
        return BAD_USAGE
    return FAILED if any(outcome.error or outcome.failed for outcome in outcomes) else 0


def complain(message: str) -> None:
    """One line on standard error."""
    print(f"sgdlimits: {message}", file=sys.stderr)


def stop(message: str, code: int) -> NoReturn:
    """End the command with one line on standard error."""
    complain(message)
    raise typer.Exit(code) from None


def _no_room(error: OSError) -> str:
    """Of a file, or else of standard output, which is left alone from here on."""
    if error.filename:
        return f"{error.strerror}: {error.filename}"
    with suppress(OSError, ValueError):  # what is buffered would be written again, at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"{error.strerror}: standard output"


def _kept(told: str, command: str, out: Path | None) -> str:
    """Keep a traceback in the store, if there is or can be one, and say where it is."""
    if out is not None:
        from sgdlimits.experiments import store  # which the commands for the eye do not need

        try:
            store.open_store(out)
            return f"traceback: {store.write_error(out / f'sgdlimits-{command}', told)}"
        except (InputError, OSError):
            pass  # not ours to write to, or full
    return "--traceback shows where"

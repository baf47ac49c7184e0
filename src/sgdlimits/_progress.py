"""A progress bar for long work: on a terminal only, and gone when the work is done."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

Advance = Callable[[float], None]
"""Reports that so many units of the work are done."""

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silent() -> Iterator[None]:
    """Show no bars inside: the caller shows one for the whole."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@contextmanager
def progress(description: str, total: float) -> Iterator[Advance]:
    """Show a bar with the time left; yields the function that moves it."""
    console = Console(file=sys.stderr)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=_silent.get() or not console.is_terminal,
    )
    with bar:
        task = bar.add_task(description, total=total)

        yield lambda units: bar.advance(task, units)

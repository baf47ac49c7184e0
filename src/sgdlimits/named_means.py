"""Simulations as users call them: an event may be a population mean, by name.

A simulation knows statistics, a limit knows means, and neither knows the other. Here alone they
meet: "risk" and "error" become functions of the state before a simulation sees the event.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from sgdlimits import simulate as room
from sgdlimits._events import MEANS, Quantity
from sgdlimits.tasks import Task

P = ParamSpec("P")
T = TypeVar("T")

__all__ = ["first_passage", "simulate"]

_KEPT = 32  # functions of the state: whoever waits for another one compiles anew


def with_means(argument: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let the event that is called so be ``("risk", "<", 0.1)``; all else stays as it is."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:  # which the function itself tells in words
                return function(*args, **kwargs)
            if argument in bound.arguments:
                event, task = bound.arguments[argument], bound.arguments["task"]
                bound.arguments[argument] = _told(event, task)
            return function(*bound.args, **bound.kwargs)

        public = functools.wraps(function)(wrapper)
        public.__module__ = __name__  # where it is found when it is pickled
        return public

    return decorate


def _told(event: Any, task: Any) -> Any:
    """The event, with a function in the place of the name of a mean."""
    if isinstance(task, Task) and isinstance(event, tuple | list) and len(event) == 3:
        name, *rest = event
        if isinstance(name, str) and name in MEANS:
            return (_quantity(_Same(task), name), *rest)
    return event


class _Same:
    """A task that equals itself alone: tasks are frozen, and hold arrays."""

    def __init__(self, task: Task):
        self.task = task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.task is self.task

    def __hash__(self) -> int:
        return id(self.task)


@functools.lru_cache(_KEPT)
def _quantity(same: _Same, name: str) -> Quantity:
    """A mean does not depend on how SGD moves, so the limit of plain SGD knows it."""
    from sgdlimits.dynamics import effective_dynamics  # loads much, which few events need

    return effective_dynamics(same.task).quantity(name)


simulate = with_means("until")(room.simulate)
first_passage = with_means("event")(room.first_passage)

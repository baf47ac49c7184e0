r"""When something has happened to a run: one reading for simulations, solutions and paths.

An event is said in one of three ways:

- ``("M[0,teacher]", ">", 0.3)``: a statistic, by its flat name, is above a level; "<" for below;
  also "risk" and "error", means over fresh samples, where somebody knows them: limits do;
- ``(function, ">", 0.3)``: the same of a JAX function of the state, a dict of arrays;
- ``function``: it crosses zero, from whichever side it is on at the start.

The inequality is strict. A run of which it holds at the start, or whose function starts at zero, is
told apart by whoever waits for the event: nothing was crossed.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import staged
from sgdlimits._types import State
from sgdlimits._warn import warn

Quantity = Callable[[dict[str, Any]], Any]
EventLike = Quantity | tuple[str | Quantity, str, float]

MEANS = ("risk", "error")  # over fresh samples
_SIDES = {">": 1, "<": -1}
_FLAT = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*")
_SHOWN = 60  # names in an error message


class Laid(Protocol):
    """What is asked of a layout of statistics."""

    @property
    def statistics(self) -> Sequence[Any]:
        """Each with name, shape, labels and flat names."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each of them."""

    @property
    def coordinates(self) -> list[str]:
        """All flat names."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One number of a state."""

    name: str
    index: tuple[int, ...]

    def __call__(self, state: Mapping[str, Any]) -> Any:
        """It, of a state."""
        return state[self.name][self.index]


class Event(eqx.Module):
    """A quantity has passed a level: side · (quantity − level) > 0."""

    quantity: Quantity = eqx.field(static=True)
    level: Any
    side: int = eqx.field(static=True)  # 1 above, −1 below, 0 on the other side than at the start
    words: str = eqx.field(static=True)

    def height(self, state: dict[str, Any]) -> Float[Array, ""]:
        """How far the quantity is above the level, in JAX."""
        return jnp.asarray(self.quantity(state)) - self.level

    def heights(self, states: State) -> Float[np.ndarray, " q"]:
        """The same for many states, along a leading axis."""
        if isinstance(self.quantity, Entry):
            values = np.moveaxis(states[self.quantity.name], 0, -1)
            return np.asarray(values[self.quantity.index] - float(self.level))
        with jax.enable_x64(True):
            return np.asarray(_heights(self, {name: staged(x) for name, x in states.items()}))

    def sides(self, heights: Float[np.ndarray, " q"]) -> Float[np.ndarray, " q"]:
        """Of runs that start at these heights, the sign of the height for which it has happened.

        0 for one that starts at the level, and could leave it on either side.
        """
        return np.full(len(heights), float(self.side)) if self.side else -np.sign(heights)

    def warn_of_sides(self, heights: Float[np.ndarray, " q"]) -> None:
        """Say so if some runs wait to come up to the level and others to fall to it."""
        above, below = int(np.sum(heights > 0)), int(np.sum(heights < 0))
        if self.side == 0 and above and below:
            warn(
                f"event: {above} runs start above zero and wait to fall below, {below} start below "
                'and wait to rise above; (function, ">", 0.0) or "<" is one event for all'
            )


def holds(
    sides: Float[np.ndarray, " q"], heights: Float[np.ndarray, " q"]
) -> np.ndarray:  # of truth values
    """Of which runs it holds at the start."""
    return (sides * heights > 0) | (sides == 0)


def event_of(
    event: EventLike, layout: Laid, mean: Callable[[str], Quantity] | None = None
) -> Event:
    """Read what a caller says.

    Args:
        event: see the top of this file.
        layout: of the statistics.
        mean: what makes a function of the state of "risk" and "error", where something can.
    """
    if callable(event):
        return Event(_checked(event, layout), np.asarray(0.0), 0, f"{_name_of(event)} crosses zero")
    if not isinstance(event, tuple | list) or len(event) != 3:
        raise _checks.InputError(
            f"event={event!r} is not allowed: event must be a function of the state, or "
            '(name, ">", number), (name, "<", number) with the name of a statistic or a function'
        )
    what, relation, level = event
    _checks.choice("event[1]", relation, list(_SIDES))
    number = _checks.array("event[2]", level, ())
    quantity = _checked(what, layout) if callable(what) else _named(what, layout, mean)
    words = f"{what if isinstance(what, str) else _name_of(what)} {relation} {float(number):g}"
    return Event(quantity, number, _SIDES[relation], words)


def _named(what: Any, layout: Laid, mean: Callable[[str], Quantity] | None) -> Quantity:
    """One entry of a statistic, R[1,0] as well as R[0,1], or a population mean."""
    if isinstance(what, str) and what in MEANS:
        if mean is None:  # the names of the library give a function in place of the word
            raise _checks.InputError(
                f"event[0]={what!r} is not allowed: only a limit knows this mean; "
                f"limit.quantity({what!r}) is a function to be given in its place"
            )
        return mean(what)
    match = _FLAT.fullmatch(what) if isinstance(what, str) else None
    for statistic in layout.statistics:
        if match is None or match[1] != statistic.name:
            continue
        words = [] if match[2] is None else [part.strip() for part in match[2].split(",")]
        labels = [[str(label) for label in axis] for axis in statistic.labels]
        if len(words) == len(labels) and all(
            word in axis for word, axis in zip(words, labels, strict=True)
        ):
            pairs = zip(words, labels, strict=True)
            return Entry(statistic.name, tuple(axis.index(word) for word, axis in pairs))
    names = [*layout.coordinates, *MEANS]
    shown = ", ".join(names[:_SHOWN]) + (f", … ({len(names)} in all)" if names[_SHOWN:] else "")
    raise _checks.InputError(f"event[0]={what!r} is not allowed: it must be one of {shown}")


def _checked(function: Quantity, layout: Laid) -> Quantity:
    """A function that gives one real number of a state."""
    with jax.enable_x64(True):
        state = {name: jax.ShapeDtypeStruct(s, jnp.float64) for name, s in layout.shapes.items()}
        try:
            result = jax.eval_shape(function, state)
        except KeyError as error:
            raise _checks.InputError(
                f"event={_name_of(function)} is not allowed: it asks for {error} of a state, and "
                f"the names there are {list(layout.shapes)}"
            ) from error
        except Exception as error:  # the caller's own code
            raise _checks.InputError(
                f"event={_name_of(function)} is not allowed: it fails for a state, a dict of JAX "
                f"arrays ({type(error).__name__}: {str(error).splitlines()[0]})"
            ) from error
    shape, kind = getattr(result, "shape", None), getattr(result, "dtype", None)
    if shape != () or kind is None or not jnp.issubdtype(kind, jnp.floating):
        given = f"{kind} of shape {shape}" if kind is not None else type(result).__name__
        raise _checks.InputError(
            f"event={_name_of(function)} is not allowed: of a state it returns {given}, and must "
            'return one real number that crosses zero, such as state["m"] - 0.3'
        )
    return function


def _name_of(function: Any) -> str:
    name = str(getattr(function, "__name__", type(function).__name__))
    return "a function" if name == "<lambda>" else name


@compiled
def _heights(event: Event, states: dict[str, Array]) -> Float[Array, " q"]:
    return jax.vmap(event.height)(states)

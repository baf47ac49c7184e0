"""Parameters of an experiment: typed, checked, with a meaning, and readable from text."""

import dataclasses
import inspect
import math
import typing
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, get_args, get_origin

from sgdlimits import _checks

_META = "setting"
_S = TypeVar("_S", bound="Settings")


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What a setting means and which numbers it may be."""

    meaning: str
    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf

    @property
    def text(self) -> str:
        """Such as ``">= 2"``; empty without bounds."""
        words = [
            f"{sign} {bound:g}"
            for sign, bound in ((">=", self.least), (">", self.above), ("<=", self.most))
            if math.isfinite(bound)
        ]
        return " and ".join(words)

    def allow(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        return self.least <= value <= self.most and (value > self.above or math.isinf(self.above))


def setting(
    default: Any,
    meaning: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
) -> Any:
    """One parameter: its value in the paper, its meaning, and bounds that each number must meet."""
    return dataclasses.field(default=default, metadata={_META: Bounds(meaning, least, above, most)})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting,))
class Settings:
    """Base of the parameters of an experiment: a frozen dataclass, checked on construction.

    Types are int, float, bool, str, and tuples of int or float of any length. Siblings inherit what
    they share; another default is written as a plain value, and keeps meaning and bounds.

    >>> class Parameters(Settings):
    ...     dim: int = setting(1000, "dimension", least=2)
    ...     snrs: tuple[float, ...] = setting((0.8, 1.2), "signal-to-noise ratios", above=0)
    >>> Parameters.read({"snrs": "0.5,2"})
    Parameters(dim=1000, snrs=(0.5, 2.0))
    >>> Parameters(dim=1)
    Traceback (most recent call last):
    ...
    sgdlimits.InputError: dim=1 is not allowed: dim must be int >= 2
    >>> class Larger(Parameters):
    ...     dim: int = 5000
    >>> Larger().dim, Larger.describe()[0]["meaning"]
    (5000, 'dimension')
    >>> class Ridge(Settings):
    ...     ridge: float = setting(0.1, "ridge", above=0)
    >>> class Both(Ridge, Parameters):
    ...     dim: int = 50
    >>> Both()
    Both(dim=50, snrs=(0.8, 1.2), ridge=0.1)
    """

    def __init_subclass__(cls) -> None:
        """Make it a dataclass; a plain value is another default for an inherited parameter."""
        inherited: dict[str, Any] = {}
        for base in reversed(cls.__mro__[1:]):  # of all bases: the first has only its own fields
            inherited |= vars(base).get("__dataclass_fields__", {})
        for name in inspect.get_annotations(cls):
            value = vars(cls).get(name)
            if name in inherited and not isinstance(value, dataclasses.Field):
                meta = inherited[name].metadata
                setattr(cls, name, dataclasses.field(default=value, metadata=meta))
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        kinds = typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            checked = _checked(field.name, kinds[field.name], value, field.metadata[_META])
            object.__setattr__(self, field.name, checked)

    @classmethod
    def describe(cls) -> list[dict[str, Any]]:
        """Name, type, bounds, default and meaning of every parameter."""
        kinds = typing.get_type_hints(cls)
        return [
            {
                "name": field.name,
                "type": _word(kinds[field.name]),
                "allowed": field.metadata[_META].text,
                "default": field.default,
                "meaning": field.metadata[_META].meaning,
            }
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
        ]

    @classmethod
    def read(cls: type[_S], texts: dict[str, str], given: dict[str, Any] | None = None) -> _S:
        """Parameters from words ``key=value``, over the values ``given`` and the defaults."""
        kinds = typing.get_type_hints(cls)
        values = dict(given or {})
        for name, text in texts.items():
            if name not in kinds:
                raise _checks.InputError(f"{name} is not a parameter: {cls.overview()}")
            values[name] = _parsed(name, kinds[name], text)
        return cls(**values)

    @classmethod
    def restore(cls: type[_S], values: dict[str, Any]) -> _S:
        """Parameters from what :meth:`values` gave."""
        tuples = {name: tuple(x) if isinstance(x, list) else x for name, x in values.items()}
        return cls(**tuples)

    @classmethod
    def overview(cls) -> str:
        """All parameters with their types on one line."""
        return ", ".join(f"{row['name']} ({row['type']})" for row in cls.describe())

    def values(self) -> dict[str, Any]:
        """Every parameter by name, in the form in which JSON keeps it."""
        values = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }


def _word(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"{get_args(kind)[0].__name__}s, separated by commas"
    return str(kind.__name__)


def _checked(name: str, kind: Any, value: Any, bounds: Bounds) -> Any:
    def wrong() -> ValueError:
        wanted = " ".join(filter(None, [_word(kind), bounds.text]))
        return _checks.InputError(
            f"{name}={_checks.shown(value)} is not allowed: {name} must be {wanted}"
        )

    if kind in (bool, str):
        if not isinstance(value, kind):
            raise wrong()
        return value
    several = get_origin(kind) is tuple
    if several and (not isinstance(value, tuple | list) or not value):
        raise wrong()
    inner = get_args(kind)[0] if several else kind
    numbers = tuple(_number(inner, item) for item in (value if several else [value]))
    if any(number is None or not bounds.allow(number) for number in numbers):
        raise wrong()
    return numbers if several else numbers[0]


def _number(kind: type, value: Any) -> Any:
    """An int or float of that kind, None if it is not; NaN is no number, 1e4 is whole."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is int:
        return int(value) if _checks.is_whole(value) else None
    return None if math.isnan(value) else float(value)


def _parsed(name: str, kind: Any, text: str) -> Any:
    try:
        if get_origin(kind) is tuple:
            read = _READ[get_args(kind)[0]]
            return tuple(read(word) for word in text.split(",") if word.strip())
        return _READ[kind](text)
    except (ValueError, KeyError) as error:
        shown = "true or false" if kind is bool else _word(kind)
        raise _checks.InputError(
            f"{name}={text!r} is not allowed: {name} must be {shown}"
        ) from error


def _whole(text: str) -> int | float:
    """7, or 1e4; what is not whole is refused later, with its bounds."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


_READ: dict[type, Callable[[str], Any]] = {int: _whole, float: float, bool: _flag, str: str}

"""Names that do not exist, and calls that do not fit: which was meant, and what there is."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from sgdlimits._errors import InputError

P = ParamSpec("P")
T = TypeVar("T")

# What the papers and other libraries call our arguments, the likelier first.
SYMBOLS = {
    "K": ("width", "student_width", "classes"),
    "N": ("dim",),
    "alpha": ("ridge",),
    "batch_size": ("batch",),
    "beta": ("ridge", "momentum"),
    "c": ("step",),
    "d": ("dim",),
    "gamma": ("step",),
    "hidden": ("width", "student_width"),
    "k": ("classes", "order", "width"),
    "lam": ("precision", "snr"),
    "lambda_": ("precision", "snr"),
    "learning_rate": ("step",),
    "lr": ("step",),
    "n": ("dim",),
    "p": ("width", "weight"),
    "sigma": ("noise",),
    "start": ("init",),
    "weight_decay": ("ridge",),
}


class CallError(InputError, TypeError):
    """A call that does not fit the signature: wrong input, which Python calls a TypeError."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question that ends a message, empty if nothing is near.

    >>> did_you_mean("XORMixture", ["XorMixture", "BinaryMixture"])
    'did you mean XorMixture?'
    >>> did_you_mean("lam", ["width", "precision"]), did_you_mean("qqq", ["width"])
    ('did you mean precision?', '')
    """
    names = list(known)
    meant = [name for name in SYMBOLS.get(word, ()) if name in names][:1]
    folded = {name.casefold(): name for name in names}
    few = 1 if word.casefold() in folded else 3
    near = difflib.get_close_matches(word.casefold(), folded, n=few, cutoff=0.6)
    likely = meant or [folded[name] for name in near]
    return f"did you mean {' or '.join(likely)}?" if likely else ""


def missing(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have."""
    said = f"{module} has no {name!r}"
    hint = "" if name.startswith("_") else did_you_mean(name, known)
    return AttributeError(f"{said}: {hint}" if hint else said)


def explain(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Any) -> None:
    """Raise CallError if a call has keywords that do not exist, or too many places.

    Args:
        function: what was called.
        name: how the caller writes it.
        args: by place, ``self`` of a method among them.
        kwargs: by name.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters, args = parameters[1:], args[1:]
    kinds = {parameter.kind for parameter in parameters}
    names = [parameter.name for parameter in parameters]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        _check_keywords(name, names, kwargs)
    places = [p.name for p in parameters if p.kind != inspect.Parameter.KEYWORD_ONLY]
    if inspect.Parameter.VAR_POSITIONAL not in kinds and len(args) > len(places):
        rest = [word for word in names if word not in places and word not in kwargs]
        _refuse_places(name, places, rest, args)


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, whose wrong calls are told as :func:`explain` does."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TypeError:
            explain(function, function.__name__, args, kwargs)
            raise

    return wrapper


def _check_keywords(name: str, known: Sequence[str], kwargs: Mapping[str, Any]) -> None:
    for word, value in kwargs.items():
        if word not in known:
            told = [did_you_mean(word, known), f"the arguments are {', '.join(known)}"]
            raise CallError(
                f"{word}={_short(value)} is not allowed: {name} has no {word}; "
                + " ".join(filter(None, told))
            ) from None


def _refuse_places(name: str, places: list[str], rest: list[str], args: Sequence[Any]) -> None:
    """Show the same call with keywords, as far as there are any."""
    late = [_short(value) for value in args[len(places) :]]
    words = [f"{word}={value}" for word, value in zip(rest, late, strict=False)]
    by_place = f"takes {' and '.join(places)} by place" if places else "takes keywords only"
    call = ", ".join([*places, *words])
    raise CallError(
        f"{', '.join(late)} by place is not allowed: {name} {by_place}; "
        f"did you mean {name}({call})?"
        if len(late) <= len(rest)
        else f"{len(args)} arguments are not allowed: {name} has {len(places) + len(rest)}"
    ) from None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"<{type(value).__name__}>"

"""Functions that callers write: which keywords they take, and what is wrong where they fail."""

import functools
import inspect
import keyword
from collections.abc import Callable, Collection, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from sgdlimits import _checks

Function = Callable[..., Any]
_LOOK_UP = ("dynamic_slice", "gather")  # what an index that is traced, or too large, becomes
_ON_PURPOSE = ("GatherScatterMode.CLIP", "GatherScatterMode.FILL_OR_DROP")  # asked for by mode=
_NUMPY = (jax.errors.TracerArrayConversionError, jax.errors.TracerIntegerConversionError)
_HINTS: tuple[tuple[Any, str], ...] = (
    (_NUMPY, "it uses NumPy, or a Python list, where jax.numpy is needed"),
    (
        jax.errors.TracerBoolConversionError,
        "it decides by a traced value, where jax.numpy.where is needed",
    ),
    (
        jax.errors.ConcretizationTypeError,
        "it makes a Python number of a traced value, where jax.numpy is needed",
    ),
)


def named_numbers(
    value: Mapping[str, Any] | None, taken: Collection[str]
) -> dict[str, float | np.ndarray]:
    """The ``parameters`` of a caller's functions, as floats and float64 arrays by name.

    Args:
        value: what the caller gave.
        taken: names that mean something else already.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _checks.InputError(
            f"parameters={value!r} is not allowed: parameters must be a dict of numbers by name"
        )
    for name in value:
        refused = f"parameters={dict(value)!r} is not allowed: {name!r}"
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise _checks.InputError(f"{refused} is no name that a function can give an argument")
        if name in taken or name.startswith("_"):
            raise _checks.InputError(
                f"{refused} is a name that the task, its limit or its results use themselves: "
                "choose another"
            )
    return {name: _number_or_array(name, number) for name, number in value.items()}


def _number_or_array(name: str, value: Any) -> float | np.ndarray:
    if isinstance(value, bool | np.bool_):
        raise _checks.InputError(f"{name}={value!r} is not allowed: {name} must be real numbers")
    array = _checks.array(name, value, None)
    return float(array) if array.ndim == 0 else array


def keywords_of(
    functions: Mapping[str, Function], positional: Mapping[str, int], given: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Which of the ``given`` parameters each function takes, beside its positional arguments.

    Every parameter must be taken by one of the functions, and every keyword without a default must
    be given.

    >>> keywords_of({"loss": lambda s, v, y, flip: 0.0}, {"loss": 3}, {"flip": 0.1})
    {'loss': ('flip',)}
    """
    taken: dict[str, tuple[str, ...]] = {}
    known: list[str] = []
    for name, function in functions.items():
        keywords, any_name = _keywords(function, positional[name])
        missing = [key for key, needed in keywords.items() if needed and key not in given]
        if missing:
            raise _checks.InputError(
                f"parameters={dict(given)!r} is not allowed: {name} takes {', '.join(missing)} "
                "without a default, so that parameters must give a value"
            )
        taken[name] = tuple(key for key in given if any_name or key in keywords)
        known += keywords
    unused = [key for key in given if not any(key in names for names in taken.values())]
    if unused:
        takes = ", ".join(dict.fromkeys(known)) or "no parameters"
        raise _checks.InputError(
            f"parameters={dict(given)!r} is not allowed: no function takes {', '.join(unused)}; "
            f"{' and '.join(functions)} take {takes}"
        )
    return taken


def _keywords(function: Function, positional: int) -> tuple[dict[str, bool], bool]:
    """Names after the positional arguments, whether each is needed, and whether any name is taken.

    A function whose signature is not known, such as one written in C, takes no parameters.
    """
    try:
        every = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}, False
    names, place = {}, 0
    for one in every:
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            place += 1
            if place <= positional or one.kind is one.POSITIONAL_ONLY:
                continue
        elif one.kind is not one.KEYWORD_ONLY:
            continue
        names[one.name] = one.default is one.empty
    return names, any(one.kind is one.VAR_KEYWORD for one in every)


def output_of(name: str, function: Function, *arguments: Any) -> jax.ShapeDtypeStruct:
    """What a function returns for one sample, if that is a scalar; its errors in our words."""
    try:
        output = jax.eval_shape(function, *arguments)
    except Exception as error:  # whatever the caller's function raises
        raise _checks.InputError(
            f"{name} fails for one sample, which is not allowed: {reason(error)}; {name} must be a "
            "JAX function of the documented arguments"
        ) from error
    shape = getattr(output, "shape", None)
    if shape != ():
        described = f"shape {shape}" if shape is not None else f"a {type(output).__name__}"
        raise _checks.InputError(
            f"{name} returns {described} for one sample, which is not allowed: "
            f"{name} must return a scalar"
        )
    if jnp.issubdtype(getattr(output, "dtype", float), jnp.complexfloating):
        raise _checks.InputError(
            f"{name} returns a complex number, which is not allowed: {name} must return a real one"
        )
    return output


def reason(error: Exception) -> str:
    """Why a caller's function fails under JAX, with what to write instead where that is known.

    >>> import numpy
    >>> try:
    ...     output = jax.eval_shape(lambda x: numpy.tanh(x), jax.ShapeDtypeStruct((), "float32"))
    ... except Exception as error:
    ...     reason(error)
    'it uses NumPy, or a Python list, where jax.numpy is needed (TracerArrayConversionError)'
    """
    for kinds, hint in _HINTS:
        if isinstance(error, kinds):
            return f"{hint} ({type(error).__name__})"
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"


def index_beyond(function: Function, *arguments: Any) -> str | None:
    """What a function indexes beyond its end, where JAX would take the last entry; None if nothing.

    Nothing is said of a function that asks for it by ``mode=``, or that cannot be looked into.
    """
    text = str(jax.make_jaxpr(function)(*arguments))
    looks_up = any(word in text for word in _LOOK_UP)
    if not looks_up or any(mode in text for mode in _ON_PURPOSE):
        return None  # a constant index inside the bounds is a slice
    try:
        found, _ = _with_index_checks(function)(*arguments)
    except (NotImplementedError, ValueError):
        return None
    message = found.get()
    return None if message is None else str(message).splitlines()[0].strip().rstrip(".")


@functools.cache
def _with_index_checks(function: Function) -> Function:
    return jax.jit(checkify.checkify(function, errors=checkify.index_checks))

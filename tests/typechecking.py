"""The run-time checker of the test-suite: shapes and dtypes of arrays, in every signature.

Other annotations are for people and for mypy: at run time our functions meet wrong numbers and
words with errors of their own, which the tests are about.
"""

import functools
import types
from collections.abc import Callable
from typing import Any, get_args, get_origin

from beartype import BeartypeConf, beartype

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments whose annotation has a shape; called by jaxtyping's import hook."""
    if not isinstance(function, types.FunctionType):
        return _checked(function)
    shapes = {name: hint for name, hint in function.__annotations__.items() if _has_shape(hint)}
    copy = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = shapes
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return functools.update_wrapper(_checked(copy), function)


def sparing(jaxtyped: Callable[..., Any]) -> Callable[..., Any]:
    """``jaxtyping.jaxtyped`` for the functions that it has something to check in.

    What it wraps costs a tenth of the time of the suite: signatures are bound at every call, and
    functions inside of others are wrapped anew whenever those are called.
    """

    def decorator(typechecker: Any) -> Callable[[Any], Any]:
        wrap = jaxtyped(typechecker=typechecker)

        def decorate(what: Any) -> Any:
            plain = isinstance(what, types.FunctionType)
            hints = what.__annotations__.values() if plain else ()
            return what if plain and not any(map(_has_shape, hints)) else wrap(what)

        return decorate

    return decorator


def _has_shape(hint: Any) -> bool:
    if get_origin(hint) is Callable:  # the shapes are those of somebody else's arguments
        return False
    module = getattr(hint, "__module__", "")
    return module.startswith("jaxtyping") or any(map(_has_shape, get_args(hint)))

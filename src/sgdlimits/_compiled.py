"""Programs that compile fast, for what runs briefly.

XLA spends most of a first call on optimisations that pay off in loops of seconds. For programs that
run for milliseconds, LLVM at level 1, without fusion emitters and without splitting a module among
threads, halves the time to compile and costs nothing measurable when they run.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun
from jaxlib.version import __version__ as jaxlib_version
from jaxtyping import Array

from sgdlimits._types import Index

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# XLA refuses options that it does not know, so only for the versions that have been tried.
OPTIONS: dict[str, bool | int] = (
    {
        "xla_backend_optimization_level": 1,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
    if jaxlib_version.startswith("0.10.")
    else {}
)


def compiled(function: F) -> F:
    """``eqx.filter_jit`` with options for programs that run briefly.

    Inside another program, whose options are that one's own, it is a plain ``eqx.filter_jit``.
    """
    options: dict[str, Any] = {"compiler_options": OPTIONS}
    alone, inside = eqx.filter_jit(function, **options), eqx.filter_jit(function)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs))
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return (inside if traced else alone)(*args, **kwargs)

    result: Any = wrapper
    return result


def bound(function: Callable[..., Any], *fixed: Any) -> Callable[..., Any]:
    """``function`` compiled, with its first arguments given; its other ones are arrays.

    What is fixed is taken apart once, not at every call: for loops on the host that call it often.
    One program serves all fixed arguments that differ in their numbers only.

    >>> scaled = bound(lambda factor, x: factor * x, np.array(2.0))
    >>> float(scaled(np.array(1.5)))
    3.0
    """
    numbers, rest = eqx.partition(fixed, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    leaves, structure = jax.tree.flatten(numbers)
    words, shape = jax.tree.flatten(rest)
    program = _program(function)
    known = _Known(structure, shape, tuple(words))
    return lambda *args: program(known, leaves, *args)


def traced_once(function: Callable[..., T], *args: Any) -> tuple[T, Callable[..., T]]:
    """What ``function`` makes of such arrays looks like, and ``function``, not traced again.

    For loops that start from zeros of the right shapes: tracing is most of the time of a first call
    whose program is known from an earlier process.

    >>> shape, twice = traced_once(lambda x: 2 * x, np.ones(3))
    >>> shape.shape, twice(np.ones(3)).tolist()
    ((3,), [2.0, 2.0, 2.0])
    """
    traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
    flat, structure = jaxpr_as_fun(traced), jax.tree.structure(shapes)
    return shapes, lambda *args: jax.tree.unflatten(structure, flat(*jax.tree.leaves(args)))


def entry(array: Array | np.ndarray, index: Index) -> Array:
    """``array[index]`` of an index that is never negative, without the code that asks if it is.

    >>> int(entry(jnp.arange(3), jnp.asarray(2)))
    2
    """
    return jax.lax.dynamic_index_in_dim(
        jnp.asarray(array), index, keepdims=False, allow_negative_indices=False
    )


class _Known(NamedTuple):
    """What of the fixed arguments is not a number: it can be hashed."""

    structure: Any
    shape: Any
    words: tuple[Any, ...]


@functools.cache
def _program(function: Callable[..., Any]) -> Callable[..., Any]:
    def whole(known: _Known, leaves: Any, *args: Any) -> Any:
        numbers = jax.tree.unflatten(known.structure, leaves)
        rest = jax.tree.unflatten(known.shape, known.words)
        return function(*eqx.combine(numbers, rest), *args)

    functools.update_wrapper(whole, function)
    return jax.jit(whole, static_argnums=0, compiler_options=OPTIONS)

"""Double precision for our own calls, without touching the caller's JAX settings.

SGD at step ``c / dim`` moves each statistic by ``O(1 / dim)`` per step: single precision loses the
motion beyond dim = 1e4. Public entry points run in a scope where JAX computes in float64, take
plain numbers or NumPy arrays and give NumPy arrays back, so nothing 64-bit leaks out.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from sgdlimits._names import explained

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Run ``function`` with JAX in float64, in this thread and for this call only.

    Calls that do not fit its signature are explained, for these are our public functions.
    """
    call = explained(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return call(*args, **kwargs)

    return wrapper


def staged(values: ArrayLike) -> Array:
    """Numbers as a JAX array: handed over by NumPy, where ``jnp.asarray`` compiles a program."""
    return jax.device_put(np.asarray(values))


def as_arrays(tree: T) -> T:
    """The real numbers in a task or rule as JAX arrays: one compilation then serves all values."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) or not eqx.is_inexact_array_like(leaf):
            return leaf
        return staged(leaf)

    return jax.tree.map(one, tree)

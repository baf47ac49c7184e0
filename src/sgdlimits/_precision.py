"""Double precision for our own calls, without touching the caller's JAX settings.

SGD at step ``c / dim`` moves each statistic by ``O(1 / dim)`` per step: single precision loses the
motion beyond dim = 1e4. Public entry points run in a scope where JAX computes in float64, take
plain numbers or NumPy arrays and give NumPy arrays back, so nothing 64-bit leaks out.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

P = ParamSpec("P")
T = TypeVar("T")


def double_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Run ``function`` with JAX in float64, in this thread and for this call only."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper


def as_arrays(tree: T) -> T:
    """The real numbers in a task or rule as JAX arrays: one compilation then serves all values."""
    return jax.tree.map(lambda x: jnp.asarray(x) if eqx.is_inexact_array_like(x) else x, tree)

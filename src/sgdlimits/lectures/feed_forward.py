"""The layer that each token goes through by itself, in attention and in residual networks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sgdlimits import _checks
from sgdlimits._types import Matrix, Numbers, Word

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
}


class FeedForward(NamedTuple):
    """The layer x ↦ w σ(a x + b) that each particle goes through by itself.

    Args:
        outer: w, with as many rows as x has coordinates.
        inner: a.
        shift: b.
        activation: σ, one of "relu", "tanh" and "sigmoid".
    """

    outer: Matrix
    inner: Matrix
    shift: Numbers
    activation: Word = "tanh"


def layer(dim: int, feed_forward: FeedForward | None) -> tuple[Any, str]:
    """A checked feed-forward layer of this dimension as arrays (w, a, b), and its activation."""
    if feed_forward is None:
        return None, "tanh"
    if not isinstance(feed_forward, FeedForward):
        raise _checks.InputError(
            f"feed_forward={feed_forward!r} is not allowed: feed_forward must be a FeedForward"
        )
    inner = _checks.array("inner", feed_forward.inner, None)
    width = len(inner) if inner.ndim else 0
    inner = _checks.array("inner", inner, (width, dim))
    outer = _checks.array("outer", feed_forward.outer, (dim, width))
    shift = _checks.array("shift", feed_forward.shift, (width,))
    return (outer, inner, shift), _checks.choice(
        "activation", feed_forward.activation, tuple(ACTIVATIONS)
    )

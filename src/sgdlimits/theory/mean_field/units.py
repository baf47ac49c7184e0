"""Units seen through noise: averages of σ(u + √q η) over η ~ N(0, 1)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Activation, Word
from sgdlimits.gaussian import gauss_hermite

NOISE_NODES = 32  # Gauss–Hermite nodes for a unit without closed form
_TINY = 1e-300  # a variance of zero, where a formula divides by its root


class Smoothed(NamedTuple):
    """Averages over η of a unit at s = u + √q η."""

    mean: Float[Array, "..."]  # E σ(s)
    slope: Float[Array, "..."]  # E σ'(s)
    pull: Float[Array, "..."]  # E σ'(s) √q η = q E σ''(s)


Smooth = Callable[[Any, Any], Smoothed]  # of u and q, which broadcast


class Unit(NamedTuple):
    """An activation and its averages; ``smooth`` says that Gauss–Hermite rules may be trusted."""

    function: Activation
    smoothed: Smooth
    smooth: bool


def unit_of(parameter: str, activation: Word | Activation) -> Unit:
    """Look an activation up by its name, or take averages of a JAX function at nodes.

    >>> unit_of("activation", "square").smoothed(jnp.asarray(1.0), jnp.asarray(0.5)).mean.item()
    1.5
    """
    if isinstance(activation, str) and activation in _KNOWN:
        return _KNOWN[activation]
    if callable(activation):
        return Unit(activation, _AtNodes(activation), smooth=False)
    raise _checks.InputError(
        f"{parameter}={activation!r} is not allowed: {parameter} must be one of "
        f"{', '.join(map(repr, _KNOWN))} or an elementwise JAX function"
    )


def _erf(u: Any, q: Any) -> Smoothed:
    """E erf(s/√2) = erf(u/√(2(1 + q))), and its derivatives in u."""
    width = 1 + q
    slope = math.sqrt(2 / math.pi) * jnp.exp(-(u**2) / (2 * width)) / jnp.sqrt(width)
    return Smoothed(erf(u / jnp.sqrt(2 * width)), slope, -q * u / width * slope)


def _square(u: Any, q: Any) -> Smoothed:
    return Smoothed(u**2 + q, 2 * u, 2 * q + 0 * u)


def _relu(u: Any, q: Any) -> Smoothed:
    """E max(s, 0) = uΦ(u/√q) + √q φ(u/√q), and its derivatives in u."""
    root = jnp.sqrt(jnp.maximum(q, _TINY))
    bell = root * jnp.exp(-((u / root) ** 2) / 2) / math.sqrt(2 * math.pi)
    above = ndtr(u / root)
    return Smoothed(u * above + bell, above, bell)


@dataclass(frozen=True)
class _AtNodes:
    """Averages of any function at Gauss–Hermite nodes; two of the same function are equal."""

    function: Activation

    def __call__(self, u: Any, q: Any) -> Smoothed:
        rule = gauss_hermite(1, NOISE_NODES)
        root = jnp.sqrt(q)

        def add(total: Smoothed, node: Any) -> tuple[Smoothed, None]:
            eta, weight = node
            s = u + root * eta
            value, slope = jax.jvp(self.function, (s,), (jnp.ones_like(s),))
            terms = Smoothed(value, slope, slope * root * eta)
            return Smoothed(*(x + weight * y for x, y in zip(total, terms, strict=True))), None

        zero = jnp.zeros(jnp.broadcast_shapes(jnp.shape(u), jnp.shape(q)))
        nodes = jnp.asarray(rule.nodes[:, 0]), jnp.asarray(rule.weights)
        return jax.lax.scan(add, Smoothed(zero, zero, zero), nodes)[0]


_KNOWN = {
    "erf": Unit(lambda x: erf(x / math.sqrt(2)), _erf, smooth=True),
    "relu": Unit(jax.nn.relu, _relu, smooth=False),
    "square": Unit(jnp.square, _square, smooth=True),
    "tanh": Unit(jnp.tanh, _AtNodes(jnp.tanh), smooth=True),
}

"""Loops in one function of machine code compute what they compute elsewhere."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.simulate.kernel import as_one_kernel, computed_once, program_of_kernels

MARK = "xla_cpu_small_call"
X = np.linspace(0.1, 0.9, 24).reshape(3, 8)
Y = np.cos(np.arange(8.0))


def smooth(x: jax.Array, y: jax.Array) -> jax.Array:
    value = jnp.tanh(x) * jax.nn.softplus(y) + jax.scipy.special.erf(x) * jnp.log1p(x)
    return value + jax.scipy.special.ndtri(x) + jnp.exp(-x) ** 3 + jax.nn.sigmoid(y) + jnp.sqrt(x)


def broken(x: jax.Array, y: jax.Array) -> jax.Array:
    chosen = jnp.where(x > y, jnp.abs(x), jnp.sign(y)) + jax.nn.relu(x - y) + jnp.maximum(x, 0.5)
    return chosen + jnp.floor(4 * x) + jnp.clip(y, -0.5, 0.5) + (x % 0.3)


def reduced(x: jax.Array, y: jax.Array) -> jax.Array:
    total = jnp.sum(x, axis=0) + jnp.max(x, axis=0) + jnp.prod(x, axis=0) + jnp.mean(y)
    return x + jax.nn.softmax(x, axis=0) + jax.nn.logsumexp(total)


def once(x: jax.Array, y: jax.Array) -> jax.Array:
    first, second = computed_once(lambda x, y, unused: (x * y, x + y))(x, y, 3.0)
    return first * second + first


def loops(x: jax.Array, y: jax.Array) -> jax.Array:
    inner = jax.lax.fori_loop(0, jnp.asarray(3), lambda i, z: z * 0.9 + i, x)
    carry, rows = jax.lax.scan(lambda c, row: (c + row, c * row), y, x)
    return jax.lax.cond(y[0] > 0, lambda: inner + carry, lambda: rows)


def gradient(x: jax.Array, y: jax.Array) -> jax.Array:
    return jax.vmap(jax.grad(lambda s, t: jnp.sum(jnp.tanh(s) ** 2) * t), (-1, -1), -1)(x, y)


def first_field(x: jax.Array, y: jax.Array) -> jax.Array:
    return jax.vmap(jax.grad(lambda s, t: jax.nn.relu(1 - t * s[0])), (-1, -1), -1)(x, y)


def product(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + x @ y[:, None]


def ordered(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.sort(x, axis=0) + y


def scattered(x: jax.Array, y: jax.Array) -> jax.Array:
    return x.at[jnp.asarray([0, 2])].add(y)


def summed(x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=0) * y


def solved(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + jnp.linalg.norm(jnp.linalg.cholesky(x @ x.T + jnp.eye(3))) * y


Function = Callable[[jax.Array, jax.Array], jax.Array]
WHOLE: list[Function] = [smooth, broken, reduced, once, loops, gradient, first_field]
USUAL: list[Function] = [product, ordered, scattered, summed, solved]


@pytest.mark.parametrize("function", WHOLE + USUAL, ids=lambda function: function.__name__)
def test_the_same_numbers(function: Function) -> None:
    """Whatever is used, unused, handed over twice, empty, or handed back as it came."""

    def repeated(x: jax.Array, y: jax.Array, *others: jax.Array) -> Any:
        steps, unused = others[0], others[1] * jnp.ones(3)
        start = (x, unused)
        x, unused = jax.lax.fori_loop(
            0, steps, lambda i, c: (0.5 * function(c[0], y), c[1] + 1), start
        )
        return {"x": x, "given": y, "twice": others[-1]}

    empty = np.zeros((0, 2))
    arguments = (X, Y, np.asarray(3), np.asarray(2.0), empty, Y)
    with jax.enable_x64(True):
        program = program_of_kernels(as_one_kernel(repeated))
        found = program(*map(jnp.asarray, arguments))
        expected = jax.jit(repeated)(*map(jnp.asarray, arguments))
        text = program.lower(*map(jnp.asarray, arguments)).as_text()  # type: ignore[attr-defined]
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12)
    assert (MARK in text) == (function in WHOLE)

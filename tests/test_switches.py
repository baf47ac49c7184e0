"""Switches read off the program of a function."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits._switches import UnreadableError, switches

POINT = jnp.array([0.25, -0.7])


def read(function: Any) -> Any:
    with jax.enable_x64(True):
        found = switches(function, [POINT.astype(float)])
    return sorted(np.abs(found.hard).tolist()), sorted(np.abs(found.soft).tolist())


@pytest.mark.parametrize(
    ("function", "hard", "soft"),
    [
        (lambda s: jnp.sum(s**2), [], []),
        (lambda s: jnp.sum(jax.nn.relu(s)), [0.25, 0.7], []),
        (lambda s: jnp.abs(s[0] - 1), [0.75], []),
        (lambda s: jnp.maximum(s[0], s[1]), [0.95], []),
        (lambda s: jnp.where(s[0] < 0.5, s[1], 0.0), [0.25], []),
        (lambda s: jnp.clip(s[1], -1, 1), [0.3, 1.7], []),
        (lambda s: jnp.max(s), [0.95, 0.95], []),
        (lambda s: s[jnp.argmax(s)], [0.95, 0.95], []),
        (lambda s: jnp.sign(s[0] * s[1]), [0.175], []),
        (lambda s: jnp.tanh(3 * s[0]) + jax.nn.sigmoid(s[1]), [], [0.7, 0.75]),
        (lambda s: jax.jit(jax.nn.relu)(s[0]), [0.25], []),
        (lambda s: jax.checkpoint(jnp.abs)(s[0]), [0.25], []),
    ],
)
def test_what_is_compared_is_read(function: Any, hard: Any, soft: Any) -> None:
    found_hard, found_soft = read(function)
    np.testing.assert_allclose(found_hard, hard, atol=1e-12)
    np.testing.assert_allclose(found_soft, soft, atol=1e-12)


def test_what_does_not_move_is_no_switch() -> None:
    with jax.enable_x64(True):
        found = switches(lambda s, v: s[0] * jnp.abs(v[1]), [POINT], [POINT])
    assert found.hard.shape == (0,)


@pytest.mark.parametrize(
    "function",
    [
        lambda s: jnp.floor(s[0]),
        lambda s: jax.lax.top_k(s, 1)[0][0],
        lambda s: jnp.sort(s)[0],
        lambda s: jax.lax.fori_loop(0, 3, lambda _, x: jnp.abs(x - 1), s[0]),
        lambda s: s[0].astype(int) * 1.0,
    ],
)
def test_hidden_jumps_are_named(function: Any) -> None:
    with pytest.raises(UnreadableError, match="it "):
        read(function)


def test_under_jit_vmap_and_derivatives() -> None:
    with jax.enable_x64(True):
        values = jax.jit(jax.vmap(lambda s: switches(lambda s: jax.nn.relu(2 * s[0]), [s]).hard))
        np.testing.assert_allclose(values(jnp.ones((3, 2))), np.full((3, 1), 2.0))
        slope = jax.jacfwd(lambda s: switches(lambda s: jax.nn.relu(2 * s[0]), [s]).hard)(POINT)
        np.testing.assert_allclose(slope, [[2.0, 0.0]])

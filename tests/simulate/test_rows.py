"""Rows of coordinates move as NumPy says, and their triangle has the same inner products."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.simulate.reflections import reflected, turned_back
from sgdlimits.simulate.rows import Carry, Rows, Rule, absorbed, lower, nothing, square
from sgdlimits.simulate.square_roots import square_roots

RUNS, DIM, R = 3, 50, 2
RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "readout": {"readout_step": 0.3},
    "normalised": {"normalised": True},
    "sphere": {"spherical": True},
    "tangential": {"spherical": True, "tangential": True},
    "momentum": {"retained": 0.7, "normalised": True, "readout_step": 0.5},
    "slow": {"friction": 2.0, "slow": True},
    "all": {"retained": 0.7, "normalised": True, "spherical": True, "tangential": True},
}


def moved(parts: list[np.ndarray], o: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """The steps at the top of ``sgdlimits._moves``, for one run, all rows in one basis."""
    v, W, u, U, g, G = parts
    delta, ridge = 0.2, 0.1
    if o.get("normalised"):
        norm = np.sqrt((g**2).sum() + (G**2).sum())
        g, G = DIM**0.5 * g / norm, DIM**0.5 * G / norm
    g, G = g + ridge * v, G + ridge * W
    if o.get("tangential"):
        units = W / np.linalg.norm(W, axis=1, keepdims=True)
        G = G - (G * units).sum(1, keepdims=True) * units
    if o.get("slow"):
        u, U = (
            (1 - o["friction"] * delta) * u + delta * g,
            (1 - o["friction"] * delta) * U + delta * G,
        )
        dv, dW = delta * u, delta * U
    else:
        u, U = o.get("retained", 0.0) * u + delta * g, o.get("retained", 0.0) * U + delta * G
        dv, dW = u, U
    v, W = v - o.get("readout_step", 1.0) * dv, W - dW
    if o.get("spherical"):
        W = W / np.linalg.norm(W, axis=1, keepdims=True)
    return v, W, u, U


@pytest.mark.parametrize("beyond", [0, 3])
@pytest.mark.parametrize("name", RULES)
def test_a_step_is_that_of_numpy(name: str, beyond: int) -> None:
    """Inner products of weights, velocities and anchors agree: the basis does not matter."""
    options, rng = RULES[name], np.random.default_rng(1)
    moving = "retained" in options or "friction" in options
    K, columns = 3, 6 if moving else 3
    v, u, g = rng.normal(size=(3, K, RUNS))
    wide = (K, R + columns, RUNS)
    W, U, G = rng.normal(size=wide), rng.normal(size=wide), rng.normal(size=wide)
    G = np.concatenate([G, rng.normal(size=(K, beyond, RUNS))], axis=1)
    with jax.enable_x64(True):
        rule = Rule(
            dim=jnp.asarray(float(DIM)),
            ridge=jnp.asarray(0.1),
            readout_step=jnp.asarray(options.get("readout_step", 1.0)),
            retained=jnp.asarray(options.get("retained", 0.0)),
            friction=jnp.asarray(options.get("friction", 0.0)),
            normalised=options.get("normalised", False),
            tangential=options.get("tangential", False),
            spherical=options.get("spherical", False),
            slow=options.get("slow", False),
        )
        carry = Carry(
            Rows(jnp.asarray(v), jnp.asarray(W)),
            Rows(jnp.asarray(u), jnp.asarray(U)) if moving else None,
        )
        gradient = Rows(jnp.asarray(g), jnp.asarray(G))
        found = jax.jit(lambda c, x: rule.move(c, x, jnp.asarray(0.2), R))(carry, gradient)
    pad = [(0, 0), (0, beyond), (0, 0)]
    W, U = np.pad(W, pad), np.pad(U, pad) * moving
    for i in range(RUNS):
        one = [part[..., i] for part in (v, W, u * moving, U, g, G)]
        v1, W1, u1, U1 = moved(one, options)
        np.testing.assert_allclose(found.weights.readout[:, i], v1, rtol=1e-12)
        both, rows = W1, np.asarray(found.weights.rows[..., i])
        if moving:
            assert found.velocity is not None
            np.testing.assert_allclose(found.velocity.readout[:, i], u1, rtol=1e-12)
            both = np.concatenate([W1, U1])
            rows = np.concatenate([rows, np.asarray(found.velocity.rows[..., i])])
        np.testing.assert_allclose(rows[:, :R], both[:, :R], atol=1e-12)
        np.testing.assert_allclose(
            rows[:, R:] @ rows[:, R:].T, both[:, R:] @ both[:, R:].T, atol=1e-11
        )


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_the_triangle_of_a_block(rows: int) -> None:
    """Written out and as a loop; singular, of very different rows, and without any."""
    rng = np.random.default_rng(rows)
    block = rng.normal(size=(rows, rows + 5, 4))
    block[-1, :, 1] = block[0, :, 1]
    block[:, :, 2] *= 10.0 ** -np.arange(0, 150, 150 / rows)[:rows, None]
    block[:, :, 3] = 0.0
    with jax.enable_x64(True):
        L = np.asarray(jax.jit(lower)(jnp.asarray(block)))
    assert L.shape == (rows, rows, 4)
    for i in range(4):
        assert np.all(np.triu(L[..., i], 1) == 0)
        norms = np.linalg.norm(block[..., i], axis=1)
        scale = np.where(norms > 0, np.outer(norms, norms), 1.0)
        gap = L[..., i] @ L[..., i].T - block[..., i] @ block[..., i].T
        assert np.max(np.abs(gap) / scale) < 1e-13


@pytest.mark.parametrize("rows", [1, 4, 8])
def test_columns_are_absorbed_into_a_triangle(rows: int) -> None:
    """Rows keep their accuracy where they are tiny, dependent, or nothing, in either part."""
    rng = np.random.default_rng(rows)
    L = np.abs(rng.normal(size=(rows, rows, 4))) * np.tri(rows)[:, :, None]
    columns = rng.normal(size=(rows, 3, 4))
    L[:, :, 1], columns[-1, :, 1] = 0.0, columns[0, :, 1]
    scale = 10.0 ** -np.arange(0, 150, 150 / rows)[:rows, None]
    L[:, :, 2] *= scale
    columns[:, :, 2] *= scale
    L[0, :, 3], columns[0, :, 3] = 0.0, 0.0
    with jax.enable_x64(True):
        panels = nothing(rows, 4)
        above = [rows - len(panel) for panel in panels]
        parts = [L[i:, i : i + panel.shape[1]] for i, panel in zip(above, panels, strict=True)]
        turned = jax.jit(absorbed)(jax.tree.map(jnp.asarray, tuple(parts)), jnp.asarray(columns))
        assert [part.shape for part in turned] == [part.shape for part in panels]
        after = np.asarray(square(turned))
    assert after.shape == L.shape
    for i in range(4):
        assert np.all(np.triu(after[..., i], 1) == 0)
        both = np.concatenate([L[..., i], columns[..., i]], axis=1)
        norms = np.linalg.norm(both, axis=1)
        sizes = np.where(np.outer(norms, norms) > 0, np.outer(norms, norms), 1.0)
        gap = after[..., i] @ after[..., i].T - both @ both.T
        assert np.max(np.abs(gap) / sizes) < 1e-13
        assert np.all(np.diag(after[..., i]) >= 0)


@pytest.mark.parametrize("K", [1, 3])
def test_reflections_turn_rows_to_a_triangle_and_back(K: int) -> None:
    """Orthogonal for singular rows, tiny ones and none."""
    rng = np.random.default_rng(K)
    rows = rng.normal(size=(K, 5, 4))
    rows[-1, :, 1] = rows[0, :, 1]
    rows[0, :, 2] *= 1e-200
    rows[:, :, 3] = 0.0

    def both(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
        L, reflections = reflected(rows)
        identity = jnp.broadcast_to(jnp.eye(5)[:, :, None], (5, 5, 4))
        return L, turned_back(identity, reflections)

    with jax.enable_x64(True):
        L, H = map(np.asarray, jax.jit(both)(jnp.asarray(rows)))
    for i in range(4):
        assert np.all(np.triu(L[..., i], 1) == 0)
        np.testing.assert_allclose(H[..., i] @ H[..., i].T, np.eye(5), atol=1e-14)
        size = np.maximum(np.linalg.norm(rows[..., i], axis=1), 1e-300)[:, None]
        np.testing.assert_allclose(L[..., i] @ H[:K, :, i] / size, rows[..., i] / size, atol=1e-14)


def test_what_overflows_is_not_finite() -> None:
    with jax.enable_x64(True):
        L = lower(jnp.full((2, 3, 1), 1e200))
        after = square(absorbed(nothing(2, 1), jnp.full((2, 3, 1), 1e200)))
    assert not np.isfinite(np.asarray(L)).all()
    assert not np.isfinite(np.asarray(after)).all()


def test_roots_with_few_columns() -> None:
    thin = np.random.default_rng(0).normal(size=(2, 4, 2))
    R = thin @ np.swapaxes(thin, 1, 2)
    C = square_roots(R, 2)
    np.testing.assert_allclose(C @ np.swapaxes(C, 1, 2), R, atol=1e-13)
    with pytest.raises(sl.InputError, match=r"init\['R'\]=.* rank must be at most 1"):
        square_roots(R, 1)

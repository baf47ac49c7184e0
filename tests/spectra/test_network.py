"""Matrices of any loss: against full automatic differentiation, block by block."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgdlimits.spectra import Network

RNG = np.random.default_rng(0)
PARAMS = {
    "hidden": [RNG.normal(size=(3, 4)), RNG.normal(size=3)],
    "out": RNG.normal(size=3),
}
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=20)


def loss(params: Any, x: jax.Array, y: jax.Array) -> jax.Array:
    weight, bias = params["hidden"]
    return (params["out"] @ jnp.tanh(weight @ x + bias) - y) ** 2 / 2


def whole(matrix: str) -> np.ndarray:
    with jax.enable_x64(True):
        flat, restore = ravel_pytree(PARAMS)

        def one(flat: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
            return loss(restore(flat), x, y)

        if matrix == "hessian":
            return np.asarray(jax.vmap(jax.hessian(one), (None, 0, 0))(flat, X, Y).mean(0))
        gradients = jax.vmap(jax.grad(one), (None, 0, 0))(flat, X, Y)
        return np.asarray(gradients.T @ gradients / len(X))


@pytest.mark.parametrize("matrix", ["hessian", "gradient"])
def test_blocks(matrix: str) -> None:
    network = Network(loss, X, Y)
    assert network.blocks(PARAMS) == ["hidden/0", "hidden/1", "out", "all"]
    full = whole(matrix)
    assert network.dense(PARAMS, matrix, "all") == pytest.approx(full, abs=1e-12)
    places = {"hidden/0": slice(0, 12), "hidden/1": slice(12, 15), "out": slice(15, 18)}
    for name, place in places.items():
        assert network.dense(PARAMS, matrix, name) == pytest.approx(full[place, place], abs=1e-12)
    pairs = network.leading(PARAMS, matrix, "hidden/0", 3)
    values = np.linalg.eigvalsh(full[:12, :12])
    assert np.sort(np.abs(pairs.values)) == pytest.approx(np.sort(np.abs(values))[-3:], rel=1e-5)
    assert 0 < network.alignment(PARAMS, matrix, "hidden/0", 3) <= 1
    nodes, weights = network.density(PARAMS, matrix, "all", probes=50, steps=18)
    assert weights.sum() == pytest.approx(1)
    assert nodes.min() >= np.linalg.eigvalsh(full)[0] - 1e-9


def test_wrong_input_is_named() -> None:
    network = Network(loss, X, Y)
    with pytest.raises(ValueError, match=r"block='w' is not allowed.*'hidden/0'"):
        network.dense(PARAMS, "hessian", "w")
    with pytest.raises(ValueError, match="matrix='fisher' is not allowed"):
        network.dense(PARAMS, "fisher", "out")
    with pytest.raises(ValueError, match="20 and 3 samples"):
        Network(loss, X, Y[:3])
    with pytest.raises(ValueError, match="rank=4 is not allowed: block 'out' has only 3"):
        network.leading(PARAMS, "hessian", "out", 4)

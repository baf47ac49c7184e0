"""The tangent kernel of real networks is that of their gradients; training is gradient descent."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures.networks import Network, Weights, random_feature_kernel

X = np.random.default_rng(0).standard_normal((5, 3))
Z = np.random.default_rng(1).standard_normal((4, 3))


def by_hand(weights: Weights, x: jax.Array, bias: float) -> jax.Array:
    """tanh, written out again."""
    for number, (W, b) in enumerate(weights):
        x = W @ (x if number == 0 else jnp.tanh(x)) / np.sqrt(W.shape[1]) + bias * b
    return x


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_kernel_is_that_of_gradients(depth: int, outputs: int) -> None:
    """Exactly; with the prefactor 1/√p of the printed definition it is not."""
    network = Network(3, width=7, depth=depth, outputs=outputs, activation="tanh", bias=0.4)
    weights = network.random_weights(seed=2)
    with jax.enable_x64(True):

        def gradient(x: np.ndarray) -> np.ndarray:
            parts = jax.jacobian(by_hand)(weights, x, 0.4)
            leaves = jax.tree.leaves(parts)
            return np.concatenate([np.asarray(part).reshape(outputs, -1) for part in leaves], 1)

        left, right = (np.stack([gradient(x) for x in rows]) for rows in (X, Z))
        values = np.stack([by_hand(weights, x, 0.4) for x in X])
    expected = np.einsum("iap,jbp->ijab", left, right)
    if outputs == 1:
        expected = expected[..., 0, 0]
    found = network.tangent_kernel(weights, X, Z)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert not np.allclose(found, expected / np.sqrt(left.shape[-1]), rtol=0.1)
    np.testing.assert_allclose(network.values(weights, X), values, atol=1e-12)


def test_training_is_gradient_descent() -> None:
    """Step by step, by automatic derivatives of the loss written out."""
    network = Network(3, width=6, depth=3, activation="tanh", bias=0.3)
    y, weights = np.arange(5.0), network.random_weights(seed=4)
    path = network.train(X, y, tests=Z, times=[0.0, 0.05, 0.1], step=0.05, seed=4)
    with jax.enable_x64(True):

        @jax.jit
        def loss(weights: Weights) -> jax.Array:
            values = jax.vmap(lambda x: by_hand(weights, x, 0.3)[0])(jnp.asarray(X))
            return jnp.sum((y - values) ** 2) / 10

        for row in range(3):
            assert path.loss[row] == pytest.approx(float(loss(weights)), rel=1e-12)
            np.testing.assert_allclose(
                path.prediction[row], [by_hand(weights, z, 0.3)[0] for z in Z], atol=1e-12
            )
            weights = jax.tree.map(lambda w, g: w - 0.05 * g, weights, jax.grad(loss)(weights))
    assert np.all(path.motion[0] == 0)
    assert np.all(path.motion[1] > 0)
    assert np.all(np.diff(path.kernel_change) > 0)


def test_random_features_are_drawn_once() -> None:
    kernel = random_feature_kernel(X, 50, others=Z, activation="erf", seed=3)
    assert kernel.shape == (5, 4)
    np.testing.assert_array_equal(
        random_feature_kernel(X, 50, activation="erf", seed=3),
        random_feature_kernel(X, 50, others=X, activation="erf", seed=3),
    )
    assert np.any(kernel != random_feature_kernel(X, 50, others=Z, activation="erf", seed=4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dim": 0}, "dim=0"),
        ({"width": 0}, "width=0"),
        ({"depth": 0}, "depth=0 is not allowed: depth must be an integer >= 1"),
        ({"depth": 1.5}, "depth=1.5"),
        ({"outputs": 0}, "outputs=0"),
        ({"activation": "step"}, "activation='step'"),
        ({"bias": -1.0}, "bias=-1.0"),
    ],
)
def test_wrong_networks(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        Network(**({"dim": 3} | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": [1.0, 2.0]}, r"inputs has shape \(2,\)"),
        ({"inputs": [[1.0, 2.0]]}, r"inputs has shape \(1, 2\), .* a row of 3 numbers"),
        ({"targets": [1.0]}, r"targets has shape \(1,\)"),
        ({"times": [1.0, 0.5]}, "times must increase"),
        ({"times": []}, "times must increase"),
        ({"times": 1.0}, "times must increase"),
        ({"times": None}, "times=None is not allowed"),
        ({"times": [0.0, 1e30]}, "times must be at most .* steps"),
        ({"inputs": None}, "inputs=None is not allowed"),
        ({"inputs": np.zeros((5, 3))}, "inputs=.* tangent kernel"),
        ({"inputs": 1e200 * X}, "inputs=.* tangent kernel"),
        ({"targets": 1.0}, "targets has shape"),
        ({"step": 1e3}, "step must be below"),
    ],
)
def test_wrong_training(arguments: dict[str, object], message: str) -> None:
    right = {"inputs": X, "targets": np.zeros(5), "tests": Z, "times": [0.0, 1.0]}
    with pytest.raises(sl.InputError, match=message):
        Network(3, width=4).train(**(right | arguments))  # type: ignore[arg-type]


def test_several_outputs_are_not_trained() -> None:
    with pytest.raises(sl.InputError, match="outputs must be 1 to train"):
        Network(3, width=4, outputs=2).train(X, np.zeros(5), tests=Z, times=[1.0])


def test_the_step_is_one_with_which_the_loss_falls() -> None:
    """Large targets let the kernel grow: steps that are small for that of the start overshoot."""
    network, targets = Network(3, width=8, depth=3), 100 * np.sin(np.arange(1.0, 6.0))
    path = network.train(X, targets, tests=Z, times=[0.0, 1.0, 10.0])
    begun = network.tangent_kernel(network.random_weights(), X)
    plain = 0.05 * 5 / np.linalg.eigvalsh(begun)[-1]
    halvings = np.log2(plain / path.attrs["step"])
    assert 1 <= halvings <= 12
    assert halvings == pytest.approx(round(halvings), abs=1e-9)
    assert np.all(np.diff(path.loss) < 0)
    with pytest.raises(sl.InputError, match=r"step=.* must be smaller, the loss rises"):
        network.train(X, targets, tests=Z, times=[0.0, 1.0, 10.0], step=plain)


@pytest.mark.parametrize("weights", [None, 1.0, [], [(np.ones((2, 3)), np.ones(2))], "weights"])
def test_weights_of_another_network_are_refused(weights: Any) -> None:
    with pytest.raises(sl.InputError, match="weights of shapes"):
        Network(3, width=4).values(weights, X)
    with pytest.raises(sl.InputError, match="weights of shapes"):
        Network(3, width=4).tangent_kernel(weights, X)

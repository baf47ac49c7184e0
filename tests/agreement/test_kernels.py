"""Kernels of infinite width against networks, as width grows; the flow against training."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.lectures.networks import Network, random_feature_kernel
from sgdlimits.theory import ntk

X = np.random.default_rng(0).standard_normal((6, 4))
WIDTHS = (32, 128, 512)


def slope(gaps: list[Any]) -> float:
    return float(np.polyfit(np.log(WIDTHS), np.log(gaps), 1)[0])


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_kernels_converge_like_one_over_the_root_of_the_width(activation: str) -> None:
    known = jnp.tanh if activation == "tanh" else activation
    limit = ntk.kernels(X, depth=3, activation=known, bias=0.5).ntk.value
    size, gaps, means = np.linalg.norm(limit), [], []
    for width in WIDTHS:
        network = Network(4, width=width, depth=3, activation=activation, bias=0.5)
        drawn = [network.tangent_kernel(network.random_weights(seed), X) for seed in range(24)]
        gaps.append(np.sqrt(np.mean([np.sum((K - limit) ** 2) for K in drawn])) / size)
        means.append(np.mean(drawn, axis=0))
    # a mean square of 24 has an error of 0.5 √(2/24) at most, of its logarithm: 0.15 at each end
    assert slope(gaps) == pytest.approx(-0.5, abs=4 * 0.15 * np.sqrt(2) / np.log(16))
    errors = np.std(drawn, axis=0, ddof=1) / np.sqrt(24)
    bound = 4 * errors + 2 * size / 6 / WIDTHS[-1]  # standard errors, and a bias of 1/width
    assert np.all(np.abs(means[-1] - limit) < bound)
    doubled = 2 * limit  # of weights with a variance of 2
    assert np.any(np.abs(means[-1] - doubled) > 10 * bound)


def test_several_outputs_are_independent() -> None:
    """K∞ ⊗ identity."""
    limit = ntk.kernels(X, depth=3).ntk.value
    network = Network(4, width=1000, depth=3, outputs=2)
    K = network.tangent_kernel(network.random_weights(seed=1), X)
    size = np.linalg.norm(limit)
    assert np.linalg.norm(K[..., 0, 0] - limit) < 0.3 * size
    assert np.linalg.norm(K[..., 1, 1] - limit) < 0.3 * size
    assert np.linalg.norm(K[..., 0, 1]) < 0.3 * size


def test_outputs_at_the_start_have_the_covariance_of_the_process() -> None:
    limit = ntk.kernels(X, depth=3, activation="erf", bias=0.5).nngp.value
    network = Network(4, width=200, depth=3, activation="erf", bias=0.5)
    f = np.stack([network.values(network.random_weights(s), X)[:, 0] for s in range(400)])
    products = f[:, :, None] * f[:, None, :]
    errors = products.std(axis=0, ddof=1) / 20
    assert np.all(np.abs(products.mean(axis=0) - limit) < 4 * errors + 1 / 200)


def test_random_features() -> None:
    """Their mean is the kernel, and the rate is exact: variances are 1/m of those of one."""
    limit = ntk.kernels(X, depth=2, activation="erf").nngp.value
    gaps = []
    for features in WIDTHS:
        drawn = np.array(
            [random_feature_kernel(X, features, activation="erf", seed=s) for s in range(100)]
        )
        errors = drawn.std(axis=0, ddof=1) / 10
        assert np.all(np.abs(drawn.mean(axis=0) - limit) < 4.5 * errors)  # 21 entries
        gaps.append(np.sqrt(np.mean((drawn - limit) ** 2)))
    assert slope(gaps) == pytest.approx(-0.5, abs=4 * 0.5 * np.sqrt(2 / 100) * 1.42 / np.log(16))


def test_wide_networks_train_as_their_kernel_says() -> None:
    """Predictions at all times come nearer with width, and the weights move less (Lemma 8.8)."""
    Z = np.random.default_rng(1).standard_normal((8, 4))
    y, times = np.sin(2 * X[:, 0]), np.array([0.0, 1.0, 5.0, 25.0])
    K = ntk.kernels(X, depth=3, bias=0.5).ntk.value
    cross = ntk.kernels(Z, X, depth=3, bias=0.5).ntk.value
    gaps, moved, printed = [], [], []
    for width in WIDTHS:
        network = Network(4, width=width, depth=3, bias=0.5)
        apart, motion, change = [], [], []
        for seed in range(3):
            path = network.train(X, y, tests=Z, times=times, seed=seed)
            start = {"start": path.fit[0].values, "cross_start": path.prediction[0].values}
            said = ntk.predictions(K, cross, y, times=path.time.values, **start)
            apart.append(np.mean((path.prediction.values - said) ** 2))
            motion.append(float(path.motion[:, 1].max()))
            W = network.random_weights(seed)[1][0]
            # at least ‖W(0)‖(1 − 1/√n) − ‖W(t) − W(0)‖/√n
            change.append(np.linalg.norm(W, 2) * (1 - width**-0.5) - motion[-1])
        gaps.append(np.sqrt(np.mean(apart)))
        moved.append(np.mean(motion))
        printed.append(np.mean(change))
    assert gaps[-1] < 0.06
    assert gaps[-1] < gaps[0] / 2
    assert slope(moved) == pytest.approx(-0.5, abs=0.15)
    assert printed[-1] > 3 * printed[0]  # ‖W(t)/√n − W(0)‖, without parentheses, grows

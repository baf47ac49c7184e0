"""Gradient descent and its flow find what theory says, from any start and at any time."""

from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures import descent
from sgdlimits.theory import implicit_bias

LATE = 10.0 ** np.arange(0, 31, 3)


@pytest.fixture(scope="module")
def equations() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((6, 15)), rng.standard_normal(6), rng.standard_normal(15)


def test_least_squares_finds_the_nearest_interpolant(
    equations: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, start = equations
    end = descent.gradient_descent(X, y, start=start, steps=2000).weights[-1].values
    np.testing.assert_allclose(
        end, implicit_bias.nearest_interpolant(X, y, start), rtol=0, atol=1e-9
    )
    assert np.linalg.norm(end - implicit_bias.nearest_interpolant(X, y)) > 1
    flow = descent.gradient_flow(X, y, loss="square", start=start, times=[0.0, 0.3, 1e3, 1e9])
    np.testing.assert_allclose(flow.weights[-1], end, atol=1e-7)
    assert float(flow.loss[-1]) < 1e-12


def test_paths_of_least_squares_are_exact(
    equations: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """(I − 2ηH)ᵏ and e^(−2Ht) of the distance to the limit, H = XᵀX/n."""
    X, y, start = equations
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    limit = implicit_bias.nearest_interpolant(X, y, start)

    def at(factors: np.ndarray) -> np.ndarray:
        return np.asarray(limit + vectors @ (factors * (vectors.T @ (start - limit))))

    path = descent.gradient_descent(X, y, start=start, step=0.01, steps=50)
    np.testing.assert_allclose(path.weights[-1], at((1 - 0.02 * values) ** 50), atol=1e-12)
    assert path.time[-1] == pytest.approx(0.5)
    flow = descent.gradient_flow(X, y, loss="square", start=start, times=[0.5, 2.0])
    for row, time in zip(flow.weights.values, (0.5, 2.0), strict=True):
        np.testing.assert_allclose(row, at(np.exp(-2 * values * time)), atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize(("seed", "dim"), [(3, 2), (4, 5), (5, 5)])
def test_the_flow_is_the_largest_margin_and_a_bounded_rest(loss: str, seed: int, dim: int) -> None:
    """Theorem 4.7 with 1/n: the rest in the span of the support tends to w̃, at the power p."""
    X, y = descent.separable_data(dim, 40, seed=seed)
    found, expected = implicit_bias.max_margin(X, y), implicit_bias.offset(X, y)
    power = implicit_bias.settling_power(X, y)
    start = np.random.default_rng(seed).standard_normal(dim)
    flow = descent.gradient_flow(X, y, loss=loss, times=LATE, start=start)
    rest = flow.weights.values - np.log(LATE)[:, None] * found.weights
    span = np.linalg.svd(X[found.support], full_matrices=False)[2]
    apart = np.linalg.norm((rest - expected) @ span.T, axis=1)
    assert apart[-1] < 2 * apart[5] * (LATE[-1] / LATE[5]) ** -power + 1e-6
    assert apart[-1] < 1e-2
    printed = expected + found.weights * np.log(len(X))
    assert np.linalg.norm((rest[-1] - printed) @ span.T) > 1
    # p itself, where the distance is above rounding
    seen = (apart > 1e-6) & (LATE > 1e9)
    slope = np.polyfit(np.log(LATE[seen]), np.log(apart[seen]), 1)[0]
    assert slope == pytest.approx(-power, rel=0.1)


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_the_direction_converges_like_one_over_log_t(loss: str) -> None:
    X, y = descent.separable_data(2, 40, seed=3)
    found = implicit_bias.max_margin(X, y)
    best = found.weights / np.linalg.norm(found.weights)
    times = 10.0 ** np.array([20, 40, 80, 160, 290])
    w = descent.gradient_flow(X, y, loss=loss, times=times).weights.values
    gap = np.linalg.norm(w / np.linalg.norm(w, axis=1, keepdims=True) - best, axis=1)
    scaled = gap * (np.log(times) + implicit_bias.offset(X, y) @ best * found.margin)
    np.testing.assert_allclose(scaled, scaled[-1], rtol=1e-3)
    assert gap[-1] < gap[0] / 10


def test_descent_follows_the_flow() -> None:
    X, y = descent.separable_data(3, 20, seed=2)
    steps = descent.gradient_descent(X, y, loss="logistic", step=0.01, steps=5000)
    flow = descent.gradient_flow(X, y, times=steps.time[1:].values)
    np.testing.assert_allclose(steps.weights[1:], flow.weights, atol=0.02)
    assert np.all(np.diff(steps.loss) < 0)
    large = descent.gradient_descent(X, y, loss="logistic", steps=5000)
    assert large.time[-1] > steps.time[-1]
    best = implicit_bias.max_margin(X, y).weights
    for path in (steps, large):
        w = path.weights[-1].values
        assert w @ best / np.linalg.norm(w) / np.linalg.norm(best) > 0.97


def test_data_that_are_not_separable_have_a_minimum() -> None:
    """The logistic loss then has one, and the flow finds it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.choice([-1.0, 1.0], 60)
    assert implicit_bias.certificate(X, y) is not None
    flow = descent.gradient_flow(X, y, times=[1e3, 1e9])
    np.testing.assert_allclose(flow.weights[0], flow.weights[1], atol=1e-8)


def test_separable_data() -> None:
    X, y = descent.separable_data(4, 100, gap=0.5, seed=1)
    assert set(y) == {-1.0, 1.0}
    assert np.min(y * X[:, 0]) >= 0.5
    assert implicit_bias.max_margin(X, y).margin >= 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge' is not allowed"),
        ({"features": [1.0, 2.0]}, r"features has shape \(2,\)"),
        ({"targets": [1.0, 2.0], "loss": "logistic"}, "targets must be 1 or −1"),
        ({"step": 10.0}, r"step=10.0 is not allowed: step must be below"),
        ({"step": 10.0, "loss": "exponential", "targets": [1.0, -1.0]}, "step must be smaller"),
        ({"step": 0.0}, r"step=0.0 is not allowed"),
        ({"steps": 0}, "steps=0 is not allowed"),
        ({"start": [1.0]}, r"start has shape \(1,\)"),
    ],
)
def test_wrong_input(arguments: dict[str, object], message: str) -> None:
    right: dict[str, object] = {"features": [[3.0, 0.0], [4.0, 1.0]], "targets": [1.0, 1.0]}
    with pytest.raises(sl.InputError, match=message):
        descent.gradient_descent(**(right | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [[], [1.0, 1.0], [-1.0, 1.0], [1.0, np.inf], 1.0, None])
def test_wrong_times(times: Any) -> None:
    with pytest.raises(sl.InputError, match=r"^times"):
        descent.gradient_flow([[1.0]], [1.0], times=times)


def test_a_start_without_a_gradient() -> None:
    with pytest.raises(sl.InputError, match="start must have a finite gradient"):
        descent.gradient_flow([[1.0]], [1.0], loss="exponential", times=[1.0], start=[-1e4])
    far = descent.gradient_flow([[1.0]], [1.0], times=[1e5], start=[-1e4])  # logistic has one
    assert float(far.weights[0, 0]) > 0

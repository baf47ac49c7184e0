"""Residual networks become their differential equation as layers multiply."""

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures.feed_forward import FeedForward
from sgdlimits.lectures.residual import neural_ode, residual_network


def test_the_equation_is_solved() -> None:
    """ẋ = c x where relu is the identity."""
    block = FeedForward(0.7 * np.eye(2), np.eye(2), np.zeros(2), "relu")
    found = neural_ode([[1.0, 2.0]], block, time=3.0)
    np.testing.assert_allclose(found, np.exp(2.1) * np.array([[1.0, 2.0]]), rtol=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_networks_converge_like_one_over_the_number_of_layers(activation: str) -> None:
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal((2, 4, 4)) / 2
    block = FeedForward(w, a, rng.standard_normal(4), activation)
    x = rng.standard_normal((3, 4))
    limit = neural_ode(x, block, time=2.0)
    layers = np.array([64, 128, 256])
    gaps = [np.linalg.norm(residual_network(x, block, layers=n, time=2.0) - limit) for n in layers]
    assert np.polyfit(np.log(layers), np.log(gaps), 1)[0] == pytest.approx(-1, abs=0.05)


def test_wrong_input() -> None:
    block = FeedForward(np.eye(2), np.eye(2), np.zeros(2))
    with pytest.raises(sl.InputError, match="layers=0 is not allowed"):
        residual_network([[1.0, 2.0]], block, layers=0)
    with pytest.raises(sl.InputError, match="inner has shape"):
        neural_ode([[1.0, 2.0, 3.0]], block)
    with pytest.raises(sl.InputError, match="inputs has shape"):
        neural_ode([1.0], block)  # type: ignore[list-item]
    with pytest.raises(sl.InputError, match=r"time=0\.0 is not allowed"):
        neural_ode([[1.0, 2.0]], block, time=0.0)
    with pytest.raises(sl.InputError, match="block=None is not allowed"):
        residual_network([[1.0, 2.0]], None, layers=2)  # type: ignore[arg-type]


def test_outputs_beyond_the_numbers_are_refused() -> None:
    block = FeedForward([[1e4]], [[1.0]], [0.0], "relu")
    with pytest.raises(sl.InputError, match=r"time=100\.0 is not allowed: .* finite"):
        residual_network([[1.0]], block, layers=200, time=100.0)

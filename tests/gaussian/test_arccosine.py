"""Arc-cosine kernels against one-dimensional quadrature, and their limits at the kink."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sgdlimits.gaussian.arccosine import relu_gradient, relu_product, step_product, step_relu

PAIRS = [(1.0, 0.3, 2.0), (0.5, -0.6, 1.5), (1.0, 0.0, 1.0), (2.0, 1.9, 2.0)]


def half_line(f: Callable[[float, float, float], float], c: tuple[float, float, float]) -> float:
    """Integral over x > 0 of f(x, mean of y given x, sd of y given x) against the law of x."""
    c11, c12, c22 = c
    sd = np.sqrt(c22 - c12**2 / c11)

    def inner(x: float) -> float:
        return f(x, c12 / c11 * x, sd) * float(norm.pdf(x, scale=np.sqrt(c11)))

    return float(quad(inner, 0, 12 * np.sqrt(c11), epsabs=1e-13, epsrel=1e-12, limit=200)[0])


def relu_mean(mean: float, sd: float) -> float:
    return float(mean * norm.cdf(mean / sd) + sd * norm.pdf(mean / sd))


@pytest.mark.parametrize("c", PAIRS)
def test_kernels_match_quadrature(c: tuple[float, float, float]) -> None:
    with jax.enable_x64(True):
        step, relu, mixed = (float(f(*c)) for f in (step_product, relu_product, step_relu))
    assert step == pytest.approx(half_line(lambda x, m, s: float(norm.cdf(m / s)), c), rel=1e-10)
    assert mixed == pytest.approx(half_line(lambda x, m, s: relu_mean(m, s), c), rel=1e-10)
    exact = half_line(lambda x, m, s: x * relu_mean(m, s), c)
    assert relu == pytest.approx(exact, rel=1e-10)
    assert 2 * relu != pytest.approx(exact, rel=1e-2)  # the kernel of Cho and Saul without 1/2


def test_relu_gradient_matches_monte_carlo() -> None:
    factor = np.array([[1.0, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.5, 0.7]])
    x, y, z = factor @ np.random.default_rng(0).normal(size=(3, 10**6))
    samples = (x > 0) * y * np.maximum(z, 0)
    error = samples.std() / 10**3
    with jax.enable_x64(True):
        value = float(relu_gradient(factor @ factor.T))
        edge_free = float((factor @ factor.T)[1, 2] * step_product(1.0, -0.3, 0.83))
    assert abs(value - samples.mean()) < 4 * error
    assert abs(edge_free - samples.mean()) > 10 * error  # without the boundary term it fails


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_parallel_fields(sign: float) -> None:
    c = (2.0, sign * 1.0, 0.5)
    with jax.enable_x64(True):
        positive = float(sign > 0)
        assert float(step_product(*c)) == pytest.approx(0.5 * positive, abs=1e-12)
        assert float(relu_product(*c)) == pytest.approx(0.5 * positive, abs=1e-12)
        derivative = jax.grad(relu_product, argnums=(0, 1, 2))(*c)
        np.testing.assert_allclose(derivative, [0.0, 0.5 * positive, 0.0], atol=1e-12)
        for function in (step_product, step_relu):
            assert np.all(np.isfinite(jax.grad(function, argnums=(0, 1, 2))(*c)))


def test_vanishing_fields_are_symmetric() -> None:
    with jax.enable_x64(True):
        assert float(step_product(0.0, 0.0, 1.0)) == pytest.approx(0.25)
        assert float(step_product(0.0, 0.0, 0.0)) == pytest.approx(0.25)
        assert float(relu_product(0.0, 0.0, 1.0)) == 0.0
        assert float(step_relu(0.0, 0.0, 1.0)) == pytest.approx(0.5 / np.sqrt(2 * np.pi))
        for function in (step_product, relu_product, step_relu):
            assert np.all(np.isfinite(jax.grad(function, argnums=(0, 1, 2))(0.0, 0.0, 1.0)))
            assert np.all(np.isfinite(jax.grad(function, argnums=(0, 1, 2))(0.0, 0.0, 0.0)))


@pytest.mark.parametrize("function", [step_product, relu_product, step_relu])
@pytest.mark.parametrize("c", PAIRS)
def test_derivatives_match_differences(
    function: Callable[..., jax.Array], c: tuple[float, float, float]
) -> None:
    with jax.enable_x64(True):
        derivative = jax.jit(jax.grad(function, argnums=(0, 1, 2)))(*c)
        for axis, value in enumerate(derivative):
            shift = np.zeros(3)
            shift[axis] = 1e-6
            numerical = (function(*(c + shift)) - function(*(c - shift))) / 2e-6
            assert float(value) == pytest.approx(float(numerical), abs=1e-8)


def test_single_precision_and_broadcasting() -> None:
    values = relu_product(jnp.ones(3), jnp.asarray([-1.0, 0.0, 1.0]), 1.0)
    assert values.dtype == jnp.float32
    np.testing.assert_allclose(values, [0.0, 1 / (2 * np.pi), 0.5], atol=1e-6)

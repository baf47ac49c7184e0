"""Closed forms of the error function against tensor Gauss-Hermite quadrature."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

from sgdlimits.gaussian.erf import erf_curvature, erf_gradient, erf_product, erf_slopes


def g(x: np.ndarray) -> np.ndarray:
    return erf(x / np.sqrt(2))


def slope(x: np.ndarray) -> np.ndarray:
    return np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2)


def covariance(size: int, seed: int, rank: int | None = None) -> np.ndarray:
    factor = np.random.default_rng(seed).normal(size=(size, rank or size))
    matrix = factor @ factor.T
    return matrix / np.trace(matrix) * size * 0.5


def expectation(f: Callable[..., np.ndarray], c: np.ndarray, nodes: int) -> float:
    """E f(x_1, ..., x_n) for x ~ N(0, c), singular c allowed: nodes live on the range of c."""
    values, vectors = np.linalg.eigh(c)
    kept = values > 1e-12
    root = vectors[:, kept] * np.sqrt(values[kept])
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[t] * kept.sum(), indexing="ij")).reshape(kept.sum(), -1)
    weights = np.prod(np.meshgrid(*[w] * kept.sum(), indexing="ij"), axis=0).ravel()
    return float(f(*(root @ grid)) @ weights / np.sqrt(2 * np.pi) ** kept.sum())


@pytest.mark.parametrize("seed", range(3))
def test_product_matches_quadrature(seed: int) -> None:
    c = covariance(2, seed)
    with jax.enable_x64(True):
        value = float(erf_product(c[0, 0], c[0, 1], c[1, 1]))
        pair = float(erf_slopes(c[0, 0], c[0, 1], c[1, 1]))
    assert value == pytest.approx(expectation(lambda x, y: g(x) * g(y), c, 120), rel=1e-10)
    assert pair == pytest.approx(expectation(lambda x, y: slope(x) * slope(y), c, 120), rel=1e-10)


@pytest.mark.parametrize(("seed", "rank"), [(0, 3), (1, 3), (2, 2), (3, 1)])
def test_gradient_matches_quadrature(seed: int, rank: int) -> None:
    c = covariance(3, seed, rank)
    with jax.enable_x64(True):
        value = float(erf_gradient(c))
    exact = expectation(lambda x, y, z: slope(x) * y * g(z), c, 80)
    assert value == pytest.approx(exact, rel=1e-9)
    assert 2 * value / np.sqrt(2) != pytest.approx(exact, rel=1e-2)  # a wrong prefactor fails


@pytest.mark.parametrize(("seed", "rank"), [(0, 4), (1, 3), (2, 2), (3, 1)])
def test_curvature_matches_quadrature(seed: int, rank: int) -> None:
    c = covariance(4, seed, rank)
    with jax.enable_x64(True):
        value = float(erf_curvature(c))
    exact = expectation(lambda w, x, y, z: slope(w) * slope(x) * g(y) * g(z), c, 32)
    assert value == pytest.approx(exact, rel=1e-7)
    assert value * np.pi / 2 != pytest.approx(exact, rel=1e-2)  # a wrong prefactor fails


def test_large_equal_fields_keep_their_distance_from_one() -> None:
    with jax.enable_x64(True):
        variance = 1e10
        value = float(erf_product(variance, variance, variance))
    # 1 - (2/pi) arcsin(c / (1 + c)) ~ (2/pi) sqrt(2 / c)
    assert 1 - value == pytest.approx(2 / np.pi * np.sqrt(2 / variance), rel=1e-4)


@pytest.mark.parametrize("c", [np.ones((4, 4)), np.zeros((4, 4))], ids=["repeated", "zero"])
def test_derivatives_exist_for_singular_covariances(c: np.ndarray) -> None:
    with jax.enable_x64(True):
        for function, size in ((erf_gradient, 3), (erf_curvature, 4)):
            block = jnp.asarray(c[:size, :size])
            derivative = np.asarray(jax.grad(lambda m, f=function: f(m))(block))
            assert np.all(np.isfinite(derivative))
            for i, j in itertools.product(range(size), repeat=2):
                shift = jnp.zeros((size, size)).at[i, j].set(1e-5)
                numerical = (function(block + shift) - function(block - shift)) / 2e-5
                assert derivative[i, j] == pytest.approx(float(numerical), abs=1e-9)


def test_leading_axes_broadcast_and_dtype_is_kept() -> None:
    stack = np.stack([covariance(4, seed) for seed in range(3)]).astype(np.float32)
    values = erf_curvature(stack)
    assert values.shape == (3,)
    assert values.dtype == jnp.float32
    with jax.enable_x64(True):
        alone = [float(erf_curvature(c.astype(np.float64))) for c in stack]
    np.testing.assert_allclose(values, alone, rtol=2e-5)


def test_wrong_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"covariance has shape \(2, 2\).*\(\.\.\., 3, 3\)"):
        erf_gradient(np.eye(2))

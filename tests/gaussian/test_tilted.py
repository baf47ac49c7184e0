"""Moments with powers of a residual, against quadrature and Wick's formula."""

import math

import jax
import numpy as np

from sgdlimits.gaussian import (
    moment,
    quadratic_square_second,
    tilted,
    tilted_fourth,
    tilted_second,
)


def example(seed: int) -> tuple[np.ndarray, np.ndarray]:
    form, factor = np.random.default_rng(seed).normal(size=(2, 3, 3))
    return (form + form.T) / 3, factor @ factor.T / 3


def test_against_gauss_hermite() -> None:
    noise = 0.7
    form, covariance = example(0)
    t, w = np.polynomial.hermite_e.hermegauss(7)  # exact for degree 13
    grid = np.stack(np.meshgrid(t, t, t, t, indexing="ij")).reshape(4, -1)
    weights = np.einsum("i,j,k,l->ijkl", w, w, w, w).ravel() / (2 * math.pi) ** 2
    fields = np.linalg.cholesky(covariance) @ grid[:3]
    products = (fields[:, None] * fields).reshape(9, -1)
    residual = np.einsum("iq,ij,jq->q", fields, form, fields) + math.sqrt(noise) * grid[3]

    @jax.jit
    def both(noise: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
        series = tilted(form, covariance, noise, 4)
        return [(tilted_second(series, n), tilted_fourth(series, n)) for n in range(5)]

    with jax.enable_x64(True):
        found, without = (jax.device_get(both(x)) for x in (noise, 0.0))
    for power, (second, fourth) in enumerate(found):
        weighted = weights * residual**power
        np.testing.assert_allclose(second.ravel(), products @ weighted, rtol=1e-10)
        expected = (products * weighted) @ products.T
        np.testing.assert_allclose(fourth.reshape(9, 9), expected, rtol=1e-9, atol=1e-12)
    assert np.max(np.abs(without[2][1] / found[2][1] - 1)) > 0.1  # negative control


def test_twelfth_moments_and_the_closed_forms_of_wick() -> None:
    form, covariance = example(1)
    one = np.ones((1, 1))
    with jax.enable_x64(True):
        twelfth = tilted_fourth(tilted(one, one, 0.0, 4), 4)
        assert twelfth.item() == float(moment(one, [0] * 12)) == 10395
        second = tilted_second(tilted(form, covariance, 0.0, 2), 2)
        np.testing.assert_allclose(second, quadratic_square_second(form, covariance), rtol=1e-12)

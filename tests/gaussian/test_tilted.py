"""Moments with powers of a residual, against Wick's formula and a negative control."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits.gaussian import moment, quadratic_square_second, tilted, tilted_mean, tilted_product


def example(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    forms = rng.normal(size=(4, 3, 3))
    factor = rng.normal(size=(3, 3))
    forms = forms + np.swapaxes(forms, 1, 2)
    return forms[0] / 3, factor @ factor.T / 3, forms[1:]


def test_against_gauss_hermite() -> None:
    noise = 0.7
    form, covariance, forms = example(0)
    t, w = np.polynomial.hermite_e.hermegauss(7)  # exact for degree 13
    grid = np.stack(np.meshgrid(t, t, t, t, indexing="ij")).reshape(4, -1)
    weights = np.einsum("i,j,k,l->ijkl", w, w, w, w).ravel() / (2 * math.pi) ** 2
    fields = np.linalg.cholesky(covariance) @ grid[:3]
    squares = np.einsum("iq,kij,jq->kq", fields, forms, fields)
    residual = np.einsum("iq,ij,jq->q", fields, form, fields) + math.sqrt(noise) * grid[3]
    both = jax.jit(
        lambda forms, noise: [
            (tilted_mean(series, forms, power), tilted_product(series, forms, forms[:2], power))
            for series in [tilted(form, covariance, noise, 4)]
            for power in range(5)
        ]
    )
    with jax.enable_x64(True):
        found, without = (jax.device_get(both(jnp.asarray(forms), x)) for x in (noise, 0.0))
    for power, (means, products) in enumerate(found):
        weighted = weights * residual**power
        np.testing.assert_allclose(means, squares @ weighted, rtol=1e-11)
        np.testing.assert_allclose(products, (squares * weighted) @ squares[:2].T, rtol=1e-10)
    assert np.max(np.abs(without[2][1] / found[2][1] - 1)) > 0.1  # negative control


def test_twelfth_moments_and_the_closed_forms_of_wick() -> None:
    form, covariance, forms = example(1)
    with jax.enable_x64(True):
        one = jnp.ones((1, 1, 1))
        twelfth = tilted_product(tilted(one[0], one[0], 0.0, 4), one, one, 4)
        assert float(twelfth[0, 0]) == float(moment(one[0], [0] * 12)) == 10395
        series = tilted(form, covariance, 0.0, 2)
        second = quadratic_square_second(form, covariance)
        expected = np.einsum("kij,ij->k", forms, second)
        np.testing.assert_allclose(tilted_mean(series, jnp.asarray(forms), 2), expected, rtol=1e-12)

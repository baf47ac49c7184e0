"""Chi-square numbers without rejection have the law they claim."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from sgdlimits.simulate import chi_square, noise


@pytest.mark.parametrize(("dof", "error"), [(100, 1e-10), (500, 2e-13), (10**6, 1e-13)])
def test_series_is_the_quantile_function(dof: int, error: float) -> None:
    z = np.linspace(-7, 7, 4001)
    with jax.enable_x64(True):
        n = jnp.asarray(float(dof))
        x = np.asarray(chi_square.from_normal(jnp.asarray(z), n, chi_square.series(n)))
    difference = scipy.stats.chi2.cdf(x, dof) - scipy.stats.norm.cdf(z)
    # at 10⁶ degrees the distribution function itself is known to about 1e-11 only
    assert np.max(np.abs(difference)) < max(error, 1e-17 * dof)


def test_a_truncated_series_is_not_exact() -> None:
    """Negative control: Wilson and Hilferty's cube, good to 4e-5 at 494 degrees of freedom."""
    z, dof = np.linspace(-7, 7, 4001), 494
    cube = dof * (1 - 2 / (9 * dof) + z * np.sqrt(2 / (9 * dof))) ** 3
    difference = scipy.stats.chi2.cdf(cube, dof) - scipy.stats.norm.cdf(z)
    assert np.max(np.abs(difference)) > 1e-5


@pytest.mark.parametrize("dof", [0, 1, 2, 7, 60, 99, 100])
def test_any_degrees_of_freedom(dof: int) -> None:
    """Below 100 by exponentials, from there on by the series, chosen when the program runs."""
    runs = 40_000
    with jax.enable_x64(True):
        key = (jnp.asarray(0, jnp.uint32), jnp.asarray(3, jnp.uint32))
        x = np.asarray(drawn(key, jnp.asarray(float(dof)), runs))
    if dof == 0:
        assert np.all(x == 0)
    else:
        assert scipy.stats.kstest(x, scipy.stats.chi2(dof).cdf).pvalue > 1e-3
        other = dof + (1 if dof < 10 else 3)
        assert scipy.stats.kstest(x, scipy.stats.chi2(other).cdf).pvalue < 1e-6


@functools.partial(jax.jit, static_argnums=2)
def drawn(key: noise.Key, dof: jax.Array, runs: int) -> jax.Array:
    (z,), _ = noise.normals_and_uniform(key, 1, runs)
    return chi_square.draw(noise.derived(key, 2**40), z, dof, chi_square.series(dof))

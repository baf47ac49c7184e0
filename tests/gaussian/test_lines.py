"""Integrals along lines between breaks, and where functions are zero."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from sgdlimits.gaussian import crossings, legendre, piecewise

GRID = np.linspace(-6, 6, 41)


@pytest.fixture(autouse=True)
def _double() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("breaks", [[0.1], [0.3, -1.0], [-9.0, 0.5, 0.5, 4.0], [60.0, 0.2]])
def test_jumps_at_breaks_and_moments_between_them(breaks: Any) -> None:
    t, weights = map(np.asarray, jax.jit(piecewise)(np.array(breaks), legendre(16)))
    for place in breaks:
        assert abs(weights @ (t > place) - norm.sf(place)) < 1e-9
    for power, moment in ((0, 1), (1, 0), (2, 1), (4, 3)):
        assert abs(weights @ t**power - moment) < 1e-7


def test_smooth_in_the_breaks() -> None:
    def kink(place: Any) -> Any:
        t, weights = piecewise(place[None], jnp.asarray(legendre(24)))
        return weights @ jnp.maximum(t - place, 0.0)

    slope = jax.jit(jax.grad(kink))(jnp.asarray(0.4))  # −P(t > place)
    assert abs(slope + norm.sf(0.4)) < 1e-9


def test_zeros_and_their_derivatives() -> None:
    def functions(a: Any) -> Any:
        return lambda t: jnp.stack([t - a, t**2 - a, jnp.exp(t) + a, jnp.sin(2 * t)])

    def zeros(a: Any) -> Any:
        return crossings(functions(a), jnp.asarray(GRID), 2)

    found = np.asarray(jax.jit(zeros)(jnp.asarray(0.49)))
    np.testing.assert_allclose(found[0], [0.49, 60.0], atol=1e-12)
    np.testing.assert_allclose(found[1], [-0.7, 0.7], atol=1e-12)
    np.testing.assert_allclose(found[2], [60.0, 60.0])
    np.testing.assert_allclose(np.sin(2 * found[3]), 0, atol=1e-11)
    slopes = np.asarray(jax.jit(jax.jacfwd(zeros))(jnp.asarray(0.49)))
    np.testing.assert_allclose(slopes[:2], np.array([[1, 0], [-1 / 1.4, 1 / 1.4]]), atol=1e-9)


def test_a_zero_of_a_function_that_is_flat_in_most_of_its_cell() -> None:
    """As the second comparison of a clip is: the secant alone takes hundreds of steps."""

    @jax.jit
    def ramp_zeros(steep: Any) -> Any:
        def ramp(t: Any) -> Any:
            return jnp.maximum(steep * (t - 0.3), -1.0)[None] - 1

        return crossings(ramp, jnp.linspace(-2.0, 2.0, 9), 2)

    with jax.enable_x64(True):
        for steep in (1e2, 1e4, 1e6):
            (root, _), *_ = ramp_zeros(steep)
            np.testing.assert_allclose(root, 0.3 + 1 / steep, atol=1e-12)

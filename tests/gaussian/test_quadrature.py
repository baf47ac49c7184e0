"""Quadrature rules: exactness, convergence rates, honest error bars."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jaxtyping import Array, TypeCheckError

from sgdlimits import gaussian
from sgdlimits.gaussian import Rule, gauss_hermite, product, sobol
from sgdlimits.gaussian.quadrature import SOBOL_REPLICATES

# A rotated, stretched Gaussian in the plane made of three variables: kinks lie on no axis.
FACTOR = np.array([[1.0, 0.3, -0.2], [0.5, 0.8, 0.4]])


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def normal_moment(power: int) -> float:
    """E zⁿ = (n − 1)!! for even n."""
    return 0.0 if power % 2 else float(math.prod(range(power - 1, 0, -2)))


def apply(rule: Rule, function: Callable[[np.ndarray], np.ndarray]) -> float:
    return float(rule.weights @ function(rule.nodes))


def relu_pair(x: Array) -> Array:
    return jax.nn.relu(x[0]) * jax.nn.relu(x[1])


def erf_pair(x: Array) -> Array:
    return jnp.prod(jax.scipy.special.erf(x / math.sqrt(2)))


def kinked(nodes: np.ndarray) -> np.ndarray:
    return np.prod(np.maximum(nodes @ FACTOR.T, 0), axis=-1)


def exact(form: Callable[..., Array], factor: np.ndarray) -> float:
    c = factor @ factor.T
    return float(form(c[0, 0], c[0, 1], c[1, 1]))


# --- Gauss–Hermite ------------------------------------------------------------------------------


@pytest.mark.parametrize("order", range(1, 9))
def test_gauss_hermite_is_exact_to_its_degree_and_no_further(order: int) -> None:
    rule = gauss_hermite(1, order)
    for power in range(2 * order):
        found = apply(rule, lambda z: z[:, 0] ** power)
        scale = max(1.0, normal_moment(power + power % 2))
        assert abs(found - normal_moment(power)) < 1e-13 * scale
    # one degree above it misses exactly E He_n(z)² = n!
    missed = normal_moment(2 * order) - apply(rule, lambda z: z[:, 0] ** (2 * order))
    assert missed == pytest.approx(math.factorial(order), rel=1e-11)


def test_gauss_hermite_is_exact_in_each_variable() -> None:
    order = 3
    rule = gauss_hermite(2, order)
    assert rule.nodes.shape == (order**2, 2)
    for powers in itertools.product(range(2 * order), repeat=2):
        found = apply(rule, lambda z: np.prod(z ** np.array(powers), axis=-1))
        assert found == pytest.approx(math.prod(map(normal_moment, powers)), abs=1e-11)
    beyond = apply(rule, lambda z: z[:, 0] ** (2 * order) * z[:, 1] ** 2)
    assert normal_moment(2 * order) - beyond == pytest.approx(math.factorial(order), rel=1e-11)


def test_order_fits_the_number_of_nodes() -> None:
    for dim, count in itertools.product((1, 2, 3), (2, 63, 64, 4096, 2**14)):
        order = gaussian.hermite_order(dim, count)
        assert 2 <= order <= 80
        assert order == 2 or order**dim <= count
        assert order == 80 or (order + 1) ** dim > count


# --- Sobol --------------------------------------------------------------------------------------


def rate(errors: Callable[[int, int], float]) -> float:
    """Slope of the root mean square error over 32 seeds against the number of nodes."""
    counts = 2 ** np.arange(6, 13)
    rms = [np.sqrt(np.mean([errors(int(n), seed) ** 2 for seed in range(32)])) for n in counts]
    return float(np.polyfit(np.log(counts), np.log(rms), 1)[0])


def test_sobol_converges_faster_than_monte_carlo_across_kinks() -> None:
    truth = exact(gaussian.relu_product, FACTOR)

    def monte_carlo(count: int, seed: int) -> float:
        nodes = np.random.default_rng(seed).normal(size=(count, 3))
        return float(kinked(nodes).mean()) - truth

    assert rate(lambda count, seed: apply(sobol(3, count, seed), kinked) - truth) < -0.8
    # control: the same fit finds the rate 1/2 of independent nodes, and would fail the test above
    assert -0.6 < rate(monte_carlo) < -0.4


def test_jumps_need_sobol() -> None:
    truth = exact(gaussian.step_product, FACTOR)

    def both_positive(nodes: np.ndarray) -> np.ndarray:
        return np.all(nodes @ FACTOR.T > 0, axis=-1).astype(float)

    scrambles = [apply(sobol(3, 16**3, seed), both_positive) / truth - 1 for seed in range(8)]
    hermite = apply(gauss_hermite(3, 16), both_positive) / truth - 1
    assert np.sqrt(np.mean(np.square(scrambles))) < 0.005 < 0.01 < abs(hermite)


def test_sobol_nodes_are_frozen_by_their_seed() -> None:
    np.testing.assert_array_equal(sobol(2, 64, 5).nodes, sobol(2, 64, 5).nodes)
    assert not np.any(sobol(2, 64, 5).nodes == sobol(2, 64, 6).nodes)


@pytest.mark.parametrize("mirrored", [(), (1,)], ids=["plain", "mirrored"])
@pytest.mark.parametrize(("count", "size"), [(2, 2), (3, 4), (1000, 1024), (1024, 1024)])
def test_sobol_count_is_rounded_up(count: int, size: int, mirrored: tuple[int, ...]) -> None:
    rule = sobol(2, count, mirrored=mirrored)
    assert rule.nodes.shape == (size, 2)
    np.testing.assert_array_equal(rule.weights, 1 / size)


def test_mirrored_variables_have_no_odd_moments() -> None:
    plain, mirrored = sobol(3, 256), sobol(3, 256, mirrored=(0, 2))
    odd = [(1, 0, 0), (3, 0, 0), (0, 0, 1), (1, 3, 0), (2, 1, 3), (0, 2, 5)]
    for powers in odd:
        assert abs(apply(mirrored, lambda z: np.prod(z ** np.array(powers), axis=-1))) < 1e-13
        assert abs(apply(plain, lambda z: np.prod(z ** np.array(powers), axis=-1))) > 1e-6
    # the variable in between is left as it was, and so is what is even in the mirrored ones
    assert abs(apply(mirrored, lambda z: z[:, 1] ** 3)) > 1e-4
    half = sobol(3, 128)
    for function in (lambda z: z[:, 1], lambda z: z[:, 0] * z[:, 2], lambda z: z[:, 2] ** 4):
        assert apply(mirrored, function) == pytest.approx(apply(half, function), rel=1e-12)


# --- products -----------------------------------------------------------------------------------


def test_product_rule_factorises() -> None:
    first, second = gauss_hermite(2, 3), sobol(1, 8)
    both = product(first, second)
    assert both.nodes.shape == (72, 3)
    assert both.weights.sum() == pytest.approx(1, rel=1e-14)
    np.testing.assert_array_equal(both.nodes[:8, :2], np.tile(first.nodes[0], (8, 1)))
    np.testing.assert_array_equal(both.nodes[:8, 2:], second.nodes)  # the second varies fastest
    left = apply(first, lambda z: np.exp(z[:, 0]) * z[:, 1] ** 2)
    right = apply(second, lambda z: np.abs(z[:, 0]))
    joint = apply(both, lambda z: np.exp(z[:, 0]) * z[:, 1] ** 2 * np.abs(z[:, 2]))
    assert joint == pytest.approx(left * right, rel=1e-13)


# --- expectations and their errors --------------------------------------------------------------


def factors(number: int, columns: int, scale: float) -> list[np.ndarray]:
    generator = np.random.default_rng(2)
    return [scale * generator.normal(size=(2, columns)) for _ in range(number)]


def test_error_of_sobol_is_the_standard_error_of_the_scrambles() -> None:
    @jax.jit
    def estimate(factor: Array) -> gaussian.Estimate:
        return gaussian.expectation(relu_pair, jnp.zeros(2), factor, smooth=False, count=2**12)

    scores = []
    for factor in factors(100, columns=4, scale=0.5):
        found = estimate(jnp.asarray(factor))
        miss = float(found.value) - exact(gaussian.relu_product, factor)
        scores.append(miss / float(found.error))
    law = scipy.stats.t(SOBOL_REPLICATES - 1).cdf
    assert scipy.stats.kstest(scores, law).pvalue > 0.01
    # control: error bars too short or too long by a factor of 3 are noticed
    assert scipy.stats.kstest(np.multiply(scores, 3), law).pvalue < 0.001
    assert scipy.stats.kstest(np.divide(scores, 3), law).pvalue < 0.001


def test_error_of_gauss_hermite_covers_the_truth() -> None:
    for factor in factors(10, columns=2, scale=1.0):
        truth = exact(gaussian.erf_product, factor)
        estimates = [
            gaussian.expectation(
                erf_pair, jnp.zeros(2), jnp.asarray(factor), smooth=True, count=count
            )
            for count in (2**6, 2**8, 2**10)
        ]
        for found in estimates:
            assert abs(float(found.value) - truth) <= float(found.error) + 1e-15
        # the bar is no empty promise: it shrinks with the number of nodes
        assert float(estimates[2].error) < float(estimates[0].error) / 5


def test_expectation_of_arrays_with_a_mean_and_a_singular_covariance() -> None:
    mean, factor = jnp.array([0.5, -1.0]), jnp.array([[0.3], [0.6]])
    found = gaussian.expectation(lambda x: jnp.outer(x, x), mean, factor, smooth=True, count=16)
    np.testing.assert_allclose(
        found.value, np.outer(mean, mean) + np.asarray(factor) @ np.asarray(factor).T, rtol=1e-13
    )
    assert found.error.shape == (2, 2)


WEIGHTS = jnp.array([0.5, 0.3, 0.2])
MEANS = jnp.array([[1.0, 0.0], [-0.5, 0.8], [0.0, -1.2]])


def component_factors() -> Array:
    return jnp.asarray(np.random.default_rng(4).normal(size=(3, 2, 2)) * 0.5)


def test_smooth_mixture_expectation_is_the_generating_function() -> None:
    along, roots = np.array([0.4, -0.9]), component_factors()
    found = gaussian.mixture_expectation(
        lambda x: jnp.exp(x @ along), WEIGHTS, MEANS, roots, smooth=True, count=2**10
    )
    parts = [
        math.exp(m @ along + np.sum((f.T @ along) ** 2) / 2)
        for m, f in zip(np.asarray(MEANS), np.asarray(roots), strict=True)
    ]
    assert float(found.value) == pytest.approx(float(WEIGHTS @ jnp.array(parts)), rel=1e-13)
    assert float(found.value) != pytest.approx(float(np.mean(parts)), rel=1e-2)  # weights matter


def test_kinked_mixture_expectation_is_within_its_error() -> None:
    along, roots = np.array([0.4, -0.9]), component_factors()
    found = gaussian.mixture_expectation(
        lambda x: jax.nn.relu(x @ along), WEIGHTS, MEANS, roots, smooth=False
    )
    truth = 0.0
    for p, m, f in zip(WEIGHTS, np.asarray(MEANS), np.asarray(roots), strict=True):
        centre, spread = m @ along, np.linalg.norm(f.T @ along)
        z = scipy.stats.norm(centre, spread)
        truth += float(p) * (centre * z.sf(0) + spread**2 * z.pdf(0))  # E relu of a Gaussian
    assert abs(float(found.value) - truth) < 4 * float(found.error)
    assert float(found.error) < 1e-4 * truth


# --- wrong input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gauss_hermite(0, 3), r"dim=0 .*integer >= 1"),
        (lambda: gauss_hermite(2.5, 3), r"dim=2\.5 .*integer >= 1"),
        (lambda: gauss_hermite(1, 0), r"order=0 .*integer >= 1"),
        (lambda: gaussian.hermite_order(0, 64), r"dim=0 .*integer >= 1"),
        (lambda: gaussian.hermite_order(1, -1), r"count=-1 .*integer >= 1"),
        (lambda: sobol(0, 64), r"dim=0 .*integer >= 1"),
        (lambda: sobol(1, 1), r"count=1 .*integer >= 2"),
        (lambda: sobol(1, "64"), r"count='64' .*integer >= 2"),  # type: ignore[arg-type]
        (lambda: sobol(1, 64, -1), r"seed=-1 .*integer >= 0"),
        (lambda: sobol(2, 64, mirrored=(2,)), r"mirrored=\(2,\) .*variables in 0\.\.1"),
        (lambda: sobol(2, 64, mirrored=(-1,)), r"mirrored=\(-1,\) .*variables in 0\.\.1"),
        (lambda: sobol(2, 64, mirrored=(0.5,)), r"mirrored=\(0\.5,\) .*variables in 0\.\.1"),
        (
            lambda: gaussian.expectation(
                jnp.sum, jnp.zeros(1), jnp.ones((1, 1)), smooth=True, count=0
            ),
            r"count=0 .*integer >= 2",
        ),
    ],
)
def test_wrong_numbers_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_shapes_in_the_signatures_are_enforced_under_test() -> None:
    with pytest.raises(TypeCheckError, match="factor"):
        gaussian.expectation(jnp.sum, jnp.zeros(2), jnp.ones((3, 1)), smooth=True)

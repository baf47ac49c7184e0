"""Rules that respect kinks: truncated normals, and orthants of dependent ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from sgdlimits import gaussian
from sgdlimits.gaussian import (
    Block,
    Pair,
    Split,
    Whole,
    orthant_rule,
    truncated_table,
)

orthant_nodes = jax.jit(gaussian.orthant_nodes)  # one program for all rules of one shape
truncated = jax.jit(gaussian.truncated)


def pair(level: int) -> Pair:
    return Pair(level, level + 1, level)


@pytest.mark.parametrize("threshold", [-20.0, -8.99, -3.0, -0.513, 0.0, 0.7, 2.4, 6.0])
@pytest.mark.parametrize("order", [1, 2, 5, 9])
def test_truncated_rules_are_exact_for_polynomials(threshold: float, order: int) -> None:
    with jax.enable_x64(True):
        x, weights = truncated(jnp.asarray(threshold), jnp.asarray(truncated_table(order)))
    low = max(threshold, -12.0)
    for degree in range(2 * order):
        value = quad(
            lambda t, n=degree: (t - low) ** n * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi),
            low,
            low + 30,
            points=[low + 0.3, low + 1, low + 3, low + 12],
            epsrel=1e-11,
            epsabs=0,
            limit=200,
        )[0]
        sum_ = float(np.asarray(weights) @ (np.asarray(x) - low) ** degree)
        assert abs(sum_ - value) < 1e-7 * value + 1e-10


def test_padded_tables_are_rules_of_lower_order() -> None:
    with jax.enable_x64(True):
        few = truncated(jnp.asarray(0.4), jnp.asarray(truncated_table(3)))
        many = truncated(jnp.asarray(0.4), jnp.asarray(truncated_table(3, 5)))
    np.testing.assert_array_equal(many[0][:3], few[0])
    np.testing.assert_array_equal(many[1], [*few[1], 0.0, 0.0])


def test_truncated_rules_are_smooth_in_the_threshold() -> None:
    table = truncated_table(4)

    def mean(threshold: jax.Array) -> jax.Array:
        x, weights = gaussian.truncated(threshold, jnp.asarray(table))
        return weights @ x

    with jax.enable_x64(True):
        slope = float(jax.jit(jax.grad(mean))(jnp.asarray(0.3)))
    # the mean of the part above τ is φ(τ)
    assert abs(slope + 0.3 * np.exp(-0.045) / np.sqrt(2 * np.pi)) < 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_probabilities_of_orthants(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factor = np.tril(rng.normal(size=(3, 3)))
    factor[np.diag_indices(3)] = np.abs(factor[np.diag_indices(3)]) + 0.5
    mean = rng.normal(size=3)
    with jax.enable_x64(True):
        rule = orthant_rule([Split(9)] * 3)
        nodes = orthant_nodes(jnp.asarray(mean), jnp.asarray(factor), rule)
    x, eta, weights = map(np.asarray, nodes)
    inside = np.all(x < 0, axis=0)
    law = multivariate_normal(mean, factor @ factor.T, seed=0)
    assert abs(weights[inside].sum() - law.cdf(np.zeros(3))) < 2e-4
    np.testing.assert_allclose(x, mean[:, None] + factor @ eta, atol=1e-12)
    np.testing.assert_allclose(eta @ weights, 0.0, atol=1e-8)
    np.testing.assert_allclose((eta * weights) @ eta.T, np.eye(3), atol=1e-8)


@pytest.mark.parametrize("correlation", [0.9, 0.999, 1 - 1e-8, -0.9, -0.999, -1 + 1e-8])
@pytest.mark.parametrize("mean", [(0.0, 0.0), (0.7, -0.2), (-3.0, 2.5)])
def test_pairs_do_not_mind_dependence(correlation: float, mean: tuple[float, float]) -> None:
    """E[σ(s)1(s > 0) relu(t)]: a function with a jump and a kink, of two dependent variables."""
    rest = np.sqrt((1 - correlation) * (1 + correlation))
    factor = np.array([[1.3, 0.0], [0.6 * correlation, 0.6 * rest]])

    def function(s: np.ndarray, t: np.ndarray) -> np.ndarray:
        return ndtr(s) * (s > 0) * np.maximum(t, 0.0)

    with jax.enable_x64(True):
        x, _, weights = orthant_nodes(
            jnp.asarray(mean), jnp.asarray(factor), orthant_rule([pair(9)])
        )
    value = float(np.asarray(weights) @ function(*np.asarray(x)))

    def given_first(a: float) -> float:
        s, center, width = mean[0] + 1.3 * a, mean[1] + 0.6 * correlation * a, 0.6 * rest
        z = center / width  # E[relu] of a normal, in closed form
        inner = center * ndtr(z) + width * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return float(ndtr(s) * (s > 0) * inner * np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi))

    kink = float(np.clip(-mean[1] / 0.6 / correlation, -9, 9))
    edges = [kink - 0.1, kink, kink + 0.1]
    true = quad(given_first, -mean[0] / 1.3, 10, points=edges, limit=400, epsabs=1e-13)[0]
    assert abs(value - true) < 2e-7


def test_singles_fail_where_pairs_do_not() -> None:
    """The control: without pairs, a layer in which one variable decides the other is missed."""
    correlation = 0.999
    factor = np.array([[1.0, 0.0], [correlation, np.sqrt(1 - correlation**2)]])
    truth = 0.25 + np.arcsin(correlation) / (2 * np.pi)  # both are positive
    with jax.enable_x64(True):
        errors = []
        for blocks in ([Split(9), Split(9)], [pair(6)]):
            rule = orthant_rule(blocks)
            x, _, weights = map(np.asarray, orthant_nodes(np.zeros(2), factor, rule))
            errors.append(abs(float(weights[np.all(x > 0, axis=0)].sum()) - truth))
    assert errors[0] > 1e-4 > 1e-7 > errors[1]


def test_fields_without_kinks_are_not_split() -> None:
    rule = orthant_rule([Split(9), Whole(9)])
    factor = np.array([[1.0, 0.0], [0.5, 0.8]])
    with jax.enable_x64(True):
        x, _, weights = orthant_nodes(jnp.array([0.2, 0.1]), jnp.asarray(factor), rule)
    s, t = np.asarray(x)
    assert len(weights) == 18 * 9
    true = dblquad(
        lambda b, a: np.cos(0.1 + 0.5 * a + 0.8 * b) * np.exp(-(a**2 + b**2) / 2) / (2 * np.pi),
        -0.2,
        9,
        -9,
        9,
        epsabs=1e-11,
    )[0]
    assert abs(float(np.asarray(weights) @ ((s > 0) * np.cos(t))) - true) < 1e-8


@pytest.mark.parametrize(
    "blocks",
    [
        [Pair(3, 4, 2), Pair(2, 3, 3), Split(2)],
        [Split(3), Pair(2, 3, 2)],
        [Split(2), Whole(3), Split(3)],
        [Pair(2, 2, 2), Whole(4)],
        [Whole(5)],
    ],
)
def test_moments_and_blocks_of_mixed_rules(blocks: list[Block]) -> None:
    """Second moments are exact whatever is taken together, and a rule in blocks is the same."""
    dim = sum(2 if isinstance(block, Pair) else 1 for block in blocks)
    rng = np.random.default_rng(dim)
    factor = np.tril(0.5 * rng.normal(size=(dim, dim)))
    factor[np.diag_indices(dim)] = 0.3 + np.abs(np.diag(factor))
    mean, first = rng.normal(size=dim), 0
    for block in blocks:
        if isinstance(block, Pair):  # nearly the same
            factor[first + 1] = factor[first]
            factor[first + 1, first + 1], mean[first + 1] = 0.02, mean[first]
        first += 2 if isinstance(block, Pair) else 1
    with jax.enable_x64(True):
        law = jnp.asarray(mean), jnp.asarray(factor)
        whole = orthant_nodes(*law, orthant_rule(blocks))
        cut = orthant_rule(blocks, size=1 + len(whole[2]) // 40, most=3)
        count = len(cut.choices.weights)
        parts = [orthant_nodes(*law, cut, b) for b in range(count)]
        assert count >= 3
    _, eta, weights = map(np.asarray, whole)
    np.testing.assert_allclose(weights.sum(), 1.0, atol=1e-4)
    if all(isinstance(block, Split) for block in blocks):
        np.testing.assert_allclose((eta * weights) @ eta.T, np.eye(dim), atol=1e-8)
    for k, one in enumerate(whole):
        joined = np.concatenate([np.asarray(part[k]) for part in parts], axis=-1)
        kept = joined[..., : one.shape[-1]]
        np.testing.assert_allclose(kept, one, rtol=1e-12, atol=1e-14)
        if k == 2:
            assert not np.any(joined[one.shape[-1] :])


def test_lower_orders_in_the_shapes_of_higher_ones() -> None:
    few: list[Block] = [Pair(2, 3, 2), Split(2)]
    many: list[Block] = [Pair(4, 5, 3), Split(4)]
    factor = np.array([[1.0, 0, 0], [0.9, 0.2, 0], [0.1, -0.3, 0.8]])
    like = orthant_rule(many, size=16, most=20)
    low = orthant_rule(few, size=16, most=20, as_if=many)
    assert jax.tree.map(np.shape, low) == jax.tree.map(np.shape, like)
    with jax.enable_x64(True):
        mean, factor_ = jnp.array([0.1, 0.2, -0.3]), jnp.asarray(factor)
        values = []
        for rule in (low, orthant_rule(few)):
            parts = [
                orthant_nodes(mean, factor_, rule, b) for b in range(len(rule.choices.weights))
            ]
            parts = [tuple(map(np.asarray, part)) for part in parts]
            values.append(sum(float(w @ (np.cos(x[0]) * (x[2] > 0) * x[1])) for x, _, w in parts))
    assert abs(values[0] - values[1]) < 1e-14

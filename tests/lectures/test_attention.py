"""Particles on the sphere against their energies, their saddles and the laws of their products."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures import attention, tokens
from sgdlimits.lectures.feed_forward import FeedForward
from sgdlimits.theory import attention as theory

TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
SQUARE = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
POLES = np.array([[0.0, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, -1]])


def heads(count: int, width: int, dim: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    Q, K = rng.standard_normal((2, count, width, dim)) / np.sqrt(dim)
    return {"query": Q, "key": K, "value": rng.standard_normal((count, dim, dim)) / np.sqrt(dim)}


def block(dim: int, width: int) -> FeedForward:
    rng = np.random.default_rng(4)
    w, a = rng.standard_normal((dim, width)), rng.standard_normal((width, dim))
    return FeedForward(w / 4, a, rng.standard_normal(width), "relu")


def printed_velocity(
    X: np.ndarray, beta: float, layer: FeedForward, *, softmax: bool, **matrices: Any
) -> np.ndarray:
    """(1.7), one particle after the other."""
    result = np.zeros_like(X)
    for i, x in enumerate(X):
        force = np.asarray(layer.outer) @ np.maximum(np.asarray(layer.inner) @ x + layer.shift, 0)
        for Q, K, V in zip(*matrices.values(), strict=True):
            a = np.array([np.exp(beta * (Q @ x) @ (K @ y)) for y in X])
            a /= a.sum() if softmax else len(X)
            force = force + sum(weight * (V @ y) for weight, y in zip(a, X, strict=True))
        result[i] = force - (x @ force) * x
    return result


@pytest.mark.parametrize("softmax", [True, False])
def test_velocities_are_those_of_the_formula(softmax: bool) -> None:
    X, matrices, layer = tokens.uniform(5, 4)[0], heads(2, 3, 4), block(4, 6)
    expected = printed_velocity(X, 1.7, layer, softmax=softmax, **matrices)
    found = attention.velocity(
        X, inverse_temperature=1.7, feed_forward=layer, normalised=softmax, **matrices
    )
    np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_allclose(np.sum(found * X, axis=1), 0, atol=1e-13)


def test_norms_stay_one_over_long_times() -> None:
    """With all that moves them; and the path is that of a tighter tolerance, nearly."""
    X, options = tokens.uniform(6, 3)[0], {**heads(2, 3, 3), "feed_forward": block(3, 5)}
    times = np.array([0.0, 3.0, 1000.0])
    path = attention.flow(X, times, inverse_temperature=3.0, **options)
    norms = np.linalg.norm(path.points, axis=-1)
    assert np.max(np.abs(norms - 1)) < 1e-12
    assert float(path.norm_error.max()) < 1e-5  # before they are set to 1
    loose, tight = (
        attention.flow(X, times, inverse_temperature=3.0, tolerance=tolerance, **options)
        for tolerance in (1e-6, 1e-12)
    )
    assert float(tight.norm_error.max()) < 1e-8
    apart = [float(abs(other.points - tight.points)[1].max()) for other in (loose, path)]
    assert apart[1] < apart[0] / 100


def test_several_temperatures_and_starts_are_each_what_it_is_alone() -> None:
    X, times = tokens.uniform(5, 3, runs=2), [0.0, 2.0]
    path = attention.flow(X, times, inverse_temperature=[0.0, 4.0])
    assert path.points.dims == ("inverse_temperature", "run", "time", "particle", "coordinate")
    for i, beta in enumerate([0.0, 4.0]):
        alone = attention.flow(X[1], times, inverse_temperature=beta)
        np.testing.assert_allclose(path.points[i, 1], alone.points, atol=1e-7)


def energies(X: jax.Array, beta: float, A: np.ndarray) -> jax.Array:
    """E_β and E₀ of directions."""
    x = X / jnp.linalg.norm(X, axis=1, keepdims=True)
    products = x @ A @ x.T
    if beta == 0:
        return jnp.sum(products) / (2 * len(X))
    return jnp.mean(jnp.exp(beta * products)) / (2 * beta)


energies_and_gradients = jax.jit(jax.value_and_grad(energies), static_argnums=1)
hessians = jax.jit(jax.hessian(energies), static_argnums=1)


@pytest.mark.parametrize("softmax", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("ensemble", ["identity", "symmetric"])
def test_energies_grow_as_their_metrics_say(ensemble: str, beta: float, softmax: bool) -> None:
    """dE/dt = ⟨∇E, ẋ⟩ by automatic differentiation; E₀ as printed moves twice as fast."""
    X = tokens.uniform(7, 3)[0]
    Q, K, V = tokens.matrices(ensemble, 3)
    A = Q.T @ K
    moved = attention.velocity(
        X, inverse_temperature=beta, query=Q, key=K, value=V, normalised=softmax
    )
    with jax.enable_x64(True):
        value, gradient = energies_and_gradients(X, beta, A)
    rate = theory.energy_rate(X, beta, normalised=softmax, interaction=A)
    assert theory.energy(X, beta, interaction=A) == pytest.approx(float(value), rel=1e-13)
    assert rate == pytest.approx(float(np.sum(np.asarray(gradient) * moved)), rel=1e-12)
    if beta == 0:
        assert rate == pytest.approx(np.sum(moved**2), rel=1e-12)
        with jax.enable_x64(True):
            printed = 2 * np.asarray(energies_and_gradients(X, 0.0, A)[1])
        assert np.sum(printed * moved) == pytest.approx(2 * rate, rel=1e-12)
    else:
        other = theory.energy_rate(X, beta, normalised=not softmax, interaction=A)
        assert abs(other / rate - 1) > 0.05


@pytest.mark.parametrize("softmax", [True, False])
@pytest.mark.parametrize("beta", [0.0, 1.0, 9.0])
def test_energies_are_monotone_along_the_flow(beta: float, softmax: bool) -> None:
    times = np.linspace(0, 30 if softmax else 30 * np.exp(-beta), 61)
    path = attention.flow(
        tokens.uniform(12, 3)[0], times, inverse_temperature=beta, normalised=softmax
    )
    values = np.array([theory.energy(x, beta) for x in path.points.values])
    assert np.all(np.diff(values) > -1e-13 * values[-1])
    assert values[-1] > 1.05 * values[0]


def test_it_is_no_gradient_flow_if_the_interaction_is_not_symmetric() -> None:
    """A quarter turn A = QᵀK = V in the plane: the angle δ of two falls, E ∝ 1 + cosh(β sin δ)."""
    turn, angle = np.array([[0.0, -1.0], [1.0, 0.0]]), 1.0
    X = np.array([[np.cos(angle), np.sin(angle)], [1.0, 0.0]])
    path = attention.flow(X, [0.0, 1.0, 2.0], inverse_temperature=2.0, query=turn.T, value=turn)
    values = [theory.energy(x, 2.0, interaction=turn) for x in path.points.values]
    assert values[0] == pytest.approx((1 + np.cosh(2 * np.sin(angle))) / 8)
    assert values[0] > 1.1 * values[1] > 1.1**2 * values[2]
    with pytest.raises(sl.InputError, match="interaction must be symmetric"):
        theory.energy_rate(X, 2.0, interaction=turn)


@pytest.mark.parametrize("softmax", [True, False])
@pytest.mark.parametrize("beta", [0.0, 1.0, 6.0])
def test_orthonormal_particles_keep_equal_products(beta: float, softmax: bool) -> None:
    n = 5
    times = np.array([0.0, 0.5, 2.0, 20.0]) * (1 if softmax else np.exp(-beta / 2))
    path = attention.flow(
        np.eye(n, n + 1), times, inverse_temperature=beta, normalised=softmax, tolerance=1e-11
    )
    pairs = tokens.products(path.points)
    expected = theory.equal_products(times, n, beta, normalised=softmax)
    np.testing.assert_allclose(pairs, np.repeat(expected[:, None], n * (n - 1) // 2, 1), atol=1e-8)


def test_convergence_is_exponential_with_the_rates_that_are_said() -> None:
    """At least 2/(e^β + n − 1) at all times, as at the start; 2 in the end."""
    n, beta = 6, 3.0
    times = np.linspace(0, 40, 401)
    path = attention.flow(np.eye(n), times, inverse_temperature=beta, tolerance=1e-11)
    gaps = 1 - tokens.products(path.points).mean(axis=1)
    uniform = theory.decay_rate(0.0, n, beta)
    assert uniform == pytest.approx(2 / (np.exp(beta) + n - 1))
    kept = gaps > 1e-10
    assert np.all(gaps[kept] <= np.exp(-uniform * times[kept]) * (1 + 1e-9))
    local = -np.diff(np.log(gaps[kept])) / np.diff(times[kept])
    assert local[0] == pytest.approx(uniform, rel=0.05)
    assert local[-1] == pytest.approx(2, rel=1e-3)


def test_the_least_product_is_bounded_and_the_bound_is_sharp_for_two() -> None:
    rng = np.random.default_rng(0)
    times = np.linspace(0, 6, 31)
    for n, beta in ((2, 3.0), (7, 0.0), (7, 3.0)):
        X = np.abs(rng.standard_normal((n, 3)))
        path = attention.flow(X, times, inverse_temperature=beta)
        least = tokens.products(path.points).min(axis=1)
        bound = theory.least_product(times, n, beta, start=least[0])
        assert np.all(least >= bound - 1e-7)
        if n == 2:
            np.testing.assert_allclose(least, bound, atol=1e-7)


@pytest.mark.parametrize(
    ("points", "rate"),
    [(TETRAHEDRON, 2 / 3), (SQUARE, 1.0), (POLES, 1.0), (POLES[:3], 0.0)],
    ids=["tetrahedron", "square", "poles", "one"],
)
def test_every_critical_point_but_one_is_a_strict_saddle(points: np.ndarray, rate: float) -> None:
    """Lemma 14.3 with its number, by the Hessian of directions; printed E₀ has twice that."""
    with jax.enable_x64(True):
        x = jnp.asarray(points)
        _, gradient = energies_and_gradients(x, 0.0, np.eye(3))
        hessian = np.asarray(hessians(x, 0.0, np.eye(3)))
    np.testing.assert_allclose(gradient, 0, atol=1e-12)
    largest = np.linalg.eigvalsh(hessian.reshape(x.size, x.size))[-1]
    assert largest == pytest.approx(rate, abs=1e-12)
    assert theory.escape_rate(points) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(("points", "rate"), [(TETRAHEDRON, 2 / 3), (SQUARE, 1.0)])
def test_saddles_are_left_at_that_rate(points: np.ndarray, rate: float) -> None:
    """From 1e-6 beside one with mean zero, the mean grows like e^(rate · t)."""
    start = points + 1e-6 * np.random.default_rng(0).standard_normal(points.shape)
    path = attention.flow(start, [0.0, 6.0, 9.0], inverse_temperature=0.0, tolerance=1e-12)
    length = np.linalg.norm(path.points.mean("particle"), axis=-1)
    measured = np.log(length[2] / length[1]) / 3
    assert measured == pytest.approx(rate, rel=0.01)
    assert abs(measured - 2 * rate) > 0.5  # as the Hessian of E₀ as printed says


@pytest.mark.parametrize(("first", "beta"), [(4, 0.0), (4, 5.0), (1, 5.0)])
def test_two_clusters_meet_when_they_should(first: int, beta: float) -> None:
    angle = 2.5
    X = np.array([[1.0, 0.0]] * first + [[np.cos(angle), np.sin(angle)]] * (8 - first))
    time = theory.meeting_time(beta, np.cos(angle), 0.5, share=first / 8)
    path = attention.flow(X, [0.0, time], inverse_temperature=beta, tolerance=1e-12)
    assert tokens.products(path.points)[1].min() == pytest.approx(0.5, abs=1e-7)


def test_random_particles_in_high_dimension_are_nearly_orthonormal() -> None:
    """Their products follow γ within C √(log d/d): the gap halves from d to 4d."""
    times, n = np.linspace(0, 8, 41), 8
    expected = theory.equal_products(times, n, 1.0)
    gaps = []
    for dim in (64, 1024):
        path = attention.flow(tokens.uniform(n, dim, runs=4), times, inverse_temperature=1.0)
        apart = tokens.products(path.points) - expected[:, None]
        gaps.append(np.max(np.std(apart, axis=(0, 2))))
    assert np.log(gaps[1] / gaps[0]) / np.log(16) == pytest.approx(-0.5, abs=0.1)


def test_phases_are_those_of_the_flow() -> None:
    X, times, betas = tokens.uniform(6, 8)[0], np.linspace(0, 12, 7), [0.1, 2.0]
    Q, K, V = tokens.matrices("wigner", 8)
    found = attention.phases(
        X, times, inverse_temperature=betas, query=Q, key=K, value=V, close=0.02
    )
    for i, beta in enumerate(betas):
        path = attention.flow(X, times, inverse_temperature=beta, query=Q, key=K, value=V)
        share = np.mean(tokens.products(path.points) >= 0.98, axis=-1)
        np.testing.assert_array_equal(found.together[i], share)
    assert 0 < float(found.together.mean()) < 1
    assert float(found.norm_error.max()) < 1e-3


GOOD: dict[str, Any] = {"points": np.eye(3), "times": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": [[0.0, 0.0], [1.0, 0.0]]}, "points=.* must not be zero"),
        ({"points": [[1.0, 0.0]]}, "points has shape .* at least two particles"),
        ({"points": np.ones((1, 2, 3, 3))}, "points has shape .* at most"),
        ({"points": [[1.0, np.nan], [1.0, 0.0]]}, "points=.* must be finite"),
        ({"times": [1.0, 0.0]}, "times=.* must increase"),
        ({"times": [0.0, 1e9], "query": 50 * np.eye(3), "value": 50 * np.diag([0.0, 1, 2])[::-1]},
         "times=.* within reach"),
        ({"inverse_temperature": -1.0}, "inverse_temperature=.* >= 0"),
        ({"inverse_temperature": np.inf}, "inverse_temperature=.* finite"),
        ({"inverse_temperature": [[1.0]]}, "inverse_temperature="),
        ({"inverse_temperature": 800.0, "normalised": False}, "inverse_temperature=.* at most 700"),
        ({"normalised": "yes"}, "normalised='yes'"),
        ({"tolerance": 0.0}, "tolerance=0.0"),
        ({"value": np.eye(2)}, "value has shape"),
        ({"query": np.ones((2, 4))}, "query has shape"),
        ({"query": np.ones((2, 3)), "key": np.ones((4, 3))}, "key has shape"),
        ({"query": np.ones((2, 3, 3)), "value": np.ones((3, 3, 3))}, "query has shape"),
        ({"key": 1.0}, "key has shape"),
        ({"feed_forward": FeedForward(np.eye(2), np.eye(3), np.zeros(3))}, "outer has shape"),
        ({"feed_forward": FeedForward(np.eye(3), np.eye(3), np.zeros(3), "step")}, "activation="),
        ({"feed_forward": np.eye(3)}, "feed_forward="),
        ({"query": 1e200 * np.eye(3), "key": 1e200 * np.eye(3)}, "query=.* products"),
    ],
)  # fmt: skip
def test_wrong_input(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        attention.flow(**GOOD | changes)


def test_velocities_at_extreme_scales() -> None:
    """At the largest β each particle attends to itself, or to those that it has scores with."""
    X = np.eye(3)
    still = attention.velocity(X, inverse_temperature=1e308)
    np.testing.assert_array_equal(still, np.zeros((3, 3)))
    turned = np.roll(X, 1, axis=0)
    moved = attention.velocity(X, inverse_temperature=1e308, query=turned)
    np.testing.assert_allclose(moved, turned.T, atol=1e-15)
    block = FeedForward(np.eye(3), np.eye(3), np.zeros(3), str(np.str_("relu")))
    named = block._replace(activation=np.str_("relu"))
    one, other = (attention.velocity(X, feed_forward=layer) for layer in (block, named))
    np.testing.assert_array_equal(one, other)
    with pytest.raises(sl.InputError, match=r"value=.* finite velocities"):
        attention.velocity([[1.0, 1.0], [1.0, 0.5]], value=1e308 * np.ones((2, 2)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points": np.ones((2, 2, 2)), "inverse_temperature": [1.0]}, "points has shape"),
        ({"inverse_temperature": 1.0}, "inverse_temperature has shape"),
        ({"inverse_temperature": [1.0], "close": 0.0}, "close=0.0"),
    ],
)
def test_wrong_input_of_phases(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        attention.phases(**GOOD | changes)

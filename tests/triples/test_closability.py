"""Complete sets of statistics are accepted, incomplete ones are rejected by name."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.triples.closability import Closability, closability
from sgdlimits.triples.triple import Triple
from tests.triples.random_triples import draw
from tests.triples.triples import gaussian, pca

DIMS = (40, 120)


def measure(*names: str) -> Closability:
    return closability(pca(*names), DIMS, step=0.5, time=1.5, samples=1600, threshold=0.02)


measured = functools.cache(measure)


def test_matrix_pca_closes_on_overlap_and_radius() -> None:
    found = measured("m", "r2")
    assert found.closed
    assert found.open_statistics == ()
    # and this is not for lack of resolution
    assert np.all(found.resolution < found.threshold)
    assert found.report.startswith("the set (m, r2) is closed: less than 2 %")
    assert "threshold 2 % of the mean square, error rate 1 %" in repr(found)
    assert "to trust: verdicts" in repr(found)


def test_too_few_samples_leave_it_undecided() -> None:
    found = closability(
        pca("m", "r2"), DIMS, step=0.5, time=1.5, samples=1600, budget=1600, threshold=1e-4
    )
    assert found.verdict == "undecided"
    assert not found.closed
    assert found.undecided_statistics == ("m", "r2")
    assert found.samples_needed is not None
    worst = np.max(found.resolution)
    assert found.samples_needed == pytest.approx(1600 * worst / 1e-4, rel=1e-6, abs=1)
    assert f"about {found.samples_needed} samples would decide" in repr(found)


@pytest.mark.parametrize("name", ["m", "r2"])
def test_matrix_pca_does_not_close_on_one_of_them(name: str) -> None:
    found = measured(name)
    assert not found.closed
    assert found.open_statistics == (name,)
    assert f"not closed: {name}" in found.report
    assert f"to trust: 'not closed', whatever the others are; {name} has" in found.report
    assert found.unexplained.value[-1, 0] > 5 * found.unexplained.error[-1, 0]


def linear_loss(x: jax.Array, y: jax.Array) -> jax.Array:
    """½ Σ_i a_i (x_i − y_i)²: two blocks of coordinates that decay at different rates."""
    rates = jnp.where(jnp.arange(len(x)) < len(x) // 2, 1.0, 3.0)
    return jnp.sum(rates * (x - y) ** 2) / 2


def linear_sample(key: jax.Array, dim: int) -> jax.Array:
    return jax.random.normal(key, (dim,))


def linear(statistics: Any, names: list[str]) -> Triple:
    return Triple(linear_loss, linear_sample, statistics, gaussian, names)


def test_names_the_open_statistic_among_closed_ones() -> None:
    """The first coordinate closes on its own, the norm needs both blocks."""
    whole = linear(lambda x, dim: jnp.stack([x[0], x @ x]), ["first", "norm"])
    found = closability(whole, (50, 200), step=0.5, time=1.0)
    assert found.open_statistics == ("norm",)

    def blocks(x: jax.Array, dim: int) -> jax.Array:
        left, right = x[: dim // 2], x[dim // 2 :]
        return jnp.stack([left @ left, right @ right])

    halves = linear(blocks, ["left", "right"])
    assert closability(halves, (50, 200), step=0.5, time=1.0).closed


def variances_loss(w: jax.Array, datum: tuple[jax.Array, jax.Array]) -> jax.Array:
    x, y = datum
    return (y - w @ x) ** 2 / 2


def variances_sample(key: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
    """Covariance diag(1…, 4…), with a teacher in each half."""
    inputs, noise = jax.random.split(key)
    deviation = jnp.where(jnp.arange(dim) < dim // 2, 1.0, 2.0)
    x = deviation * jax.random.normal(inputs, (dim,))
    return x, x[0] + x[-1] + jax.random.normal(noise) / 2


def test_mass_is_moved_between_the_blocks_of_one_array() -> None:
    """Runs of SGD hardly differ in which half the norm sits in: 0.03 % of the drift's square."""

    def statistics(w: jax.Array, dim: int) -> jax.Array:
        return jnp.stack([w[0], w[-1], w @ w])

    triple = Triple(variances_loss, variances_sample, statistics, gaussian, ["m1", "m2", "norm"])
    found = closability(triple, (60, 240), step=0.2)
    assert found.verdict == "not closed"
    assert found.open_statistics == ("norm",)
    assert found.unexplained.value[-1, 2] > 0.01 * found.mean_square[-1, 2]


def test_the_same_seed_gives_the_same_numbers() -> None:
    one, two = measured("m"), measure("m")
    np.testing.assert_array_equal(one.unexplained.value, two.unexplained.value)
    np.testing.assert_array_equal(one.resolution, two.resolution)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_triples(seed: int) -> None:
    case = draw(seed)
    found = closability(case.triple, (40, 160), step=0.4, seed=seed)
    assert found.verdict in ("not closed" if case.open_statistics else "closed", "undecided")
    assert set(found.open_statistics) <= set(case.open_statistics)


def test_a_remainder_that_decays_is_accepted() -> None:
    """dx_1 has a term dim^(−1/2)·x_2, not a function of x_1: seen at every dim, and decaying."""

    def loss(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum((x - y) ** 2) / 2 + x[0] * x[1] / jnp.sqrt(len(x)) * 3

    def init(key: jax.Array, dim: int) -> jax.Array:
        return gaussian(key, dim) + jnp.sqrt(dim) * gaussian(key, dim) * (jnp.arange(dim) < 2)

    def sample(key: jax.Array, dim: int) -> jax.Array:
        return 0.1 * jax.random.normal(key, (dim,))

    triple = Triple(loss, sample, lambda x, dim: x[:1], init)
    found = closability(triple, (25, 400), step=0.5, time=0.0, states=48)
    assert found.unexplained.value[-1, 0] > 4 * found.unexplained.error[-1, 0]
    assert abs(found.exponent.value[0] + 1) < 0.4
    assert found.closed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triple": None}, "triple=None"),
        ({"dims": [10]}, "dims="),
        ({"step": -1}, "step=-1"),
        ({"time": -1}, "time=-1"),
        ({"states": 2}, "states=2"),
        ({"levels": 0}, "levels=0"),
        ({"samples": 3}, "samples=3"),
        ({"budget": 100}, "budget=100 is not allowed: budget must be an integer >= 2000"),
        ({"threshold": 0.0}, "threshold=0.0"),
        ({"error_rate": 1}, "error_rate=1"),
        ({"seed": 0.5}, "seed=0.5"),
        ({"step": 50.0, "time": 500.0}, "step=50.0 is not allowed: SGD diverges"),
    ],
)
def test_wrong_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"triple": pca("m"), "dims": [8, 16], "step": 0.5}
    with pytest.raises(ValueError, match=message):
        closability(**(arguments | change))

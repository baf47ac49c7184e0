"""Conditions of the limit theorem and the critical step, where both are known."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.triples.critical_step import critical_step
from sgdlimits.triples.localizability import localizability
from sgdlimits.triples.triple import Triple
from tests.triples.triples import gaussian, pca, xor_twin


class Norm(eqx.Module):
    """dim^power·(1 + bend/√dim)·|x|², and one coordinate; one compilation serves all numbers."""

    power: np.ndarray
    bend: np.ndarray

    def __call__(self, x: jax.Array, dim: int) -> jax.Array:
        return jnp.stack([dim**self.power * (1 + self.bend / jnp.sqrt(dim)) * (x @ x), x[0]])


class Loss(eqx.Module):
    """½|x − y|² + pull·dim·x_1."""

    pull: np.ndarray

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum((x - y) ** 2) / 2 + self.pull * len(x) * x[0]


def flat_sample(key: jax.Array, dim: int) -> jax.Array:
    return jax.random.normal(key, (dim,))


def flat(power: float, bend: float = 0.0, pull: float = 0.0) -> Triple:
    """Gradients x − y with y standard normal; the statistic is dim^power·|x|²."""
    norm = Norm(np.asarray(power), np.asarray(bend))
    return Triple(Loss(np.asarray(pull)), flat_sample, norm, gaussian, ["norm", "first"])


def test_matrix_pca_is_localizable() -> None:
    found = localizability(pca("m", "r2"), (40, 120), step=0.5, time=1.0, samples=200)
    assert found.holds, found.report
    assert found.condition("hessian").sizes == pytest.approx([2.0, 2.0])
    assert np.all(found.condition("third_derivative").sizes == 0)
    assert found.condition("third_derivative").exponent.value == -np.inf
    assert float(found.condition("gradient_noise").exponent.value) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(("power", "fails"), [(0.5, []), (1.0, ["hessian"])])
def test_how_far_a_radius_can_be_rescaled(power: float, fails: list[str]) -> None:
    """dim^α|x|² is allowed up to α = ½ (BGJ22, Remark 1); the noise along it breaks with it."""
    found = localizability(flat(power), (50, 800), step=1.0, time=0.0)
    failed = [condition.name for condition in found.conditions if not condition.holds]
    assert found.holds == (not fails)
    assert set(fails) <= set(failed)
    assert float(found.condition("hessian").exponent.value) == pytest.approx(power, abs=1e-9)
    # The printed condition (BGJ22) is o(δ⁻¹) for the square, 1/2 for the norm: it would
    # already reject |x|² itself, whose exponent is 1/2.
    second = float(found.condition("noise_of_second_order").exponent.value)
    assert second == pytest.approx(0.5 + power, abs=0.1)


def test_an_unbounded_population_gradient_fails() -> None:
    found = localizability(flat(0.0, pull=1.0), (50, 800), step=1.0, time=0.0)
    with pytest.raises(ValueError, match="name='size' is not allowed"):
        found.condition("size")
    assert [c.name for c in found.conditions if not c.holds] == ["population_gradient"]
    assert "FAILS  ‖∇Φ‖" in found.report


def test_critical_step_of_matrix_pca() -> None:
    found = critical_step(pca("m", "r2"), (40, 120), samples=200)
    assert float(found.exponent.value) == pytest.approx(1.0, abs=0.1)
    assert float(found.exponent.error) < 0.1
    assert found.statistic == "r2"
    assert found.exponents.value[0] == -np.inf  # m is linear: no corrector
    assert "sub-critical" in found.statement


def test_critical_step_of_xor() -> None:
    found = critical_step(xor_twin().triple, (50, 400), samples=1000)
    assert float(found.exponent.value) == pytest.approx(1.0, abs=0.15)


def test_critical_step_follows_the_scale_of_the_statistic() -> None:
    found = critical_step(flat(0.5), (50, 800))
    assert float(found.exponent.value) == pytest.approx(1.5, abs=0.02)


def test_critical_step_is_followed_to_the_limit() -> None:
    """√dim·(1 + 3/√dim)·|x|² has a corrector like dim^(3/2) only in the limit.

    A straight line over these dims gives 1.41, with an error bar that misses 3/2 by far.
    """
    triple = flat(0.5, bend=3.0)
    found = critical_step(triple, (50, 200, 800))
    value, error = (float(part) for part in found.exponent)
    assert float(found.plain[0]) == pytest.approx(1.41, abs=0.01)
    assert abs(value - 1.5) < error < 0.15
    assert "a plain power law over these dims has 1.41" in repr(found)
    assert "to trust: exponents with their errors" in repr(found)
    two = critical_step(triple, (50, 800))
    assert abs(float(two.exponent.value) - 1.5) < 2 * float(two.exponent.error)
    assert "three or more would" in two.statement


def test_a_bound_near_the_exponent_is_undecided_on_two_dims() -> None:
    found = localizability(flat(0.6), (50, 100), step=1.0, time=0.0).condition("hessian")
    assert found.verdict == "undecided"
    assert not found.holds
    assert "undecided" in repr(found)


def test_linear_statistics_have_no_critical_step() -> None:
    found = critical_step(pca("m"), (8, 16))
    assert found.statistic is None
    assert found.exponent.value == -np.inf
    assert "no corrector" in found.statement


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triple": 0}, "triple=0"),
        ({"dims": [10]}, "dims="),
        ({"states": 0}, "states=0"),
        ({"samples": 3}, "samples=3"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"triple": pca("m"), "dims": [8, 16]}
    with pytest.raises(ValueError, match=message):
        critical_step(**(arguments | change))
    with pytest.raises(ValueError, match=message):
        localizability(**(arguments | change), step=1.0)

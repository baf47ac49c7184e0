"""Constants of the theorem on lazy training, and the flow of the linearised model."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import sgdlimits as sl
from sgdlimits.theory import implicit_bias, lazy

RIGHT = {"misfit": 1.0, "smallest": 2.0, "largest": 4.0, "lipschitz": 0.1, "samples": 10}


def test_the_linearised_flow_solves_its_equation() -> None:
    rng = np.random.default_rng(0)
    D, r = rng.standard_normal((4, 9)), rng.standard_normal(4)
    times = np.array([0.0, 0.3, 2.0, 20.0])
    solution = solve_ivp(
        lambda _, u: D.T @ (r - D @ u) / 4, (0, 20), np.zeros(9), "DOP853", times,
        rtol=1e-11, atol=1e-11,
    )  # fmt: skip
    np.testing.assert_allclose(lazy.linear_flow(D, r, times=times), solution.y.T, atol=1e-9)


def test_it_is_least_squares_of_the_corrected_targets() -> None:
    """ỹ = y − f₀ + D₀θ₀: the nearest interpolant from θ₀; with the printed minus it is not."""
    rng = np.random.default_rng(1)
    D, r, start = rng.standard_normal((4, 9)), rng.standard_normal(4), rng.standard_normal(9)
    end = start + lazy.linear_flow(D, r, times=[1e6])[0]
    nearest = implicit_bias.nearest_interpolant(D, r + D @ start, start)
    np.testing.assert_allclose(end, nearest, atol=1e-10)
    printed = implicit_bias.nearest_interpolant(D, r - D @ start, start)
    assert np.linalg.norm(end - printed) > 0.1


def test_more_samples_than_parameters() -> None:
    """Least squares, where there is no interpolant; directions without signal do not move."""
    D, r = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]), np.array([1.0, 3.0, 5.0])
    np.testing.assert_allclose(lazy.linear_flow(D, r, times=[1e4])[0], [2.0, 0.0], atol=1e-12)


def test_constants_are_the_integrals_of_the_proof() -> None:
    """The differential inequalities with equality, solved numerically."""
    rho, low, high, L, n = 1.3, 2.0, 5.0, 0.2, 7
    a = low**2 / n

    def growth(t: float, u: np.ndarray) -> list[float]:
        r = u[0]
        apart = -a / 4 * r + 5 * L * rho**2 * high / (low * n) * np.exp(-a * t)
        left = rho * np.exp(-a * t / 4)
        return [apart, (L * 2 * rho / low * left + high * r) / n]

    end = solve_ivp(growth, (0, 400 / a), [0.0, 0.0], "DOP853", rtol=1e-9, atol=1e-12).y[1, -1]
    found = lazy.guarantee(rho, smallest=low, largest=high, lipschitz=L, samples=n)
    # the bound on r in the text drops e^(−at): equality holds up to that
    bound = 8 * L * rho**2 / low**3 + 80 / 3 * L * high**2 * rho**2 / low**5
    assert 0.7 * bound < end <= bound * (1 + 1e-6)
    assert found.deviation == pytest.approx(min(bound, 3 * rho / low))
    tighter = lazy.guarantee(rho, smallest=low, largest=high, lipschitz=L / 1e3, samples=n)
    assert tighter.deviation == pytest.approx(bound / 1e3)
    assert found.reach == pytest.approx(2 * rho / low)
    assert found.rate == pytest.approx(a / 2)


def test_without_the_assumption_nothing_is_promised() -> None:
    edge = lazy.guarantee(1.0, smallest=1.0, largest=1.0, lipschitz=0.25, samples=1)
    assert not edge.holds
    assert (edge.rate, edge.reach, edge.deviation) == (0.0, math.inf, math.inf)
    singular = lazy.guarantee(1.0, smallest=0.0, largest=1.0, lipschitz=0.0, samples=1)
    assert not singular.holds
    assert repr(singular) == "no promise: L|y − f₀|/σ_min² = inf is not below 1/4"
    exact = lazy.guarantee(0.0, smallest=1.0, largest=1.0, lipschitz=1.0, samples=1)
    assert exact.holds
    assert exact.deviation == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"misfit": -1.0}, "misfit=-1.0"),
        ({"largest": 1.0}, "largest=1.0 is not allowed: largest must be at least smallest=2.0"),
        ({"lipschitz": math.nan}, "lipschitz=nan"),
        ({"samples": 0}, "samples=0"),
    ],
)
def test_wrong_input(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        lazy.guarantee(**(RIGHT | arguments))


def test_wrong_flows() -> None:
    with pytest.raises(sl.InputError, match=r"jacobian has shape \(2, 1\), .* have 3 rows"):
        lazy.linear_flow([[1.0], [2.0]], [1.0, 2.0, 3.0], times=[1.0])
    with pytest.raises(sl.InputError, match="times must be >= 0"):
        lazy.linear_flow([[1.0]], [1.0], times=[-1.0])
    with pytest.raises(sl.InputError, match=r"scale=0\.0"):
        lazy.scalings(0.0, samples=1, dim=1, width=1)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_promises_do_not_depend_on_the_unit_of_predictions(unit: float) -> None:
    """Twice as large predictions are the same paths in a quarter of the time."""
    sizes = {"smallest": 2.0 * unit, "largest": 4.0 * unit, "lipschitz": 0.1 * unit}
    found = lazy.guarantee(unit, samples=10, **sizes)
    plain = lazy.guarantee(1.0, smallest=2.0, largest=4.0, lipschitz=0.1, samples=10)
    assert (found.ratio, found.reach) == pytest.approx((plain.ratio, plain.reach), rel=1e-12)
    assert found.deviation == pytest.approx(plain.deviation, rel=1e-12)
    assert found.rate == pytest.approx(0.2 * unit * unit, rel=1e-12)


def test_promises_at_the_ends_of_the_numbers() -> None:
    assert not lazy.guarantee(1.0, smallest=1e-200, largest=1.0, lipschitz=1.0, samples=1).holds
    wide = lazy.guarantee(1.0, smallest=1e-200, largest=1e200, lipschitz=0.0, samples=1)
    assert wide.holds
    assert (wide.ratio, wide.deviation, wide.reach) == pytest.approx((0.0, 0.0, 2e200))

"""The solver on the host: order, dense output, rows that do not know of one another, and ends."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sgdlimits.dynamics.flow.methods import EIGHTH, FIFTH, LOOSE, Method
from sgdlimits.dynamics.flow.runge_kutta import integrate


def pendulum(u: np.ndarray) -> np.ndarray:
    return np.stack([u[:, 1], -np.sin(u[:, 0]) - 0.1 * u[:, 1]], axis=1)


STARTS = np.array([[1.0, 0.0], [0.01, 0.5], [-3.0, 1.0]])
TIMES = np.sort(np.append(np.linspace(0.0, 20.0, 101), [1e-5, 3.14159]))


def test_every_row_is_the_solution_from_its_start() -> None:
    values, reached = integrate(pendulum, STARTS, TIMES, 1e-10, 1e-12)
    assert reached.all()
    for start, row in zip(STARTS, values, strict=True):
        exact = solve_ivp(
            lambda _, u: pendulum(u[None])[0],
            (0, 20),
            start,
            "LSODA",
            TIMES,
            rtol=1e-12,
            atol=1e-13,
        )
        np.testing.assert_allclose(row, exact.y.T, atol=2e-8)


def test_rows_do_not_depend_on_their_neighbours_or_on_the_times_asked_for() -> None:
    together, _ = integrate(pendulum, STARTS, TIMES, 1e-8, 1e-10)
    alone, _ = integrate(pendulum, STARTS[1:2], TIMES, 1e-8, 1e-10)
    few, _ = integrate(pendulum, STARTS, TIMES[[0, -1]], 1e-8, 1e-10)
    np.testing.assert_allclose(together[1], alone[0], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(together[:, -1], few[:, -1], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("method", "loose", "tight"), [(EIGHTH, 0.1 * LOOSE, 1e-12), (FIFTH, 1e-3, LOOSE)]
)
def test_work_grows_as_the_order_lets_it(method: Method, loose: float, tight: float) -> None:
    """Like accuracy to the power of one over the order; and another order is told apart."""
    calls, errors = [], []
    times = np.linspace(0.0, 100.0, 301)
    exact, _ = integrate(pendulum, STARTS[:1], times, 1e-12, 1e-14)
    for rtol in (loose, tight):
        counted = [0]

        def rates(u: np.ndarray, counted: list[int] = counted) -> np.ndarray:
            counted[0] += 1
            return pendulum(u)

        values, _ = integrate(rates, STARTS[:1], times, rtol, 1e-3 * rtol)
        calls.append(counted[0])
        errors.append(np.abs(values - exact).max())
    assert calls[1] / calls[0] < 1.5 * (tight / loose) ** method.exponent
    assert errors[0] < 300 * loose


def test_a_loose_tolerance_takes_no_stage_for_times_inside_steps() -> None:
    calls = []
    for points in (2, 400):
        counted = [0]

        def rates(u: np.ndarray, counted: list[int] = counted) -> np.ndarray:
            counted[0] += 1
            return pendulum(u)

        integrate(rates, STARTS[:1], np.linspace(0.0, 20.0, points), 1e-4, 1e-6)
        calls.append(counted[0])
    assert calls[0] == calls[1]


def test_what_diverges_is_not_finite_afterwards_and_the_others_are_not_touched() -> None:
    values, reached = integrate(
        lambda u: u**2, np.array([[1.0], [0.1]]), np.linspace(0.0, 2.0, 5), 1e-9, 1e-12
    )
    assert reached.tolist() == [False, True]
    assert np.isnan(values[0, -2:]).all()
    np.testing.assert_allclose(values[1, -1], 0.1 / (1 - 0.2), rtol=1e-8)


@pytest.mark.parametrize("rate", [0.0, np.nan])
def test_nothing_moves_or_nothing_is_known(rate: float) -> None:
    values, reached = integrate(
        lambda u: rate * u, np.array([[1.0, 2.0]]), np.array([0.0, 1.0]), 1e-6, 1e-9
    )
    assert reached.all() == (rate == 0)
    np.testing.assert_array_equal(values[0, -1], [1.0, 2.0] if rate == 0 else [np.nan, np.nan])

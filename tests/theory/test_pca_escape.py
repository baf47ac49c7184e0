"""Times of matrix PCA to an overlap: against the ODE, and against a boundary value problem."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp, solve_ivp

import sgdlimits as sl
from sgdlimits.theory import spiked_tensor as theory


@pytest.mark.parametrize("step", [1.0, 0.6, 1.4])
def test_the_flow_from_a_small_overlap(step: float) -> None:
    """The median, whose G is known, is the time of the ODE from r² = 1 with that overlap."""
    snr, level, dim = 2.5, 0.5, 10**16

    def rates(_: float, u: np.ndarray) -> list[float]:
        velocity = theory.drift(u[0], u[1], order=2, snr=snr, step=step)
        return [float(velocity.overlap), float(velocity.radius_squared)]

    def event(_: float, u: np.ndarray) -> float:
        return float(u[0] - level)

    # a start of variance v/n is √c times as large at r² = c, where G has variance cλ/(λ − c)
    start = 0.6744897501960817 * math.sqrt(snr / (snr - step) / dim)
    solved = solve_ivp(rates, (0, 20), [start, 1.0], events=event, rtol=1e-11, atol=1e-22)
    median = theory.escape_quantile(0.5, level, dim, snr=snr, step=step)
    assert median == pytest.approx(solved.t_events[0][0], rel=2e-6)


def test_mean_and_law_belong_together() -> None:
    options = {"snr": 1.5, "step": 0.9}
    mean = theory.escape_time(0.4, 10**6, **options)
    left, _ = quad(
        lambda t: 1 - float(theory.escape_probability(t, 0.4, 10**6, **options)), 0, 30, limit=200
    )
    assert mean == pytest.approx(left, abs=2e-3)  # P(|m(0)| > 0.4), which the formula lets in
    slope = theory.escape_time(0.4, 10**7, **options) - mean
    assert slope == pytest.approx(math.log(10) / (8 * 0.6))


@pytest.mark.parametrize(("snr", "step"), [(0.5, 1.0), (0.2, 0.7), (0.0, 1.0)])
def test_climbing_is_the_exit_of_a_diffusion(snr: float, step: float) -> None:
    """½s²u'' + bu' = −1 with u'(0) = 0 and u(η) = 0, for the drift and diffusion of the package."""
    dim, level = 200, 0.2

    def slope(m: np.ndarray, u: np.ndarray) -> np.ndarray:
        drift = theory.drift(m, np.full_like(m, step), order=2, snr=snr, step=step).overlap
        noise = theory.diffusion(m, np.full_like(m, step), order=2, step=step)[..., 0, 0] / dim
        return np.stack([u[1], -2 * (1 + drift * u[1]) / noise])

    grid = np.linspace(0, level, 200)
    solved = solve_bvp(
        slope,
        lambda a, b: np.array([a[1], b[0]]),
        grid,
        np.zeros((2, 200)),
        tol=1e-8,
        max_nodes=20000,
    )
    assert solved.success
    time = theory.climbing_time(level, dim, snr=snr, step=step, watched=False)
    assert time == pytest.approx(solved.sol(0.0)[0], rel=1e-6)
    assert theory.climbing_time(level, dim, snr=snr, step=step) > time


def test_the_barrier_is_the_growth_of_the_exponent() -> None:
    dims, level = (4000, 5000), 0.3
    times = [theory.climbing_time(level, n, snr=0.3, watched=False) for n in dims]
    growth = math.log(times[1] / times[0] * (dims[1] / dims[0]) ** 0.5) / (dims[1] - dims[0])
    assert growth == pytest.approx(theory.climbing_barrier(level, snr=0.3), rel=1e-3)
    small = theory.climbing_barrier(1e-3, snr=0.3, step=0.8)
    assert small == pytest.approx((1 - 0.3 / 0.8) * 1e-6 / (2 * 0.8), rel=1e-4)
    assert theory.climbing_time(0.5, 10**6, snr=0.3) == math.inf


@pytest.mark.parametrize(
    ("function", "words", "said"),
    [
        ("escape_time", {"snr": 0.9}, "snr must be above step=1.0"),
        ("escape_time", {"snr": 1.1}, "overlap must be below 0.316"),
        ("escape_quantile", {"snr": 0.9, "part": 0.5}, "snr must be above"),
        ("climbing_time", {"snr": 1.0}, "snr must be below step=1.0"),
        ("climbing_time", {"snr": 0.5, "dim": 1}, "dim=1 is not allowed"),
    ],
)
def test_the_other_side_is_refused(function: str, words: dict[str, float], said: str) -> None:
    with pytest.raises(sl.InputError, match=said):
        getattr(theory, function)(**({"overlap": 0.5, "dim": 1000} | words))

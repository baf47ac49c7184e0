"""How finite dimension slows growth down: coefficients from one step, and trapped runs."""

from typing import Any

import numpy as np
import pytest

from sgdlimits.theory import phase_retrieval as pr
from sgdlimits.theory.phase_retrieval.exit_setting import checked_setting
from sgdlimits.theory.phase_retrieval.finite_dim import coupling

STEP, NOISE = 0.3, 0.7


def taylor(values: list[float], points: list[float], orders: list[int]) -> np.ndarray:
    """Coefficients of a polynomial that has these orders only."""
    powers = np.array(points)[:, None] ** np.array(orders)
    return np.asarray(np.linalg.lstsq(powers, np.array(values), rcond=None)[0])


@pytest.mark.parametrize("width", [2, 3])
def test_closed_forms_are_derivatives_of_the_moments_of_one_step(width: int) -> None:
    """χ, V, λ₂ and ρ₁ of the docstring, each from the exact mean and covariance at the equator."""
    p, flat, points = width, np.eye(width), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    first, both = np.eye(p)[0], np.eye(p)[0] + np.eye(p)[1]
    pair = np.outer(first, both - first) + np.outer(both - first, first)

    def covariance(m: np.ndarray) -> np.ndarray:
        return STEP * pr.increment_covariance(m, flat, step=STEP, noise=NOISE)

    def second(m: np.ndarray, i: int, j: int) -> float:
        found = [covariance(x * m)[i, j] for x in points]
        return float(taylor(found, points, [0, 2, 4, 6, 8])[1])

    def more(x: float) -> float:
        options: Any = {"step": STEP, "noise": NOISE}
        here = pr.one_step_drift(x * first, flat, dim=2, **options)
        return float(here.overlaps[0] - pr.drift(x * first, flat, **options).overlaps[0]) * 2

    def bent(apart: np.ndarray) -> float:
        gram = flat + 0.1 * apart
        return float(pr.drift(1e-4 * first, gram, step=STEP).overlaps[0]) / 1e-4 / 0.01

    own = coupling(checked_setting(10**6, p, STEP, NOISE, 0.1))
    q01 = p + 1  # Q[0,1] among the increments
    cross = [covariance(x * (both - first))[0, q01] for x in points]
    assert own.cross == pytest.approx(taylor(cross, points, [1, 3, 5, 7, 9])[0], rel=1e-8)
    decay = pr.alignment_decay_rate(p, STEP)
    assert own.variance == pytest.approx(covariance(0 * first)[q01, q01] / (2 * decay))
    bend = (bent(pair) + bent(-pair) - 2 * bent(0 * pair)) / 2 * (p - 1)
    if p == 3:  # the pair that the first neuron is not in
        other = np.roll(np.roll(pair, 1, 0), 1, 1)
        bend += (bent(other) + bent(-other) - 2 * bent(0 * pair)) / 2
    assert own.bend == pytest.approx(bend, rel=0.02)  # to second order in 0.1
    a1, a2 = second(first, 1, 1), second(both, 0, 1)
    a3 = second(first, 0, 0) - a1 - a2
    eta = taylor([more(x) for x in points], points, [1, 3, 5, 7, 9])[0]
    local = eta + (a1 * (p - 2) - a2 + a3 * (1 - 6 / (p + 2))) / 2
    assert own.local == pytest.approx(local, rel=1e-8)


def test_aligned_neurons_learn_below_the_trapping_step_only() -> None:
    """Their overlap grows or decays, whatever a network of neurons that are apart does."""
    trap = pr.trapping_step(3, NOISE)
    for step, sign in ((0.95 * trap, 1), (1.05 * trap, -1)):
        aligned = pr.drift(np.full(3, 1e-4), np.ones((3, 3)), step=step, noise=NOISE)
        assert np.all(np.sign(aligned.overlaps) == sign)
        assert np.max(np.abs(aligned.gram)) < 1e-6  # they stay together
        assert pr.growth_rate(3, step, NOISE) > 0


def test_steps_are_reliable_where_dim_is_large() -> None:
    for width in (1, 2, 5, 20):
        fastest = pr.fastest_step(width, NOISE)
        assert pr.reliable_step(10**6, width, NOISE) == fastest
        step = pr.reliable_step(300, width, NOISE)
        slowing = pr.growth_slowing(width, step=step, noise=NOISE) / 300
        assert slowing == pytest.approx(0.03) if step < fastest else slowing <= 0.03

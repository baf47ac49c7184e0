"""Limits of least squares: against the transform of Marchenko and Pastur, and at their ends."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize

from sgdlimits.theory import double_descent, marchenko_pastur

RATIOS = [0.05, 0.5, 0.99, 1.0, 1.01, 2.0, 20.0]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("ridge", [0.01, 0.3, 10.0])
def test_integrals_over_the_law(ratio: float, ridge: float) -> None:
    """Bias ∫ λ²/(x + λ)² dF and variance ∫ x/(x + λ)² dF/φ, by quadrature and with the atom."""
    low, high = marchenko_pastur.edges(ratio)

    def mean(function: object) -> float:
        def along(angle: float) -> float:
            x = (low + high) / 2 - (high - low) / 2 * math.cos(angle)
            weight = marchenko_pastur.density(x, ratio) * (high - low) / 2 * math.sin(angle)
            return float(function(x) * weight)  # type: ignore[operator]

        value, _ = integrate.quad(along, 0, math.pi, limit=400)
        return value + marchenko_pastur.atom(ratio) * function(0.0)  # type: ignore[operator]

    bias = mean(lambda x: (ridge / (x + ridge)) ** 2)
    variance = mean(lambda x: x / (x + ridge) ** 2) / ratio
    assert double_descent.bias(ratio, 3.0, ridge) == pytest.approx(3 * bias, rel=1e-7)
    assert double_descent.variance(ratio, 0.2, ridge) == pytest.approx(0.2 * variance, rel=1e-7)
    form = marchenko_pastur.stieltjes(-ridge, ratio).real
    assert double_descent.resolvent_form(ratio, 3.0, ridge) == pytest.approx(3 * form, rel=1e-9)


@pytest.mark.parametrize("ratio", [0.05, 0.5, 0.99, 1.01, 2.0, 20.0])
def test_a_small_ridge_is_no_ridge(ratio: float) -> None:
    for part in (double_descent.bias, double_descent.variance):
        assert part(ratio, 1.0, 1e-14) == pytest.approx(part(ratio, 1.0), rel=1e-6, abs=1e-12)
    gamma = 1 / ratio  # as in the notes, corrected
    variance = gamma / (1 - gamma) if gamma < 1 else 1 / (gamma - 1)
    assert double_descent.variance(ratio, 1.0) == pytest.approx(variance)
    assert double_descent.bias(ratio, 1.0) == pytest.approx(max(0.0, 1 - 1 / gamma))


def test_at_one_sample_per_parameter() -> None:
    assert double_descent.variance(1.0, 0.1) == math.inf
    assert double_descent.risk(1.0, 1.0, 0.0) == 0.0
    assert math.isfinite(double_descent.risk(1.0, 1.0, 0.1, ridge=1e-3))
    assert double_descent.variance(1.0, 1.0, 1e-8) == pytest.approx(5e3, rel=1e-3)  # 1/(2√λ)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_the_best_ridge(ratio: float, noise: float) -> None:
    """Found by search; its risk is σ² m(−λ)/φ, and grows with the number of parameters."""
    best = double_descent.optimal_ridge(ratio, 2.0, noise)

    def risk(log: float) -> float:
        return double_descent.risk(ratio, 2.0, noise, math.exp(log))

    centre = math.log(best)
    found = optimize.minimize_scalar(risk, bounds=(centre - 3, centre + 3), method="bounded")
    assert found.x == pytest.approx(centre, abs=2e-3)
    least = double_descent.risk(ratio, 2.0, noise, best)
    form = double_descent.resolvent_form(ratio, 1.0, best)
    assert least == pytest.approx(noise * form / ratio, rel=1e-12)
    assert least < 2.0
    fewer = 1.1 * ratio
    ridge = double_descent.optimal_ridge(fewer, 2.0, noise)
    assert double_descent.risk(fewer, 2.0, noise, ridge) < least


def test_nothing_to_learn() -> None:
    assert double_descent.optimal_ridge(2.0, 0.0, 0.1) == math.inf
    assert double_descent.optimal_ridge(2.0, 0.0, 0.0) == 0.0
    assert double_descent.optimal_ridge(2.0, 1.0, 0.0) == 0.0


def test_means_at_finite_size() -> None:
    """Finite two away from square, in the limit those of Theorem 7.4."""
    sizes = [(10, 10), (10, 11), (11, 10), (10, 12), (12, 10)]
    values = [double_descent.mean_variance(*size, 1.0) for size in sizes]
    assert values == [math.inf, math.inf, math.inf, 10.0, 10.0]
    assert double_descent.mean_variance(10, 10, 0.0) == 0
    for n, d in ((2_000_000, 1_000_000), (1_000_000, 3_000_000)):
        limit = double_descent.variance(n / d, 1.0)
        assert double_descent.mean_variance(n, d, 1.0) == pytest.approx(limit, rel=1e-5)
        assert double_descent.mean_bias(n, d, 1.0) == pytest.approx(double_descent.bias(n / d, 1.0))


def test_the_ratio_is_samples_per_dimension_and_says_so() -> None:
    names = ("bias", "variance", "risk", "optimal_ridge", "resolvent_form")
    for function in (getattr(double_descent, name) for name in names):
        words = " ".join((function.__doc__ or "").split())
        assert "``ratio`` φ = n/d samples per dimension" in words


def test_extreme_sizes_stay_finite_and_positive() -> None:
    for ratio in np.geomspace(1e-12, 1e12, 9):
        for ridge in (0.0, 1e-12, 1.0, 1e12):
            value = double_descent.risk(ratio, 1.0, 1.0, ridge)
            assert value > 0
            assert math.isfinite(value) or (ratio == 1 and ridge == 0)


def test_tiny_ridges() -> None:
    """One sample per dimension: λm² + λm = 1, so m = (√(1 + 4/λ) − 1)/2 ≈ 1/√λ − ½."""
    for ridge in (1e-14, 1e-15, 1e-20, 1e-300):
        root = math.sqrt(ridge)
        form = double_descent.resolvent_form(1.0, 1.0, ridge)
        assert form == pytest.approx(1 / root - 0.5 + root / 8, rel=1e-12)
        # λ m'(−λ) tends to m/2: bias √λ/2, variance m/2
        assert double_descent.bias(1.0, 1.0, ridge) == pytest.approx(root / 2, rel=2 * root)
        assert double_descent.variance(1.0, 1.0, ridge) == pytest.approx(0.5 / root, rel=3 * root)
    # φλ is no number any more, the variance is
    few = double_descent.variance(1e-12, 1.0, 1e-300)
    assert few == pytest.approx(double_descent.variance(1e-12, 1.0), rel=1e-12)


def test_ridges_that_are_too_large_are_told() -> None:
    with pytest.raises(ValueError, match=r"ridge=1e\+300 is not allowed"):
        double_descent.risk(1e12, 1.0, 1.0, 1e300)
    assert double_descent.risk(1e6, 1.0, 1.0, 1e300) == pytest.approx(1.0)

"""Spiked tensors: reference numbers, and printed formulas that must fail."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sgdlimits.theory import spiked_tensor as st


def test_critical_snr_reference() -> None:
    expected = [1.0, 3.079201435678004, 6.75, 14.101102032058293, 28.935185185185187]
    values = [st.critical_snr(k) for k in range(2, 7)]
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    rho = np.linspace(1.0001, 4, 10**6)
    for k, value in zip(range(3, 7), values[1:], strict=True):
        assert np.min(rho ** (k - 1) / (rho - 1) ** ((k - 2) / 2)) == pytest.approx(value, rel=1e-8)


def test_overlaps_reference() -> None:
    np.testing.assert_allclose(st.overlaps(3, 4.0), [0.2955977425220848, 1.0], rtol=1e-9)


def test_jacobian_eigenvalues_reference() -> None:
    dagger, star = st.overlaps(3, 4.0)
    values = [
        np.sort(np.linalg.eigvals(st.jacobian(m, 1.0, order=3, snr=4.0)).real)
        for m in (star, dagger)
    ]
    expected = [-47.99999999999998, -23.999999999999975, -14.188691641060068, 4.814035147629564]
    np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-8)


def test_ode_reference() -> None:
    solution = solve_ivp(
        lambda t, u: st.drift(*u, order=2, snr=2.0),
        (0, 1),
        [0.1, 0.5],
        method="DOP853",
        t_eval=[0.1, 0.25, 1.0],
        rtol=1e-11,
        atol=1e-13,
    )
    expected = [
        [0.17378314522521002, 0.695130387037036],
        [0.34204858004246297, 0.8928560482012644],
        [0.9918783758077182, 0.9999944642669458],
    ]
    np.testing.assert_allclose(solution.y.T, expected, rtol=1e-7)


def test_critical_ridge_reference() -> None:
    values = [st.critical_ridge(k) for k in (2, 3, 4)]
    np.testing.assert_allclose(values, [4.0, 1.5, 1.1851851851851851], rtol=1e-10)
    for k, alpha in zip((2, 3, 4), values, strict=True):
        r2 = np.linspace(1e-3, 1.5, 20001)
        below = st.drift(0.0, r2, order=k, snr=1.0, ridge=0.99 * alpha).radius_squared
        above = st.drift(0.0, r2, order=k, snr=1.0, ridge=1.01 * alpha).radius_squared
        assert below.max() > 0 > above.max()
    half = st.drift(0.0, np.linspace(1e-3, 1, 999), order=2, snr=1.0, ridge=2.0).radius_squared
    assert half.max() > 0  # the printed α_c(2) = 2 is not critical


def test_ornstein_uhlenbeck_reference() -> None:
    values = [
        float(st.equator_variance(1.0, snr=1.2)),
        st.equator_stationary_variance(snr=0.5),
        st.radius_variance(order=2),
        st.radius_variance(order=3),
    ]
    np.testing.assert_allclose(values, [24.71819454637069, 2.0, 4.0, 6.0], rtol=1e-9)
    assert float(st.equator_variance(2.0, snr=1.0)) == pytest.approx(1 + 8 * 2)
    assert math.isinf(st.equator_stationary_variance(snr=1.5))
    start, end = (float(st.transient_radius_variance(t, order=3, step=0.7)) for t in (0.0, 9.0))
    assert (start, end) == pytest.approx((2.0, st.radius_variance(order=3, step=0.7)))
    late = st.equator_variance(30.0, snr=7.0, order=3, step=0.7)  # at k = 3 the snr has no say
    assert float(late) == pytest.approx(st.equator_stationary_variance(snr=0, order=3, step=0.7))


@pytest.mark.parametrize("step", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_fixed_points_are_at_rest_and_classified(order: int, step: float) -> None:
    snr = 1.3 * st.critical_snr(order, step)
    points = st.fixed_points(order, snr, step)
    assert len(points) == {2: 4, 3: 4, 4: 6, 5: 4}[order]
    for point in points:
        velocity = st.drift(point.overlap, point.radius_squared, order=order, snr=snr, step=step)
        np.testing.assert_allclose(velocity, 0.0, atol=1e-10 * snr**2)
        if point.radius_squared > 0:
            matrix = st.jacobian(
                point.overlap, point.radius_squared, order=order, snr=snr, step=step
            )
            assert (np.linalg.eigvals(matrix).real.max() < 0) == point.stable
    if order % 2:  # the printed mirror images are no fixed points for odd order
        star = max(point.overlap for point in points)
        assert abs(float(st.drift(-star, step, order=order, snr=snr, step=step).overlap)) > 1e-2
    assert len(st.fixed_points(order, 0.9 * st.critical_snr(order, step), step)) == 2


def test_small_steps_have_roots_below_one() -> None:
    dagger, _ = st.overlaps(3, 4.0, step=0.25)
    assert dagger**2 + 0.25 < 1  # outside the printed range ρ ≥ 1


def test_overlaps_merge_at_the_threshold() -> None:
    dagger, star = st.overlaps(3, st.critical_snr(3))
    assert dagger == pytest.approx(star, rel=1e-6)


def test_drift_is_the_gradient_of_the_loss() -> None:
    m, r2, h = 0.4, 0.7, 1e-6
    parameters: dict[str, Any] = {"order": 3, "snr": 2.0, "ridge": 0.8}
    along, radial = (
        (
            st.population_loss(m + a, r2 + b, **parameters)
            - st.population_loss(m - a, r2 - b, **parameters)
        )
        / (2 * h)
        for a, b in ((h, 0.0), (0.0, h))
    )
    velocity = st.drift(m, r2, step=1e-9, **parameters)
    assert float(velocity.overlap) == pytest.approx(-along, rel=1e-7)
    assert float(velocity.radius_squared) == pytest.approx(-4 * r2 * radial, rel=1e-7)
    printed = velocity.overlap - 0.8 * m  # sec. 7 doubles the ridge in the equation of m
    assert float(printed) != pytest.approx(-along, rel=1e-2)
    full = st.drift(m, r2, step=1.3, **parameters)
    chain_rule = along * full.overlap + radial * full.radius_squared
    assert float(st.loss_drift(m, r2, step=1.3, **parameters)) == pytest.approx(
        chain_rule, rel=1e-6
    )


def test_loss_drift_is_equation_3_4() -> None:
    m, r2, k, lam, c = 0.6, 0.8, 3, 2.5, 1.4
    big = m**2 + r2
    bracket = lam**2 * m ** (2 * k - 4) - 2 * lam * m ** (k - 2) * big ** (k - 1)
    bracket += big ** (2 * k - 2)
    expected = -4 * k**2 * m**2 * bracket - 4 * k**2 * big ** (2 * k - 2) * (r2 - c)
    assert float(st.loss_drift(m, r2, order=k, snr=lam, step=c)) == pytest.approx(expected)


def test_jacobian_matches_differences() -> None:
    parameters: dict[str, Any] = {"order": 4, "snr": 9.0, "step": 1.2, "ridge": 0.3}
    state, h = np.array([0.7, 0.9]), 1e-6
    columns = [
        (np.array(st.drift(*(state + e), **parameters)) - st.drift(*(state - e), **parameters))
        / (2 * h)
        for e in h * np.eye(2)
    ]
    np.testing.assert_allclose(st.jacobian(*state, **parameters), np.array(columns).T, rtol=1e-7)


def test_diffusion_against_explicit_tensors() -> None:
    """Monte Carlo over 3-tensors: the corrected (7.3) holds, the printed one fails."""
    x, v = np.array([0.6, 0.8, -0.5]), np.array([1.0, 0.0, 0.0])
    noise = np.random.default_rng(0).normal(size=(200_000, 3, 3, 3))
    gradient = -2 * sum(
        np.einsum(f"s{axes},{axes[0]},{axes[1]}->s{axes[2]}", noise.transpose(0, *order), x, x)
        for axes, order in (("abc", (1, 2, 3)), ("abc", (2, 3, 1)), ("abc", (3, 1, 2)))
    )
    m, r2 = 0.6, 0.8**2 + 0.5**2
    increments = gradient @ np.stack([v, 2 * (x - m * v)], axis=1)
    products = increments[:, :, None] * increments[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(products))
    gap = np.abs(products.mean(axis=0) - st.diffusion(m, r2, order=3)) / error
    assert gap.max() < 4
    big = m**2 + r2
    printed = np.array([24 * m * (big - m) * big, 24 * (big - m) ** 2 * big])
    assert np.all(np.abs(products.mean(axis=0)[1] - printed) / error[1] > 50)


def test_scaled_snr_limit_is_not_linear() -> None:
    """Drift of √n m at n = 10⁸ from the loss: 18 as corrected, not the 9 of (3.3)."""
    n, k, scaled_overlap = 1e8, 3, 1.5
    snr = 2.0 * n ** ((k - 2) / 2)
    m, h = scaled_overlap / np.sqrt(n), 1e-9
    high, low = (st.population_loss(m + s, 1.0, order=k, snr=snr) for s in (h, -h))
    numerical = -np.sqrt(n) * float(high - low) / (2 * h)
    sde = st.equator_sde(scaled_overlap, 1.0, order=k, scaled_snr=2.0)
    assert sde.drift[0] == pytest.approx(numerical, rel=1e-2)
    assert 2 * scaled_overlap * (k * 2.0 - k) != pytest.approx(numerical, rel=0.3)
    exact = st.drift(m, 1.0, order=k, snr=snr).overlap * np.sqrt(n)
    assert sde.drift[0] == pytest.approx(float(exact), rel=1e-6)
    noise = np.sqrt(st.diffusion(0.0, 0.8, order=k)[0, 0])
    assert st.equator_sde(0.0, 0.8, order=k, scaled_snr=2.0).noise[0] == pytest.approx(noise)


@pytest.mark.parametrize("order", [2, 3])
def test_radius_variance_against_sgd(order: int) -> None:
    """Exact chain of ‖x‖² without signal, 8000 runs: n Var(r²) = 2k within sampling error."""
    n, runs, k = 400, 8000, order
    rng = np.random.default_rng(1)
    r2 = np.ones(runs)
    for _ in range(400):  # one unit of time, eight relaxation times or more
        along = np.sqrt(r2) * (1 - 2 * k / n * r2 ** (k - 1))
        along += 2 * k / n * r2 ** ((k - 1) / 2) * rng.normal(size=runs)
        r2 = along**2 + 4 * k / n**2 * r2 ** (k - 1) * rng.chisquare(n - 1, size=runs)
    variance = n * r2.var()
    error = variance * np.sqrt(2 / runs)
    assert abs(variance - st.radius_variance(order=k)) < 4 * error + 10 / n * 2 * k
    assert (
        abs(variance - (k - 1) / (2 * k)) > 20 * error
    )  # stationary variance of the printed (3.5)


def test_states_broadcast() -> None:
    m, r2 = np.meshgrid([0.0, 0.5], [0.5, 1.0, 1.5])
    assert st.diffusion(m, r2, order=3).shape == (3, 2, 2, 2)
    assert st.drift(m, r2, order=3, snr=1.0).overlap.shape == (3, 2)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"order=1 is not allowed.*integer >= 2"):
        st.drift(0.0, 1.0, order=1, snr=1.0)
    with pytest.raises(ValueError, match=r"snr=1.0 is not allowed.*at least 3.079"):
        st.overlaps(3, 1.0)
    with pytest.raises(ValueError, match=r"step=-1.0 is not allowed"):
        st.critical_snr(3, step=-1.0)
    with pytest.raises(ValueError, match=r"overlap=nan is not allowed"):
        st.drift(float("nan"), 1.0, order=2, snr=1.0)

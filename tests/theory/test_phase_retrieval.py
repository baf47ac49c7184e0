"""Phase retrieval: reference numbers, exact moments, and printed formulas that must fail."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import roots_genlaguerre

from sgdlimits.gaussian.wick import quadratic_second, quadratic_square_second
from sgdlimits.theory import phase_retrieval as pr


def flow(velocity: Callable[..., Any], start: list[float], times: list[float]) -> np.ndarray:
    solution = solve_ivp(
        lambda t, u: np.ravel(velocity(u)),
        (0, times[-1]),
        start,
        method="DOP853",
        t_eval=times,
        rtol=1e-11,
        atol=1e-13,
    )
    return np.asarray(solution.y.T)


def test_single_reference() -> None:
    path = flow(lambda m: pr.single_drift(m, step=0.08, noise=0.4), [0.1], [0.5, 1.0, 3.0])
    expected = [0.2652506300168033, 0.5989714686957488, 0.9842317300630973]
    np.testing.assert_allclose(path[:, 0], expected, rtol=1e-8)


def test_pair_reference() -> None:
    """The paper's times 0.5, 1, 3 are our times 1, 2, 6 at width 2."""

    def velocity(u: np.ndarray) -> np.ndarray:
        gram = [[1.0, u[2]], [u[2], 1.0]]
        dm, dq = pr.drift(u[:2], gram, step=0.15, noise=0.4)
        np.testing.assert_allclose(np.diag(dq), 0, atol=1e-13)
        return np.array([*dm, dq[0, 1]])

    path = flow(velocity, [0.1, -0.05, -0.005], [1.0, 2.0, 6.0])
    expected = [
        [0.4331445699618554, -0.22828510627840884, -0.08625529341335002],
        [0.8521985614953316, -0.6188734100773889, -0.46415387764171717],
        [0.9669563872909722, -0.9667128417465436, -0.9220163544165413],
    ]
    np.testing.assert_allclose(path, expected, rtol=1e-8)


def test_unconstrained_reference() -> None:
    expected = [
        [0.35254283844518153, 0.5013663208618133],
        [0.8907556034886976, 0.894497464100954],
        [0.9995754437688893, 0.9996034955070654],
    ]
    path = flow(lambda u: pr.unconstrained_drift(*u, step=0.05), [0.1, 1.0], [0.5, 1.0, 2.0])
    np.testing.assert_allclose(path, expected, rtol=1e-8)


def test_risk_and_steps_reference() -> None:
    values = [pr.excess_risk(0.05, 0.5), pr.largest_step(0.5)]
    values += [pr.fastest_step(p, 0.5) for p in (1, 2, 5)]
    expected = [0.03571428571428572, 0.16, 0.08, 0.36363636363636365, 1.5527950310559007]
    np.testing.assert_allclose(values, expected, rtol=1e-10)


@pytest.mark.parametrize("width", [1, 3])
def test_drift_from_exact_moments(width: int) -> None:
    """Ψ and Φ rebuilt from Wick moments of the error zᵀBz; the printed (26b) fails."""
    rng = np.random.default_rng(width)
    factor = rng.normal(size=(width + 1, width + 2)) / np.sqrt(width + 2)
    omega = factor @ factor.T
    q, m, rho = omega[:width, :width], omega[:width, width], omega[width, width]
    form = np.diag([-1 / width] * width + [1.0])
    step, noise = 0.3, 0.7
    with jax.enable_x64(True):
        first = np.asarray(quadratic_second(form, omega))
        second = np.asarray(quadratic_square_second(form, omega))
    psi = 2 * first[:width, width]
    phi = 4 * first[:width, :width]
    phi = phi + 4 * step / width * (second[:width, :width] + noise * q)
    velocity = pr.drift(m, q, step=step, noise=noise, spherical=False, signal=rho)
    np.testing.assert_allclose(velocity.overlaps, psi / width, rtol=1e-11)
    np.testing.assert_allclose(velocity.gram, phi / width, rtol=1e-11)
    printed = phi - 8 * np.outer(m, m) * (1 - 1 / width)  # mmᵀ/k with k = width
    sixteen = phi + 12 * step / width * (second[:width, :width] + noise * q)  # C.2: 16γ/p
    assert width == 1 or np.abs(printed / width - velocity.gram).max() > 1e-2
    assert np.abs(sixteen / width - velocity.gram).max() > 1e-2


def test_special_cases_agree() -> None:
    m = np.linspace(-0.9, 0.9, 7)
    general = [pr.drift([x], [[1.0]], step=0.07, noise=0.3).overlaps[0] for x in m]
    np.testing.assert_allclose(pr.single_drift(m, step=0.07, noise=0.3), general, rtol=1e-12)
    free = pr.drift([0.4], [[0.8]], step=0.07, spherical=False, signal=1.3)
    special = pr.unconstrained_drift(0.4, 0.8, step=0.07, signal=1.3)
    np.testing.assert_allclose([free.overlaps[0], free.gram[0, 0]], special, rtol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_growth_rate_is_the_linearised_drift(width: int) -> None:
    m = 1e-5 * np.eye(width)[0]
    velocity = pr.drift(m, np.eye(width), step=0.2, noise=0.5)
    assert velocity.overlaps[0] / m[0] == pytest.approx(pr.growth_rate(width, 0.2, 0.5), rel=1e-7)
    edge = pr.largest_step(0.5, width)
    assert pr.growth_rate(width, edge, 0.5) == pytest.approx(0, abs=1e-14)
    # samples to escape go as 1/(step·rate): smallest at the fastest step
    grid = np.linspace(0.01, 0.99, 99) * edge
    speed = [step * pr.growth_rate(width, step, 0.5) for step in grid]
    assert grid[np.argmax(speed)] == pytest.approx(pr.fastest_step(width, 0.5), rel=0.02)


def test_printed_step_bound_fails_with_noise() -> None:
    step, noise = 0.99 / 6, 2.0  # allowed by sec. 2 of the paper
    assert step > pr.largest_step(noise)
    assert pr.growth_rate(1, step, noise) < 0
    with pytest.raises(ValueError, match=r"step=0.165 is not allowed.*\(0, 0.142857\)"):
        pr.excess_risk(step, noise)


def test_risk_from_samples_and_late_times() -> None:
    rng = np.random.default_rng(3)
    omega = np.array([[0.8, 0.1, 0.4], [0.1, 1.1, -0.3], [0.4, -0.3, 1.0]])
    s1, s2, teacher = np.linalg.cholesky(omega) @ rng.normal(size=(3, 10**6))
    a = np.array([0.7, 1.4])
    errors = teacher**2 + np.sqrt(0.5) * rng.normal(size=10**6) - (a[0] * s1**2 + a[1] * s2**2) / 2
    samples = errors**2 / 2
    value = pr.risk(omega[:2, 2], omega[:2, :2], noise=0.5, readout=a)
    assert abs(value - samples.mean()) < 4 * samples.std() / 10**3

    m, q, rho = 0.3, 0.8, 1.2
    single = pr.risk([m], [[q]], noise=0.5, signal=rho)
    assert single == pytest.approx(0.25 + (3 * rho**2 + 3 * q**2 - 4 * m**2 - 2 * rho * q) / 2)
    assert single != pytest.approx(0.25 + 3 * rho**2 + 3 * q**2 - 4 * m**2 - 2 * rho * q)  # (63)
    assert pr.risk([0.0], [[1 / 3]]) == pytest.approx(4 / 3)  # (71) prints 10/3

    late = flow(lambda u: pr.single_drift(u, step=0.05, noise=0.5), [0.1], [60.0])[0, 0]
    excess = pr.risk([late], [[1.0]], noise=0.5) - 0.25
    assert excess == pytest.approx(pr.excess_risk(0.05, 0.5), rel=1e-9)


def test_increment_covariance_from_exact_moments() -> None:
    """Gauss–Hermite with 12 nodes per axis is exact for these polynomials of degree 12."""
    t, w = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack(np.meshgrid(t, t, t, indexing="ij")).reshape(3, -1)
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel() / np.sqrt(2 * np.pi) ** 3
    for m, step, noise in ((0.0, 0.05, 0.5), (0.4, 0.08, 0.3), (-0.8, 0.2, 1.0)):
        teacher = grid[0]
        field = m * grid[0] + np.sqrt(1 - m**2) * grid[1]
        error = teacher**2 - field**2 + np.sqrt(noise) * grid[2]
        steps = np.stack(
            [2 * error * field * teacher, 4 * error * field**2 + 4 * step * (error * field) ** 2]
        )
        centred = steps - (steps @ weights)[:, None]
        exact = (centred * weights) @ centred.T
        value = pr.single_increment_covariance(m, step=step, noise=noise)
        np.testing.assert_allclose(value, exact, rtol=1e-10, atol=1e-9)
        general = pr.increment_covariance([m], [[1.0]], step=step, noise=noise, spherical=False)
        np.testing.assert_allclose(general, exact, rtol=1e-10, atol=1e-9)
        printed = pr.single_increment_covariance(m, step=step / 2, noise=noise)  # (55) as printed
        assert printed[0, 0] == pytest.approx(exact[0, 0])  # Var M is right in print
        assert printed[1, 1] != pytest.approx(exact[1, 1], rel=1e-2)


def mean_step(
    overlaps: np.ndarray, gram: np.ndarray, dim: int, step: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean change of (m, Q) over δ in one step on the sphere of that dimension, by quadrature."""
    p = len(overlaps)
    axes = p + 1 + (noise > 0)
    t, w = np.polynomial.hermite_e.hermegauss(36 if axes == 2 else 30)
    grid = np.stack(np.meshgrid(*[t] * axes, indexing="ij")).reshape(axes, -1)
    weights = np.prod(np.meshgrid(*[w / w.sum()] * axes, indexing="ij"), axis=0).ravel()
    orthogonal = np.linalg.cholesky(gram - np.outer(overlaps, overlaps))
    basis = np.concatenate([overlaps[:, None], orthogonal], axis=1)  # neurons by their coordinates
    fields = basis @ grid[: p + 1]
    error = grid[0] ** 2 - np.mean(fields**2, axis=0) + noise**0.5 * (grid[-1] if noise else 0)
    delta = step / dim
    pull = delta * 2 / p * error * fields
    norms = np.sum(grid[: p + 1] ** 2, axis=0)
    radii, chances = roots_genlaguerre(16, (dim - p - 1) / 2 - 1)  # the rest of ‖x‖², χ²
    dm, dq = np.zeros(p), np.zeros((p, p))
    for radius, chance in zip(2 * radii, chances / chances.sum(), strict=True):
        moved = overlaps[:, None] + pull * grid[0]
        cross = pull[:, None] * fields[None, :]
        square = gram[:, :, None] + cross + np.swapaxes(cross, 0, 1)
        square += pull[:, None] * pull[None, :] * (norms + radius)
        size = np.sqrt(np.einsum("iix->ix", square))
        dm += chance * (moved / size - overlaps[:, None]) @ weights
        dq += chance * (square / (size[:, None] * size[None, :]) - gram[:, :, None]) @ weights
    return dm / delta, dq / delta


@pytest.mark.parametrize(("width", "step", "noise"), [(1, 0.01, 0.3), (2, 0.02, 0.0)])
def test_one_step_drift_has_the_terms_in_one_over_dim(
    width: int, step: float, noise: float
) -> None:
    """What is left falls as 1/d²; without the terms, or with Itô's of D.2 only, as 1/d."""
    m = np.array([0.4, -0.3])[:width]
    gram = np.array([[1.0, 0.2], [0.2, 1.0]])[:width, :width]
    dims = np.array([30, 100, 300])
    gaps = np.empty((3, len(dims)))
    for k, dim in enumerate(dims.tolist()):
        dm, dq = mean_step(m, gram, dim, step, noise)
        with_terms = pr.one_step_drift(m, gram, dim=dim, step=step, noise=noise)
        limit = pr.drift(m, gram, step=step, noise=noise)
        # sec. D.2: the squared norm of a sample is taken to be d whatever its fields
        free = {"dim": dim, "step": step, "noise": noise, "spherical": False}
        excess = pr.one_step_drift(m, gram, **free).gram
        excess = np.diag(excess - pr.drift(m, gram, step=step, noise=noise, spherical=False).gram)
        paper = with_terms.overlaps + m / 2 * excess
        velocities = (with_terms.overlaps, limit.overlaps, paper)
        gaps[:, k] = [np.linalg.norm(dm - velocity) for velocity in velocities]
        if width > 1:
            assert np.abs(dq - with_terms.gram).max() < 0.1 * np.abs(dq - limit.gram).max()
    slopes = np.polyfit(np.log(dims), np.log(gaps).T, 1)[0]
    assert slopes[0] == pytest.approx(-2, abs=0.15)
    np.testing.assert_allclose(slopes[1:], -1, atol=0.15)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"step=0 is not allowed"):
        pr.single_drift(0.1, step=0)
    with pytest.raises(ValueError, match=r"gram=.*positive diagonal"):
        pr.drift([0.1], [[0.0]], step=0.1)
    with pytest.raises(ValueError, match=r"gram=.*must be symmetric"):
        pr.drift([0.1, 0.1], [[1.0, 0.5], [0.0, 1.0]], step=0.1)

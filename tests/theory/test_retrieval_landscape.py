"""The landscape of phase retrieval against finite differences and sampled Hessians."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sgdlimits.theory import phase_retrieval as pr

Risk = Callable[[np.ndarray], float]


def risk_of(teacher: np.ndarray, noise: float) -> Risk:
    """The population risk as a function of weights, by its moments."""
    rho = float(teacher @ teacher)
    return lambda w: pr.risk([w @ teacher], [[w @ w]], noise=noise, signal=rho)


def derivatives(risk: Risk, w: np.ndarray, h: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian by central differences: exact for polynomials but for O(h²)."""
    d, steps = len(w), h * np.eye(len(w))
    gradient = np.array([(risk(w + e) - risk(w - e)) / (2 * h) for e in steps])
    hessian = np.empty((d, d))
    for i, e in enumerate(steps):
        for j, f in enumerate(steps):
            terms = risk(w + e + f) - risk(w + e - f) - risk(w - e + f) + risk(w - e - f)
            hessian[i, j] = terms / (4 * h**2)
    return gradient, hessian


def listed(point: pr.CriticalPoint) -> np.ndarray:
    return np.concatenate([np.full(count, value) for value, count in point.eigenvalues])


def weights_at(point: pr.CriticalPoint, teacher: np.ndarray) -> np.ndarray:
    """A point of that overlap and squared norm."""
    rho = teacher @ teacher
    across = np.linalg.svd(teacher[None])[2][1]
    along = point.overlap / rho * teacher
    return np.asarray(along + np.sqrt(max(point.square_norm - along @ along, 0.0)) * across)


@pytest.mark.parametrize("signal", [1.0, 1.7])
def test_critical_points_in_space(signal: float) -> None:
    d, noise = 5, 0.4
    teacher = np.random.default_rng(0).standard_normal(d)
    teacher *= np.sqrt(signal) / np.linalg.norm(teacher)
    risk, points = risk_of(teacher, noise), pr.critical_points(d, noise=noise, signal=signal)
    for point in points:
        w = weights_at(point, teacher)
        gradient, hessian = derivatives(risk, w)
        np.testing.assert_allclose(gradient, 0, atol=1e-4)
        np.testing.assert_allclose(np.linalg.eigvalsh(hessian), listed(point), atol=1e-4)
        assert point.risk == pytest.approx(risk(w), abs=1e-12)
    # no other one: gradient flow, forth and back, from random starts ends at one of them
    rng = np.random.default_rng(1)
    overlaps = rng.uniform(-1, 1, 5)
    assert [point.kind for point in points] == ["maximum", "saddle", "minimum", "minimum"]
    for overlap in overlaps:
        flow = solve_ivp(
            lambda t, u: pr.unconstrained_drift(*u, step=1e-9, signal=signal), (0, 60), [overlap, 2]
        )
        end = flow.y[:, -1]
        np.testing.assert_allclose(end, [np.sign(overlap) * signal, signal], rtol=1e-2)
    # printed: (71) has 10/3, (72) the eigenvalue 4ρ + 4ρ along the teacher
    assert points[1].risk - noise / 2 != pytest.approx(10 / 3 * signal**2)
    assert listed(points[2])[-1] != pytest.approx(8 * signal)


def test_critical_points_on_the_sphere() -> None:
    """The Hessian along geodesics, w cos s + e sin s."""
    d, noise = 6, 0.4
    teacher = np.eye(d)[0]
    risk = risk_of(teacher, noise)
    for point in pr.critical_points(d, noise=noise, spherical=True):
        w = weights_at(point, teacher)
        assert point.risk == pytest.approx(risk(w), abs=1e-12)
        assert sum(count for _, count in point.eigenvalues) == d - 1
    for m in (0.0, 0.5, -0.8, 1.0):
        w = np.zeros(d)
        w[:2] = m, np.sqrt(1 - m**2)
        tangent = np.linalg.svd(w[None])[2][1:]

        def on_sphere(u: np.ndarray, w: np.ndarray = w, tangent: np.ndarray = tangent) -> float:
            size = np.linalg.norm(u)
            direction = tangent.T @ u
            return risk(np.cos(size) * w + np.sinc(size / np.pi) * direction)

        _, hessian = derivatives(on_sphere, np.zeros(d - 1))
        spectrum = pr.sphere_hessian(m, d)
        values = np.sort(np.concatenate([np.full(count, value) for value, count in spectrum]))
        np.testing.assert_allclose(np.linalg.eigvalsh(hessian), values, atol=1e-4)


def test_the_hessian_of_samples_has_these_means() -> None:
    """∇²ℓ = 2(3s² − s⋆² − √Δz)xxᵀ at a general point, against 2(3q − ρ)I + 12wwᵀ − 4w⋆w⋆ᵀ."""
    rng, d, n, noise = np.random.default_rng(2), 4, 400_000, 0.5
    teacher, w = np.eye(d)[0], np.array([0.3, 0.6, -0.2, 0.1])
    x = rng.standard_normal((n, d))
    s, label = x @ w, (x @ teacher) ** 2 + np.sqrt(noise) * rng.standard_normal(n)
    samples = 2 * (3 * s**2 - label)[:, None, None] * x[:, :, None] * x[:, None, :]
    q = w @ w
    expected = 2 * (3 * q - 1) * np.eye(d) + 12 * np.outer(w, w)
    expected -= 4 * np.outer(teacher, teacher)
    error = samples.std(axis=0) / n**0.5
    assert np.all(np.abs(samples.mean(axis=0) - expected) < 4.5 * error)
    printed = 2 * (
        (3 * q - 1) * np.eye(d) + 3 * np.outer(w, w) - np.outer(teacher, teacher)
    )  # (67)
    assert np.any(np.abs(samples.mean(axis=0) - printed) > 10 * error)


@pytest.mark.parametrize(("step", "noise", "signal"), [(0.05, 0.0, 1.0), (0.1, 0.5, 1.3)])
def test_the_plateau_is_where_norms_rest(step: float, noise: float, signal: float) -> None:
    def dq(t: float, q: np.ndarray) -> np.ndarray:
        options: Any = {"step": step, "noise": noise, "signal": signal, "spherical": False}
        return np.asarray(pr.drift([0.0], [[q[0]]], **options).gram[0])

    rest = pr.plateau(step, noise=noise, signal=signal)
    for start in (0.01, 0.99 * rest.repelling_norm):
        end = solve_ivp(dq, (0, 400), [start], method="LSODA", rtol=1e-10, atol=1e-12).y[0, -1]
        assert end == pytest.approx(rest.square_norm, rel=1e-6)
    assert dq(0, np.array([1.01 * rest.repelling_norm]))[0] > 0
    options: Any = {"step": step, "noise": noise, "signal": signal, "spherical": False}
    velocity = pr.drift([1e-6], [[rest.square_norm]], **options)
    assert velocity.overlaps[0] / 1e-6 == pytest.approx(rest.growth_rate, rel=1e-6)
    risk = pr.risk([0.0], [[rest.square_norm]], noise=noise, signal=signal)
    assert rest.risk == pytest.approx(risk, rel=1e-12)
    assert rest.square_norm > 1.02 * signal / 3  # the corrector's shift from sec. H
    tiny = pr.plateau(1e-12, noise=noise, signal=signal)
    assert tiny.square_norm == pytest.approx(signal / 3, rel=1e-9)
    assert tiny.growth_rate == pytest.approx(4 * signal, rel=1e-9)
    edge = pr.largest_plateau_step(noise=noise, signal=signal)
    last = pr.plateau(edge * (1 - 1e-9), noise=noise, signal=signal)
    assert last.square_norm == pytest.approx(last.repelling_norm, rel=1e-3)
    beyond: Any = {"step": 1.001 * edge, "noise": noise, "signal": signal, "spherical": False}
    norms = np.linspace(1e-3, 20, 4000)
    assert all(pr.drift([0.0], [[q]], **beyond).gram[0, 0] > 0 for q in norms)
    with pytest.raises(ValueError, match=r"step=.* is not allowed.*grow without bounds"):
        pr.plateau(1.001 * edge, noise=noise, signal=signal)


def test_much_label_noise_leaves_a_plateau_from_which_nothing_is_learned() -> None:
    assert pr.plateau(0.99 * 2 / 32, noise=20.0).growth_rate > 0
    assert pr.plateau(1.01 * 2 / 32, noise=20.0).growth_rate < 0
    assert pr.plateau(0.17, noise=0.0).growth_rate > 0  # beyond 2/(12 + Δ) too, if Δ < 4
    assert "decay" in repr(pr.plateau(1.01 * 2 / 32, noise=20.0))


def test_wrong_input_is_told() -> None:
    with pytest.raises(ValueError, match=r"overlap=1.1 is not allowed.*\[-1, 1\]"):
        pr.sphere_hessian(1.1, 10)
    with pytest.raises(ValueError, match=r"signal=2.0 is not allowed.*spherical=True"):
        pr.critical_points(10, signal=2.0, spherical=True)
    with pytest.raises(ValueError, match=r"dim=2 is not allowed"):
        pr.critical_points(2)

"""Saad–Solla equations: reference numbers, Monte Carlo, and the closed forms in JAX."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

from sgdlimits.gaussian.erf import erf_curvature, erf_gradient
from sgdlimits.theory import saad_solla as ss

Q0 = np.array([[0.2, 0.05], [0.05, 0.3]])
R0 = np.array([[0.1, 0.02], [0.03, 0.15]])


def test_ode_reference() -> None:
    def velocity(t: float, u: np.ndarray) -> np.ndarray:
        q, r = u.reshape(2, 2, 2)
        return np.ravel(ss.drift(q, r, np.eye(2), step=0.5, noise=0.01))

    start = np.concatenate([Q0.ravel(), R0.ravel()])
    solution = solve_ivp(
        velocity, (0, 10), start, method="DOP853", t_eval=[1.0, 10.0], rtol=1e-11, atol=1e-13
    )
    expected = [
        [0.23999839443562912, 0.07349006340935628, 0.3225340398003078, 0.23618981439987669],
        [0.14676150755139084, 0.16007184682569348, 0.27611109201193046, 0.18368218719076623],
        [0.42361548571052987, 0.2635783147337397, 0.4660157194081486, 0.46514551102673923],
        [0.3469399901987446, 0.3692325362541929, 0.4897330872316653, 0.016635193114315383],
    ]
    for column, target in zip(solution.y.T, np.reshape(expected, (2, 8)), strict=True):
        q, r = column.reshape(2, 2, 2)
        error = ss.generalization_error(q, r, np.eye(2))
        values = [q[0, 0], q[0, 1], q[1, 1], *r.ravel(), error]
        np.testing.assert_allclose(values, target, rtol=1e-7)


def test_drift_from_samples() -> None:
    """One update in the fields, K = 3 students and M = 2 teachers: within standard errors."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(5, 6)) / np.sqrt(6)
    c, n, step, noise = factor @ factor.T, 400_000, 0.7, 0.2
    x = factor @ rng.normal(size=(6, n))
    g = erf(x / np.sqrt(2))
    residual = g[3:].sum(axis=0) - g[:3].sum(axis=0) + np.sqrt(noise) * rng.normal(size=n)
    signal = residual * np.sqrt(2 / np.pi) * np.exp(-(x[:3] ** 2) / 2)
    rates = ss.drift(c[:3, :3], c[:3, 3:], c[3:, 3:], step=step, noise=noise)
    noiseless = ss.drift(c[:3, :3], c[:3, 3:], c[3:, 3:], step=step)
    for i in range(3):
        for k in range(3):
            samples = step * (signal[i] * x[k] + signal[k] * x[i]) + step**2 * signal[i] * signal[k]
            error = samples.std() / np.sqrt(n)
            assert abs(samples.mean() - rates.student_gram[i, k]) < 4 * error
            if i == k:
                assert abs(samples.mean() - noiseless.student_gram[i, k]) > 10 * error
        for a in range(2):
            samples = step * signal[i] * x[3 + a]
            gap = abs(samples.mean() - rates.overlaps[i, a])
            assert gap < 4 * samples.std() / np.sqrt(n)
    losses = residual**2 / 2
    risk = ss.generalization_error(c[:3, :3], c[:3, 3:], c[3:, 3:]) + noise / 2
    assert abs(losses.mean() - risk) < 4 * losses.std() / np.sqrt(n)


def test_integrals_match_the_jax_closed_forms() -> None:
    factor = np.random.default_rng(1).normal(size=(4, 5)) / 2
    c = factor @ factor.T
    i3, i4 = ss._i3(c, 2), ss._i4(c, 2)
    with jax.enable_x64(True):
        for i, j, a in np.ndindex(2, 4, 4):
            index = [i, j, a]
            assert i3[i, j, a] == pytest.approx(float(erf_gradient(c[np.ix_(index, index)])))
        fours = np.array(list(np.ndindex(2, 2, 4, 4)))
        blocks = c[fours[:, :, None], fours[:, None, :]]
        np.testing.assert_allclose(i4.ravel(), erf_curvature(blocks), rtol=1e-11, atol=1e-14)


def test_perfect_student_rests_without_noise() -> None:
    rates = ss.drift(np.eye(2), np.eye(2), np.eye(2), step=1.0)
    np.testing.assert_allclose(np.ravel(rates), 0, atol=1e-14)
    noisy = ss.drift(np.eye(2), np.eye(2), np.eye(2), step=1.0, noise=0.1)
    assert np.all(np.diag(noisy.student_gram) > 0.01)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"overlaps has shape \(2, 2\).*\(1, 2\)"):
        ss.drift([[1.0]], R0, np.eye(2), step=0.5)
    with pytest.raises(ValueError, match=r"noise=-1 is not allowed"):
        ss.drift(Q0, R0, np.eye(2), step=0.5, noise=-1)

"""Softmax on a Gaussian mixture: reference numbers and the energy it descends."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sgdlimits.theory import gaussian_mixture as gm


@pytest.mark.parametrize(
    ("classes", "weight", "ridge", "expected"),
    [
        (3, 1 / 3, 0.1, 1.0138368636588404),
        (10, 0.1, 0.01, 2.8190366282874897),
        (3, 0.5, 0.1, 1.217686710013763),
    ],
)
def test_fixed_point_reference(classes: int, weight: float, ridge: float, expected: float) -> None:
    overlap = gm.orthonormal_overlap(classes, weight, ridge)
    assert overlap == pytest.approx(expected, rel=1e-9)
    uniform = np.full(classes, (1 - weight) / (classes - 1))
    uniform[0] = weight
    m = np.column_stack(
        [
            np.where(np.arange(classes) == b, 1.0, -1 / (classes - 1))
            * gm.orthonormal_overlap(classes, p, ridge)
            for b, p in enumerate(uniform)
        ]
    )
    velocity = gm.noiseless_drift(m, np.zeros((classes, classes)), weights=uniform, ridge=ridge)
    np.testing.assert_allclose(velocity.overlaps, 0, atol=1e-13)


def test_ode_reference() -> None:
    def velocity(t: float, u: np.ndarray) -> np.ndarray:
        m, r = u.reshape(2, 3, 3)
        return np.ravel(gm.noiseless_drift(m, r, weights=[0.5, 0.3, 0.2], ridge=0.1))

    start = np.concatenate([np.zeros(9), np.eye(3).ravel()])
    solution = solve_ivp(
        velocity, (0, 5), start, method="DOP853", t_eval=[1.0, 5.0], rtol=1e-11, atol=1e-13
    )
    expected = [
        [
            0.2915599884073061,
            -0.09050842736145759,
            -0.0613675604415112,
            -0.14577999420365306,
            0.1810168547229149,
            -0.0613675604415112,
            -0.14577999420365306,
            -0.09050842736145759,
            0.12273512088302246,
        ],
        [
            0.8948477573521779,
            -0.3107823380966909,
            -0.22402534954323147,
            -0.44742387867608857,
            0.6215646761933813,
            -0.22402534954323147,
            -0.44742387867608857,
            -0.3107823380966909,
            0.448050699086463,
        ],
    ]
    np.testing.assert_allclose(solution.y[:9].T, expected, rtol=1e-8)
    np.testing.assert_allclose(solution.y[9], np.exp(-0.2 * solution.t), rtol=1e-9)
    assert solution.y[9, -1] != pytest.approx(np.exp(-0.1 * 5), rel=0.1)  # the printed rate of R


def test_drift_descends_the_energy() -> None:
    rng = np.random.default_rng(0)
    parameters: dict[str, Any] = {"weights": [0.5, 0.3, 0.2], "ridge": 0.1}
    m, zero = rng.normal(size=(3, 3)), np.zeros((3, 3))
    velocity = gm.noiseless_drift(m, zero, **parameters).overlaps
    for i in range(9):
        e = 1e-6 * np.eye(9)[i].reshape(3, 3)
        high, low = (gm.energy(m + s * e, zero, **parameters) for s in (1, -1))
        assert velocity.flat[i] == pytest.approx(-(high - low) / 2e-6, abs=1e-8)

    def printed(u: np.ndarray) -> float:  # log Σ_b e^(m_ab)
        p = np.array(parameters["weights"])
        fit = p @ (np.log(np.exp(u).sum(axis=1)) - np.diag(u))
        return float(fit + 0.05 * np.sum(u**2))

    e = 1e-6 * np.eye(9)[1].reshape(3, 3)
    assert abs(velocity.flat[1] + (printed(m + e) - printed(m - e)) / 2e-6) > 1e-2


def test_general_means_against_weights() -> None:
    """For means A and weights W in rows: dM = (dW)Aᵀ, with dW the mean of −∇L over classes."""
    rng = np.random.default_rng(2)
    a, w, p = rng.normal(size=(3, 5)), rng.normal(size=(3, 5)), np.array([0.2, 0.5, 0.3])
    step = -0.1 * w
    for c in range(3):
        scores = np.exp(w @ a[c])
        step += p[c] * np.outer(np.eye(3)[c] - scores / scores.sum(), a[c])
    velocity = gm.noiseless_drift(
        w @ a.T, np.zeros((3, 3)), weights=p, ridge=0.1, means_gram=a @ a.T
    )
    np.testing.assert_allclose(velocity.overlaps, step @ a.T, atol=1e-13)


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"weights=.*must be positive and sum to 1"):
        gm.noiseless_drift(np.zeros((2, 2)), np.eye(2), weights=[0.5, 0.6], ridge=0.1)
    with pytest.raises(ValueError, match=r"weight=1.5 is not allowed"):
        gm.orthonormal_overlap(3, 1.5, 0.1)
    with pytest.raises(ValueError, match=r"overlaps has shape \(\)"):
        gm.energy(0.0, np.eye(2), weights=[0.5, 0.5], ridge=0.1)

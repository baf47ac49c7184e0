"""The engine against the papers' closed forms, at random states."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import sgdlimits as sl
from sgdlimits import theory


def random_gram(generator: np.random.Generator, size: int) -> np.ndarray:
    factor = generator.normal(size=(size, size + 1))
    return factor @ factor.T / size


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_spiked_tensor(order: int) -> None:
    task = sl.tasks.SpikedTensor(order=order, snr=1.7, ridge=0.3)
    limit = sl.effective_dynamics(task, step=0.8)
    state = {"m": 0.4, "r2": 0.7}
    drift = limit.drift(state)
    expected = theory.spiked_tensor.drift(0.4, 0.7, order=order, snr=1.7, step=0.8, ridge=0.3)
    np.testing.assert_allclose([drift["m"], drift["r2"]], expected, rtol=1e-12)
    np.testing.assert_allclose(
        limit.diffusion(state),
        theory.spiked_tensor.diffusion(0.4, 0.7, order=order, step=0.8),
        rtol=1e-12,
    )


@pytest.mark.parametrize("width", [4, 7])
def test_xor_without_noise(width: int) -> None:
    generator = np.random.default_rng(1)
    v, mu, nu = generator.normal(size=(3, width))
    task = sl.tasks.XorMixture(width=width, precision=math.inf, ridge=0.07)
    R = random_gram(generator, width)
    drift = sl.effective_dynamics(task).drift({"v": v, "M": np.stack([mu, nu], 1), "R": R})
    dv, dmu, dnu = theory.xor.noiseless_drift(v, mu, nu, ridge=0.07)
    np.testing.assert_allclose(drift["v"], dv, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(drift["M"], np.stack([dmu, dnu], 1), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(drift["R"], -2 * 0.07 * R, rtol=1e-12)


def test_softmax_without_noise_and_general_means() -> None:
    generator = np.random.default_rng(2)
    gram, weights = random_gram(generator, 4), [0.1, 0.2, 0.3, 0.4]
    task = sl.tasks.GaussianMixture(
        classes=4, weights=weights, means_gram=gram, precision=math.inf, ridge=0.05
    )
    M, R = generator.normal(size=(4, 4)), random_gram(generator, 4)
    drift = sl.effective_dynamics(task).drift({"M": M, "R": R})
    dM, dR = theory.gaussian_mixture.noiseless_drift(
        M, R, weights=weights, ridge=0.05, means_gram=gram
    )
    np.testing.assert_allclose(drift["M"], dM, rtol=1e-10)
    np.testing.assert_allclose(drift["R"], dR, rtol=1e-10)


@pytest.mark.parametrize("spherical", [True, False])
@pytest.mark.parametrize("width", [1, 2, 20])
def test_phase_retrieval_of_any_width(width: int, spherical: bool) -> None:
    task = sl.tasks.PhaseRetrieval(width=width, noise=0.3, spherical=spherical)
    state = task.random_state(30 + width, seed=3)
    drift = sl.effective_dynamics(task, step=0.4).drift(state)
    m = state["M"][:, 0]
    Q = state["R"] + np.outer(m, m)
    dm, dQ = theory.phase_retrieval.drift(m, Q, step=0.4, noise=0.3, spherical=spherical)
    np.testing.assert_allclose(drift["M"][:, 0], dm, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        drift["R"], dQ - np.outer(dm, m) - np.outer(m, dm), rtol=1e-9, atol=1e-12
    )


def test_saad_solla_with_correlated_teachers() -> None:
    T = np.array([[1.0, 0.3], [0.3, 1.4]])
    task = sl.tasks.TeacherStudent(student_width=3, noise=0.2, teacher_gram=T, scale="sum")
    state = task.random_state(12, seed=4)
    drift = sl.effective_dynamics(task, step=0.6).drift(state)
    M, inverse = state["M"], np.linalg.inv(T)
    Q = state["R"] + M @ inverse @ M.T
    dQ, dM = (0.6**-1 * x for x in theory.saad_solla.drift(Q, M, T, step=0.6, noise=0.2))
    np.testing.assert_allclose(drift["M"], dM, rtol=1e-9)
    inside = dM @ inverse @ M.T
    np.testing.assert_allclose(drift["R"], dQ - inside - inside.T, rtol=1e-9, atol=1e-12)


def test_binary_mixture_with_noise_and_its_jacobian() -> None:
    task = sl.tasks.BinaryMixture(precision=2.0, ridge=0.1)
    limit = sl.effective_dynamics(task, step=0.7, nodes=2**16)
    state = {"v": [0.8, -0.5], "M": [[0.6], [0.3]], "R": [[0.7, 0.2], [0.2, 0.9]]}

    def closed(vector: np.ndarray) -> np.ndarray:
        s = limit.unravel(vector)
        dv, dm, dR = theory.binary_mixture.drift(
            s["v"], s["M"][:, 0], s["R"], precision=2.0, ridge=0.1, step=0.7
        )
        return np.concatenate([dv, dm, dR[np.triu_indices(2)]])

    vector = limit.ravel(state)
    drift = limit.drift(state)
    flat = np.concatenate([drift["v"], drift["M"][:, 0], drift["R"][np.triu_indices(2)]])
    np.testing.assert_allclose(flat, closed(vector), atol=2e-5)
    errors = limit.drift_error(state)
    assert max(np.max(error) for error in errors.values()) < 2e-5
    h = 1e-5
    slopes = [(closed(vector + h * e) - closed(vector - h * e)) / (2 * h) for e in np.eye(7)]
    np.testing.assert_allclose(limit.jacobian(state), np.array(slopes).T, atol=3e-4)


@pytest.mark.parametrize("activation", ["erf", "square"])
def test_teachers_with_a_readout_equal_quadrature(activation: str) -> None:
    """Two ways to the same averages; the same teacher without its readout is far away."""
    import jax

    function = {"erf": lambda x: jax.scipy.special.erf(x / math.sqrt(2)), "square": lambda x: x**2}
    sigma = function[activation]
    settings: dict[str, Any] = {"noise": 0.3, "scale": "sum", "teacher_gram": [[1, 0.3], [0.3, 2]]}
    options = settings | {"activation": activation, "student_width": 1, "readout": "trained"}
    known = sl.tasks.TeacherStudent(**options, teacher_readout=[1.5, -0.7])
    assert known.committee is not None
    # the teacher's function is the caller's own, so that the engine cannot know the closed form
    unknown = sl.tasks.TeacherStudent(
        **options, teacher_readout=[1.5, -0.7], teacher_activation=sigma
    )
    assert unknown.committee is None
    state = known.random_state(9, seed=5)
    exact = sl.effective_dynamics(known, step=0.5)
    numerical = sl.effective_dynamics(unknown, step=0.5, nodes=2**14)
    plain = sl.effective_dynamics(sl.tasks.TeacherStudent(**options), step=0.5).drift(state)
    for name, value in exact.drift(state).items():
        np.testing.assert_allclose(numerical.drift(state)[name], value, atol=2e-5)
        assert np.max(np.abs(plain[name] - value)) > 0.01


def test_student_and_teacher_of_different_kinds() -> None:
    """A ReLU student of an erf teacher: the drift against samples drawn in NumPy."""
    task = sl.tasks.TeacherStudent(
        activation="relu",
        teacher_activation="erf",
        teacher_readout=[2.0, -1.0],
        student_width=1,
        noise=0.2,
    )
    rng = np.random.default_rng(0)
    state = task.random_state(8, seed=3)
    a, outside, z = rng.normal(size=(400_000, 2)), *rng.normal(size=(2, 400_000))
    field = a @ state["M"][0] + outside * state["R"][0, 0] ** 0.5
    drift = sl.effective_dynamics(task, rtol=1e-4).drift(state)["M"]  # samples know far less
    for teacher, agrees in ((lambda x: scipy.special.erf(x / math.sqrt(2)), True), (np.abs, False)):
        y = teacher(a) @ [1.0, -0.5] + math.sqrt(0.2) * z
        moved = ((y - np.maximum(field, 0)) * (field > 0))[:, None] * a
        error = moved.std(axis=0) / len(a) ** 0.5
        assert (np.max(np.abs(moved.mean(axis=0) - drift[0]) / error) < 4.5) == agrees


@pytest.mark.parametrize("activation", ["erf", "square"])
def test_declared_closed_forms_equal_quadrature(activation: str) -> None:
    """The same network given as a plain loss, so that the engine cannot know the closed form.

    With a readout that is trained; without one, papers' formulas are what is compared with above.
    """
    import jax
    import jax.numpy as jnp

    known = sl.tasks.TeacherStudent(
        activation=activation,
        teacher_width=1,
        student_width=2,
        noise=0.3,
        readout="trained",
        scale="mean",
    )
    function = {"erf": lambda x: jax.scipy.special.erf(x / math.sqrt(2)), "square": jnp.square}[
        activation
    ]

    def loss(s: jax.Array, v: jax.Array, y: jax.Array) -> jax.Array:
        return (y - jnp.sum(function(s) * v) / 2) ** 2 / 2

    unknown = sl.tasks.MultiIndexTask(
        loss=loss,
        width=2,
        anchors=["teacher0"],
        labels=lambda c, a, e: function(a)[0] + math.sqrt(0.3) * e,
        readout="trained",
        kinks="none",
    )
    state = known.random_state(9, seed=5)
    exact = sl.effective_dynamics(known, step=0.5)
    nodes = 2**17 if activation == "erf" else 2**14  # few integrate polynomials
    numerical = sl.effective_dynamics(unknown, step=0.5, nodes=nodes)
    for name, value in exact.drift(state).items():
        np.testing.assert_allclose(numerical.drift(state)[name], value, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(exact.jacobian(state), numerical.jacobian(state), atol=1e-6)
    assert all(np.all(error == 0) for error in exact.drift_error(state).values())
    assert all(np.all(error < 1e-6) for error in numerical.drift_error(state).values())

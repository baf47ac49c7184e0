"""The diffusion matrix against the papers' (corrected) closed forms."""

import math
from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import theory
from tests.dynamics.sampled import gradients


@pytest.mark.parametrize("overlap", [0.0, 0.3, -0.8])
def test_phase_retrieval_includes_the_fluctuating_norm(overlap: float) -> None:
    """AKLS23, (55) corrected; c·JVJᵀ alone, the limit of small steps, is something else."""
    step, noise = 0.1, 0.4
    task = sl.tasks.PhaseRetrieval(noise=noise, spherical=False)
    state = {"M": [[overlap]], "R": [[1 - overlap**2]]}
    increments = np.asarray(
        theory.phase_retrieval.single_increment_covariance(overlap, step=step, noise=noise)
    )
    to_R = np.array([[1.0, 0.0], [-2 * overlap, 1.0]])  # R = Q − m²
    expected = step * to_R @ increments @ to_R.T
    found = sl.effective_dynamics(task, step=step).diffusion(state)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    tiny = 1e-9
    gradient_only = sl.effective_dynamics(task, step=tiny).diffusion(state) * step / tiny
    assert np.abs(gradient_only[1, 1] / expected[1, 1] - 1) > 0.3


@pytest.mark.parametrize("spherical", [True, False])
@pytest.mark.parametrize("width", [1, 2, 5, 20])
def test_phase_retrieval_of_any_width_from_twelfth_moments(width: int, spherical: bool) -> None:
    """Derivatives on a circle against the engine's algebra; without the corrector's noise: off."""
    step, noise = 0.4 * width, 0.3
    task = sl.tasks.PhaseRetrieval(width=width, noise=noise, spherical=spherical)
    state = task.random_state(60, seed=3)
    if not spherical:
        state = {"M": 1.3 * state["M"], "R": 1.4 * state["R"]}
    m = state["M"][:, 0]
    gram = state["R"] + np.outer(m, m)
    options: Any = {"noise": noise, "spherical": spherical}
    found = theory.phase_retrieval.increment_covariance(m, gram, step=step, **options)
    rows, columns = np.triu_indices(width)
    to_R = np.eye(len(found))  # R = Q − mmᵀ
    pairs = width + np.arange(len(rows))
    np.subtract.at(to_R, (pairs, rows), m[columns])
    np.subtract.at(to_R, (pairs, columns), m[rows])
    expected = sl.effective_dynamics(task, step=step).diffusion(state)
    size = np.max(np.abs(expected))
    np.testing.assert_allclose(step * to_R @ found @ to_R.T, expected, atol=1e-11 * size)
    small = theory.phase_retrieval.increment_covariance(m, gram, step=1e-9, **options)
    assert np.max(np.abs(step * to_R @ small @ to_R.T - expected)) > 1e-2 * size


def test_sphere_has_no_radial_noise() -> None:
    task = sl.tasks.PhaseRetrieval(noise=0.4)
    m = 0.6
    diffusion = sl.effective_dynamics(task, step=0.1).diffusion({"M": [[m]], "R": [[1 - m**2]]})
    radial = np.array([2 * m, 1.0])  # gradient of m² + R
    np.testing.assert_allclose(radial @ diffusion @ radial, 0.0, atol=1e-12)
    assert diffusion[0, 0] > 0.01


def test_binary_ring() -> None:
    """Prop. 4.3 corrected: a noise of rank one, and a radial direction that restores."""
    ridge = 0.1
    radius = math.sqrt(theory.binary_mixture.ring_radius_squared(ridge))
    a = radius * np.array([math.cos(0.5), math.sin(0.5)])
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture(precision=math.inf, ridge=ridge))
    state = {"v": a, "M": a[:, None], "R": np.zeros((2, 2))}
    assert max(np.max(np.abs(part)) for part in limit.drift(state).values()) < 1e-12
    diffusion, jacobian = limit.diffusion(state), limit.jacobian(state)
    np.testing.assert_allclose(
        diffusion[:4, :4], theory.binary_mixture.ring_diffusion(a, ridge=ridge), atol=1e-12
    )
    np.testing.assert_allclose(
        jacobian[:4, :4], theory.binary_mixture.ring_jacobian(a, ridge=ridge), atol=1e-12
    )
    np.testing.assert_allclose(diffusion[4:], 0.0, atol=1e-15)
    np.testing.assert_allclose(jacobian[4:, 4:], -2 * ridge * np.eye(3), atol=1e-12)
    assert np.linalg.matrix_rank(diffusion, tol=1e-9) == 1
    printed = jacobian[:4, :4] + 2 * (ridge - 2 * ridge**2) * np.outer(np.tile(a, 2), np.tile(a, 2))
    assert np.max(np.linalg.eigvals(printed).real) > 0.01 > np.max(np.linalg.eigvals(jacobian).real)


def test_xor_without_noise() -> None:
    generator = np.random.default_rng(3)
    v, mu, nu = generator.normal(size=(3, 4))
    task = sl.tasks.XorMixture(precision=math.inf)
    state = {"v": v, "M": np.stack([mu, nu], 1), "R": np.eye(4)}
    limit = sl.effective_dynamics(task, step=0.7)
    diffusion = limit.diffusion(state)
    names = limit.coordinates
    order = [names.index(f"v[{i}]") for i in range(4)]
    order += [names.index(f"M[{i},{anchor}]") for anchor in ("mu", "nu") for i in range(4)]
    expected = theory.xor.noiseless_diffusion(v, mu, nu, step=0.7)
    np.testing.assert_allclose(diffusion[np.ix_(order, order)], expected, atol=1e-12)


@pytest.mark.parametrize(
    "task",
    [
        sl.tasks.XorMixture(precision=3.0),
        sl.tasks.GaussianMixture(precision=2.0),
        sl.tasks.TeacherStudent(activation="relu", teacher_width=1, student_width=2, noise=0.2),
        sl.tasks.OnlinePCA(1.5),
        sl.tasks.PhaseRetrieval(width=5, noise=0.3),
        sl.tasks.PhaseRetrieval(width=5, spherical=False, readout="trained"),
    ],
    ids=lambda task: type(task).__name__,
)
def test_diffusion_is_the_covariance_of_increments(task: sl.tasks.MultiIndexFamily) -> None:
    """Sample the fields as the data law says, with nothing integrated out."""
    step, draws, size = 0.8, 60_000, len(task.anchors)
    state = task.random_state(40, seed=2)
    generator = np.random.default_rng(4)
    c = generator.choice(len(task.weights), p=task.weights, size=draws)
    covariance = task.gram / task.precision + task.spike
    noise = generator.normal(size=(draws, size)) @ np.linalg.cholesky(covariance).T
    anchors = task.means[c] @ task.gram + noise
    C = np.linalg.cholesky(state["R"] / task.precision)
    orthogonal = generator.normal(size=(draws, task.width)) @ C.T
    fields = anchors @ np.linalg.inv(task.gram) @ state["M"].T + orthogonal
    normal = generator.normal(size=draws)
    g, readout = gradients(task, c, anchors, normal, fields, state.get("v"))
    readout = readout if task.trained else np.zeros((draws, 0))
    outer = lambda x, y: x[:, :, None] * y[:, None, :]  # noqa: E731
    dM = -outer(g, anchors)
    dQ = -outer(g, orthogonal) - outer(orthogonal, g) + step / task.precision * outer(g, g)
    if task.spherical:
        radial = -2 * g * fields + step / task.precision * g**2
        dM -= state["M"] * radial[:, :, None] / 2
        dQ -= state["R"] * (radial[:, :, None] + radial[:, None, :]) / 2
    upper = np.triu_indices(task.width)
    increments = np.concatenate(
        [-readout, dM.reshape(draws, -1), dQ[:, upper[0], upper[1]]], axis=1
    )
    limit = sl.effective_dynamics(task, step=step, rtol=1e-4)  # samples know far less
    drift = limit.drift(state)
    ridge = {name: -task.ridge * (1 + (name == "R")) * state[name] for name in state}
    if task.spherical:
        ridge["M"], ridge["R"] = 0 * state["M"], 0 * state["R"]
    for name, block in zip(task.shapes, np.split(increments, _ends(task), axis=1), strict=True):
        mean, error = block.mean(0), block.std(0) / draws**0.5
        value = drift[name] - ridge[name]
        flat = value[upper] if name == "R" else value.ravel()
        assert np.max(np.abs(mean - flat) / (error + 1e-12)) < 4.5
    centred = increments - increments.mean(0)
    products = centred[:, :, None] * centred[:, None, :]
    error = step * products.std(0) / draws**0.5
    assert np.max(np.abs(step * products.mean(0) - limit.diffusion(state)) / (error + 1e-9)) < 5


@pytest.mark.parametrize(("width", "readout"), [(1, "trained"), (2, "fixed")])
def test_closed_diffusion_of_squares_equals_quadrature(width: int, readout: str) -> None:
    """The same network as a plain loss: seven nodes for each variable integrate degree 12."""
    import jax
    import jax.numpy as jnp

    spherical, noise = readout == "fixed", 0.3

    def loss(s: jax.Array, v: jax.Array | None, y: jax.Array) -> jax.Array:
        return (y - jnp.sum(s**2 * (1.0 if v is None else v)) / width) ** 2 / 2

    plain = sl.tasks.MultiIndexTask(
        loss=loss,
        width=width,
        anchors=["teacher"],
        labels=lambda c, a, e: a[0] ** 2 + math.sqrt(noise) * e,
        readout=readout,
        spherical=spherical,
        kinks="none",
    )
    known = sl.tasks.PhaseRetrieval(width=width, noise=noise, spherical=spherical, readout=readout)
    state = known.random_state(9, seed=5)
    exact = sl.effective_dynamics(known, step=0.5).diffusion(state)
    numerical = sl.effective_dynamics(plain, step=0.5, nodes=8 ** (width + 1)).diffusion(state)
    size = np.sqrt(np.diag(exact))
    assert np.max(np.abs(numerical - exact) / np.outer(size, size)) < 1e-9


def test_closed_diffusion_of_twenty_neurons() -> None:
    """A covariance without radial part, the same whatever the order of the neurons."""
    task = sl.tasks.PhaseRetrieval(width=20, noise=0.5)
    limit, state = sl.effective_dynamics(task, step=0.3), task.random_state(60, seed=1)
    diffusion = limit.diffusion(state)
    values = np.linalg.eigvalsh(diffusion)
    np.testing.assert_allclose(values[:20], 0.0, atol=1e-12 * values[-1])
    assert values[20] > 1e-4 * values[-1]
    order = np.random.default_rng(0).permutation(20)
    turned = limit.diffusion({"M": state["M"][order], "R": state["R"][np.ix_(order, order)]})
    labels = task.layout.unravel(np.arange(len(diffusion), dtype=float))
    where = task.layout.ravel({"M": labels["M"][order], "R": labels["R"][np.ix_(order, order)]})
    where = where.astype(int)
    np.testing.assert_allclose(turned, diffusion[np.ix_(where, where)], atol=1e-12)


def _ends(task: sl.tasks.MultiIndexFamily) -> list[int]:
    sizes = [int(np.prod(task.shapes[name])) for name in task.shapes][:-1]
    return list(np.cumsum(sizes))


def test_the_diffusion_of_erf_units_is_a_sum_and_says_its_error() -> None:
    """Only their drift has a closed form: an error of zero was stated."""
    task = sl.tasks.TeacherStudent(teacher_width=1, student_width=2)
    state = task.random_state(100, 0)
    state = {"M": 6 * state["M"], "R": 36 * state["R"]}
    coarse, fine = (sl.effective_dynamics(task, nodes=nodes) for nodes in (2**8, 2**14))
    gap = np.abs(coarse.diffusion(state) - fine.diffusion(state))
    error = coarse.diffusion_error(state)
    assert np.max(gap) > 1e-6
    assert np.max(gap) < 3 * np.max(error)
    squares = sl.tasks.PhaseRetrieval(width=2)
    closed = sl.effective_dynamics(squares).diffusion_error(squares.random_state(100, 0))
    assert np.max(closed) == 0

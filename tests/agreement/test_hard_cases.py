"""Cases in which an engine can go wrong silently: limit and SGD must still agree, or say so."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl


@pytest.mark.parametrize("overlap", [1e-8, 1e-3])
def test_the_sphere_is_not_left_near_the_equator(overlap: float) -> None:
    """Rounding must not grow: an equator is left slowly, and everything else with it."""
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(), step=0.01)
    start = {"M": [[overlap]], "R": [[1 - overlap**2]]}
    solution = limit.solve(start, time=20.0)
    assert solution.M[-1, 0, 0] > 0.999
    # exponential growth with the rate of the linearised drift, as long as the overlap is small
    rate = 4 * (1 - 6 * 0.01)
    time = float(solution.time[8])
    np.testing.assert_allclose(solution.M[8, 0, 0], overlap * math.exp(rate * time), rtol=1e-3)


def test_solved_states_are_states() -> None:
    task = sl.tasks.PhaseRetrieval(width=2, noise=0.0)
    limit = sl.effective_dynamics(task, step=0.05)
    solution = limit.solve(task.random_state(20, seed=1), time=15.0, points=16)
    for index in range(16):
        limit.drift({name: solution[name].values[index] for name in ("M", "R")})
    norms = task.squared_norms(solution.M.values, solution.R.values)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-12)


def test_overflow_is_divergence_in_the_chain_too() -> None:
    def loss(s: Any, v: Any, y: Any) -> Any:
        return (y - s[0]) ** 2 / 2

    task = sl.tasks.MultiIndexTask(loss=loss, labels=lambda c, a, e: a[0] + 0.1 * e, kinks="none")
    for method in ("chain", "direct"):
        with pytest.warns(RuntimeWarning, match="16 of 16 runs diverged"):
            runs = sl.simulate(
                task, dim=50, step=10.0, time=1000.0, runs=16, points=5, method=method
            )
        assert bool(runs.diverged.all())


def test_random_labels_that_are_not_additive() -> None:
    """A tenth of the labels flipped: not a polynomial in the noise."""

    def loss(s: Any, v: Any, y: Any) -> Any:
        return jax.nn.softplus(-y * s[0])

    def flipped(component: Any, anchors: Any, noise: Any) -> Any:
        wrong = jax.scipy.special.ndtr(noise) < 0.1
        return jnp.sign(anchors[0]) * jnp.where(wrong, -1.0, 1.0)

    task = sl.tasks.MultiIndexTask(loss=loss, labels=flipped, kinks="zero")
    start = {"M": [[0.1]], "R": [[1.0]]}
    runs = sl.simulate(task, dim=2000, runs=512, time=1.0, init=start, points=3)
    solution = sl.effective_dynamics(task, rtol=1e-4).solve(start, times=runs.time)
    ends = runs.M.values[:, -1, 0, 0]
    error = ends.std() / len(ends) ** 0.5
    assert abs(ends.mean() - float(solution.M[-1, 0, 0])) < 4 * error + 1e-3


def test_error_bar_of_a_smooth_rule_sees_a_steep_integrand() -> None:
    task = sl.tasks.SingleIndex("tanh", noise=0.1, spherical=False)
    limit = sl.effective_dynamics(task, nodes=2**10)
    steep = {"M": [[5.0]], "R": [[400.0]]}
    fine = limit.drift(steep)["M"][0, 0]
    assert limit.drift_error(steep)["M"][0, 0] > 1e-4
    generator = np.random.default_rng(0)
    a, z, e = generator.normal(size=(3, 2_000_000))
    s = 5 * a + 20 * z
    g = -2 * (np.tanh(a) + math.sqrt(0.1) * e - np.tanh(s)) / np.cosh(np.clip(s, -300, 300)) ** 2
    exact, error = -np.mean(g * a), np.std(g * a) / len(a) ** 0.5
    assert abs(fine - exact) < 4 * error + 4 * limit.drift_error(steep)["M"][0, 0]


@pytest.mark.parametrize("means", [[[1.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
def test_jumps_that_interact(means: list[list[float]]) -> None:
    """Without noise a solution is held on the jump of one field while others move it along."""

    def loss(s: Any, v: Any, y: Any) -> Any:
        h = jax.nn.relu(s[0])
        return jax.nn.softplus(h) - y * h

    task = sl.tasks.MultiIndexTask(
        loss=loss,
        anchors=["a", "b"],
        means=means,
        labels=[1, 0],
        precision=math.inf,
        ridge=0.05,
        kinks="zero",
    )
    start = {"M": [[0.3, 0.2]], "R": [[1.0]]}
    runs = sl.simulate(task, dim=5000, runs=8, time=20.0, init=start, points=11)
    solution = sl.effective_dynamics(task).solve(start, times=runs.time)
    assert float(abs(runs.M.mean("run") - solution.M).max()) < 0.02


def test_hinge_without_noise_rests_on_its_kink() -> None:
    def loss(s: Any, v: Any, y: Any) -> Any:
        return jax.nn.relu(1 - y * s[0])

    task = sl.tasks.MultiIndexTask(
        loss=loss,
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        labels=[1, -1],
        precision=math.inf,
        ridge=0.1,
    )
    solution = sl.effective_dynamics(task).solve({"M": [[0.1]], "R": [[1.0]]}, time=6.0)
    np.testing.assert_allclose(solution.M[-1, 0, 0], 1.0, atol=2e-3)


@pytest.mark.parametrize("dim", [1000, 777])
def test_a_solution_can_be_put_beside_a_simulation(dim: int) -> None:
    task = sl.tasks.SpikedTensor(snr=2.0)
    start = {"m": 0.3, "r2": 0.7}
    runs = sl.simulate(task, dim=dim, runs=4, time=3.0, init=start)
    limit = sl.effective_dynamics(task)
    assert (runs.m - limit.solve(start, times=runs.time).m).sizes["time"] == 201
    if dim == 1000:  # every recorded time is a whole number of steps
        assert (runs.m - limit.solve(start, time=3.0).m).sizes["time"] == 201
    with pytest.raises(ValueError, match="times must increase from 0"):
        limit.solve(start, times=[1.0, 2.0])


def test_paths_that_blow_up_are_flagged() -> None:
    task = sl.tasks.PhaseRetrieval(spherical=False)
    limit = sl.effective_dynamics(task, step=3.0)
    with pytest.warns(RuntimeWarning, match="runs diverged"):
        paths = limit.sample_paths(
            {"M": [[0.5]], "R": [[2.0]]}, dim=300, time=0.05, runs=4, points=3
        )
    assert bool(paths.diverged.any())

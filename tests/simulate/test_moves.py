"""Batches, schedules, momentum and the rest as users meet them: time, samples, wrong input."""

import importlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._moves import moves
from sgdlimits.simulate.clock import steps_at
from tests.agreement.test_chain_and_direct import distances
from tests.families.two_variances import TwoVariances

XOR = sl.tasks.XorMixture(width=3)
SPHERE = sl.tasks.PhaseRetrieval(width=2)
STILL = XOR.replace(precision=math.inf, ridge=0.3)
ZERO = {"v": np.zeros(3), "M": np.zeros((3, 2)), "R": np.eye(3)}  # where only the ridge moves
ALL: dict[str, Any] = {"batch": 3, "momentum": 0.5, "normalised": True, "readout_step": 0.5}


def test_results_note_moves_and_count_samples() -> None:
    runs = sl.simulate(XOR, dim=50, runs=2, time=1.0, step=0.5, points=3, **ALL)
    assert runs.samples.dims == ("time",)
    assert runs.samples.values.tolist() == [0, 150, 300]
    assert {name: runs.attrs[name] for name in ALL} == ALL | {"normalised": "true"}
    plain = sl.simulate(XOR, dim=50, runs=2, time=1.0, points=3)
    assert plain.samples.values.tolist() == [0, 25, 50]
    assert not set(ALL) & set(plain.attrs)


@pytest.mark.parametrize("method", ["chain", "direct", "population"])
def test_time_is_the_sum_of_steps(method: str) -> None:
    """Half steps up to time 1, then whole ones: the decay by the ridge alone is known."""
    pairs = [(0.0, 0.5), (1.0, 1.0)]
    runs = sl.simulate(
        STILL, dim=50, runs=1, time=3.0, step=pairs, init=ZERO, points=4, method=method
    )
    np.testing.assert_allclose(runs.time, [0.0, 1.0, 2.0, 3.0], rtol=1e-12)
    slow, fast = (1 - 0.01 * 0.3) ** 2, (1 - 0.02 * 0.3) ** 2
    expected = [1.0, slow**100, slow**100 * fast**50, slow**100 * fast**100]
    np.testing.assert_allclose(runs.R.values[0, :, 0, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_a_function_of_time(method: str) -> None:
    """Against a loop in plain Python, which counts the steps too."""

    def decaying(t: Any) -> Any:
        return 1 / (1 + t)

    runs = sl.simulate(
        STILL, dim=20, runs=1, time=2.0, step=decaying, init=ZERO, points=3, method=method
    )
    time, size, steps = 0.0, 1.0, 0
    for record, target in enumerate((1.0, 2.0), start=1):
        while time + decaying(time) / 40 < target:
            delta = decaying(time) / 20
            size, time, steps = size * (1 - delta * 0.3) ** 2, time + delta, steps + 1
        assert runs.samples.values[record] == steps
        np.testing.assert_allclose(runs.time.values[record], time, rtol=1e-12)
        np.testing.assert_allclose(runs.R.values[0, record, 1, 1], size, rtol=1e-12)
    assert runs.attrs["step"] == "decaying"


def test_many_steps_are_counted_in_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, times = [(0.0, 1.0), (1.0, 0.25)], np.array([0.0, 0.5, 2.0])
    more = [*pairs, (1.5, 0.25)]  # the same, in a program of its own
    with jax.enable_x64(True):
        whole = steps_at(moves(step=pairs), 100, times, "time")
        monkeypatch.setattr(importlib.import_module("sgdlimits.simulate.clock"), "BRIEF", 7)
        pieces = steps_at(moves(step=more), 200, times, "time")
    assert whole.steps.tolist() == [0, 50, 500]
    assert pieces.steps.tolist() == [0, 100, 1000]


def test_momentum_of_a_constant_force() -> None:
    """The ridge alone moves: what is left after sixty steps is that of a loop in plain Python."""
    start = ZERO | {"v": np.ones(3)}
    beta, delta, ridge = 0.8, 1 / 30, 0.3
    task = STILL.replace(ridge=ridge)
    fixed, slow = (
        sl.simulate(task, dim=30, runs=1, time=2.0, init=start, points=2, momentum=momentum)
        for momentum in (beta, ("slow", 2.0))
    )
    R = np.ones(2)
    W, V, U = 1.0, 0.0, 0.0
    for _ in range(60):
        V = beta * V + delta * ridge * W
        W = W - V
    R[0], W = W**2, 1.0
    for _ in range(60):
        U = (1 - 2.0 * delta) * U + delta * ridge * W
        W = W - delta * U
    R[1] = W**2
    np.testing.assert_allclose([x.R.values[0, -1, 0, 0] for x in (fixed, slow)], R, rtol=1e-12)
    np.testing.assert_allclose(slow.velocity_R.values[0, -1, 0, 0], U**2, rtol=1e-12)
    np.testing.assert_allclose(slow.cross_R.values[0, -1, 0, 0], W * U, rtol=1e-12)
    assert slow.velocity_M.dims == ("run", "time", "neuron", "anchor")
    assert slow.velocity_v.dims == ("run", "time", "neuron")
    assert set(sl.results.state(slow)) == {"v", "M", "R"}


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_run_is_the_same_whatever_the_others(method: str) -> None:
    few, many = (
        sl.simulate(XOR, dim=30, runs=n, time=0.5, seed=6, method=method, points=points, **ALL)
        for n, points in ((2, 3), (70, 9))
    )
    for name in XOR.shapes:
        np.testing.assert_array_equal(few[name].values[:, -1], many[name].values[:2, -1])
        assert not np.array_equal(many[name].values[0, -1], many[name].values[65, -1])


def test_on_the_sphere_rows_keep_their_norm() -> None:
    runs = sl.simulate(
        SPHERE, dim=20, runs=4, time=2.0, step=0.3, sphere="tangential", points=3, momentum=0.5
    )
    norms = SPHERE.squared_norms(runs.M.values, runs.R.values)
    np.testing.assert_allclose(norms, 1.0, atol=1e-12)


@pytest.mark.parametrize(
    ("task", "dim", "step", "options"),
    [
        (sl.tasks.TeacherStudent(student_width=10, noise=0.1, scale="sum"), 3, 0.02, {}),
        (XOR, 3, 0.2, {"momentum": 0.5, "batch": 5}),
        (XOR, 6, 0.3, {"momentum": 0.5, "batch": 5}),
    ],
    ids=["classical", "moves", "fewer than velocities"],
)
def test_fewer_dimensions_than_weights_and_anchors(
    task: Any, dim: int, step: float, options: dict[str, Any]
) -> None:
    """Ten students in three dimensions, the classical regime; and where velocities do not fit."""
    start = task.random_state(dim, seed=3)
    rank = min(dim - len(task.anchors), task.width)
    assert np.linalg.matrix_rank(start["R"]) == rank
    chain, direct = (
        sl.simulate(
            task, dim=dim, runs=1500, time=30 * step / dim, step=step, seed=seed, init=start,
            method=method, points=3, **options,
        )
        for seed, method in ((1, "chain"), (2, "direct"))
    )  # fmt: skip
    means, deviations, least = distances(chain, direct)
    assert means < 4.5
    assert deviations < 4.5
    assert least > 1e-4
    assert np.max(np.linalg.matrix_rank(chain.R.values[:, -1], tol=1e-8)) == rank


def test_no_direction_is_left_beside_the_anchors() -> None:
    runs = sl.simulate(XOR, dim=2, runs=3, time=1.0, step=0.2, points=2, batch=5)
    assert np.all(runs.R.values == 0)
    assert np.all(np.isfinite(runs.M.values))


def test_an_endless_batch_is_the_population() -> None:
    """Means over large batches approach descent on the population loss, which is exact here."""
    task = sl.tasks.PhaseRetrieval(width=2, noise=0.3, spherical=False)
    start = task.random_state(20, seed=2)
    options: dict[str, Any] = {"dim": 20, "time": 1.0, "step": 0.5, "init": start, "points": 3}
    limit = sl.simulate(task, runs=1, method="population", **options)
    runs = sl.simulate(task, runs=256, batch=4096, **options)
    single = sl.simulate(task, runs=256, batch=16, **options)
    for name in ("M", "R"):
        gap, control = (
            np.abs(x[name].values.mean(0) - limit[name].values[0])[1:] for x in (runs, single)
        )
        error = runs[name].values.std(0)[1:] / 16
        assert np.all(gap < 4.5 * error + 1e-3)
        assert np.max(control / error) > 8
    assert "samples" not in limit.coords


@pytest.mark.parametrize(
    "task", [XOR, sl.tasks.TeacherStudent(noise=0.1, readout="trained"), SPHERE]
)
def test_population_descent_has_the_population_drift(task: Any) -> None:
    start, time = task.random_state(60, 3), 1e-6
    runs = sl.simulate(
        task, dim=10**6, runs=1, time=time, init=start, points=2, method="population"
    )
    drift = sl.effective_dynamics(task, 1.0).population_drift(start)
    for name, value in start.items():
        moved = (runs[name].values[0, -1] - value) / time
        size = max(np.max(np.abs(drift[name])), 0.1)
        np.testing.assert_allclose(moved, -drift[name], atol=5e-3 * size)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"batch": 0}, ["batch=0", ">= 1"]),
        ({"batch": 2.5}, ["batch=2.5", "integer"]),
        ({"momentum": 1.0}, ["momentum=1.0", "[0, 1)"]),
        ({"momentum": -0.1}, ["momentum=-0.1", ">= 0"]),
        ({"momentum": ("fast", 1.0)}, ["momentum=('fast', 1.0)", "slow"]),
        ({"momentum": ("slow", 200.0)}, ["momentum=('slow', 200.0)", "100"]),
        ({"readout_step": -1.0}, ["readout_step=-1.0", ">= 0"]),
        ({"normalised": "no"}, ["normalised='no'", "True or False"]),
        ({"sphere": "flat"}, ["sphere='flat'", "'tangential'"]),
        ({"sphere": "tangential"}, ["sphere='tangential'", "not spherical"]),
        ({"task": SPHERE, "readout_step": 0.5}, ["readout_step=0.5", "no trained readout"]),
        ({"step": lambda t: 0.5 - t}, ["step=0", "time 0.5", "positive"]),
        ({"step": lambda t: jnp.where(t > 0.7, jnp.nan, 1.0)}, ["step=nan", "time 0.7"]),
        ({"step": [(0.0, 1.0), (0.5, -1.0)]}, ["step=-1", "time 0.5"]),
        ({"step": [(1.0, 1.0)]}, ["start at 0"]),
        ({"step": []}, ["pairs"]),
        ({"step": lambda t: 1e-20}, ["time=1.0", "steps"]),
        ({"step": lambda t: 1e6}, ["time=1.0", "at least 10000"]),
        ({"task": TwoVariances(), "batch": 4}, ["batch=4", "TwoVariances", "step"]),
        ({"task": sl.tasks.SpikedTensor(), "readout_step": 2.0}, ["readout_step=2.0", "batch"]),
        ({"method": "population", "batch": 2}, ["batch=2", "no samples"]),
        ({"dim": 1}, ["dim=1", "dim >= 2"]),
        ({"dim": 3, "init": XOR.random_state(40, 0)}, ["init['R']", "rank must be at most 1"]),
    ],
)
def test_wrong_input(arguments: dict[str, Any], parts: list[str]) -> None:
    valid: dict[str, Any] = {"task": XOR, "dim": 100, "runs": 2, "time": 1.0}
    with pytest.raises(sl.InputError, match="not allowed") as caught:
        sl.simulate(**(valid | arguments))
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_a_step_that_takes_forever_is_told() -> None:
    """Not refused: somebody may have the patience."""
    with pytest.warns(RuntimeWarning, match=r"time=10 takes 1.0e\+14 steps with dim=100 and step"):
        steps_at(moves(step=1e-11), 100, np.array([0.0, 10.0]), "time")

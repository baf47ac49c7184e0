"""The effective dynamics as an object: coordinates, parts, solutions, paths, wrong input."""

import math
from typing import Any

import jax
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._types import State
from tests.cases import CASES, Case
from tests.dynamics.flat import flatten

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)
POINT = {"m": 0.3, "r2": 0.7}


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_flat_coordinates_round_trip(case: Case) -> None:
    limit = sl.effective_dynamics(case.task, case.step)
    state = case.task.random_state(30, seed=1)
    vector = limit.ravel(state)
    assert vector.shape == (len(limit.coordinates),)
    assert len(set(limit.coordinates)) == len(limit.coordinates)
    for name, value in limit.unravel(vector).items():
        np.testing.assert_allclose(value, state[name], rtol=1e-15)


def test_coordinates_have_names() -> None:
    limit = sl.effective_dynamics(sl.tasks.BinaryMixture())
    expected = ["v[0]", "v[1]", "M[0,mu]", "M[1,mu]", "R[0,0]", "R[0,1]", "R[1,1]"]
    assert limit.coordinates == expected
    state = {"v": [1.0, 2.0], "M": [[3.0], [4.0]], "R": [[5.0, 0.6], [0.6, 7.0]]}
    assert limit.ravel(state).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 0.6, 7.0]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_parts_add_up(case: Case) -> None:
    """h = −f + g; f does not depend on the step and g is proportional to it."""
    state = case.task.random_state(30, seed=1)
    limit = sl.effective_dynamics(case.task, case.step)
    half = sl.effective_dynamics(case.task, case.step / 2)
    drift, f, g = limit.drift(state), limit.population_drift(state), limit.corrector(state)
    for name in state:
        np.testing.assert_allclose(drift[name], g[name] - f[name], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(half.population_drift(state)[name], f[name], atol=1e-14)
        np.testing.assert_allclose(half.corrector(state)[name], g[name] / 2, atol=1e-11)
    linear = [name for name in ("v",) if name in state]
    assert all(np.all(g[name] == 0) for name in linear)


@pytest.mark.parametrize("case", CASES[:7] + CASES[8:13], ids=repr)
def test_jacobian_is_the_derivative_of_the_drift(case: Case) -> None:
    limit = sl.effective_dynamics(case.task, case.step)
    state = case.task.random_state(30, seed=1)
    vector, jacobian = limit.ravel(state), limit.jacobian(state)
    h = 1e-5
    direction = np.random.default_rng(0).normal(size=len(vector))

    def state_at(shift: float) -> State:
        if not getattr(case.task, "spherical", False):
            return limit.unravel(vector + shift * direction)
        M = (1 + shift) * state["M"]  # along the sphere: what M gains, R loses
        shrink = np.sqrt((1 - np.sum(M**2, axis=1)) / np.diag(state["R"]))
        return {"M": M, "R": state["R"] * np.outer(shrink, shrink)}

    def drift(shift: float) -> np.ndarray:
        return flatten(limit.drift(state_at(shift)))

    direction = (flatten(state_at(h)) - flatten(state_at(-h))) / (2 * h)
    slope = (drift(h) - drift(-h)) / (2 * h)
    scale = np.max(np.abs(slope))
    np.testing.assert_allclose(jacobian @ direction, slope, atol=2e-5 * max(1, scale))


def test_jacobian_where_the_orthogonal_part_vanishes() -> None:
    """R = 0, as at perfect recovery, is on the edge of the states; one-sided differences agree."""
    task = sl.tasks.TeacherStudent(activation="tanh", teacher_width=1, scale="sum")
    limit, M = sl.effective_dynamics(task), [[1.0], [0.5]]
    state = {"M": M, "R": np.zeros((2, 2))}
    jacobian = limit.jacobian(state)
    h = 1e-4
    sharp = sl.effective_dynamics(task, rtol=1e-8)  # a difference of drifts needs more than they do
    slope = flatten(sharp.drift({"M": M, "R": h * np.diag([1.0, 0.0])}))
    slope = (slope - flatten(sharp.drift(state))) / h
    np.testing.assert_allclose(jacobian[:, limit.coordinates.index("R[0,0]")], slope, atol=1e-3)


def test_jumps_are_differentiated_through_the_density() -> None:
    """A hinge has its kink away from zero; moving the nodes alone would miss it."""

    def loss(s: jax.Array, v: jax.Array, y: jax.Array) -> jax.Array:
        return jax.nn.relu(1 - y * s[0])

    task = sl.tasks.MultiIndexTask(
        loss=loss, anchors=["mu"], means=[[1.0], [-1.0]], labels=[1, -1], precision=2.0
    )
    m, R = 0.7, 0.5
    deviation = math.sqrt((m**2 + R) / 2)
    # dM/dt = E[1(y s < 1) y a]: with z the noise of the fields, s y = m + z
    z = np.linspace(-12, 12, 200_001) * deviation

    def drift(m: float, R: float) -> float:
        variance = (m**2 + R) / 2
        density = np.exp(-(z**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        conditional = 1 + (m / 2) / variance * z  # E[y a | z]
        return float(np.trapezoid(density * conditional * (m + z < 1), z))

    limit = sl.effective_dynamics(task, nodes=2**16)
    jacobian = limit.jacobian({"M": [[m]], "R": [[R]]})
    h = 1e-2
    slopes = [
        (drift(m + h, R) - drift(m - h, R)) / (2 * h),
        (drift(m, R + h) - drift(m, R - h)) / (2 * h),
    ]
    np.testing.assert_allclose(limit.drift({"M": [[m]], "R": [[R]]})["M"][0, 0], drift(m, R), 1e-3)
    np.testing.assert_allclose(jacobian[0], slopes, atol=5e-3)


def test_solution_is_labelled() -> None:
    task = sl.tasks.XorMixture(precision=math.inf)
    solution = sl.effective_dynamics(task, step=0.5).solve(task.random_state(50, 0), 3.0, points=7)
    assert solution.M.dims == ("time", "neuron", "anchor")
    np.testing.assert_allclose(solution.time, np.linspace(0, 3, 7))
    assert solution.attrs["kind"] == "limit"
    assert solution.attrs["step"] == 0.5


def test_many_starts_at_once() -> None:
    starts = {"m": np.array([0.1, -0.3, 0.5]), "r2": np.array([0.5, 1.0, 2.0])}
    limit = sl.effective_dynamics(PCA)
    together = limit.solve(starts, time=1.0, points=3)
    assert together.m.dims == ("run", "time")
    for run in range(3):
        alone = limit.solve({name: x[run] for name, x in starts.items()}, time=1.0, points=3)
        np.testing.assert_allclose(together.m[run], alone.m, rtol=1e-7)


def test_solver_error_is_below_the_tolerance() -> None:
    """k = 2 at the equator: r2 follows a logistic equation with a known solution."""
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=0.0))
    solution = limit.solve({"m": 0.0, "r2": 0.2}, time=1.0)
    exact = 0.2 / (0.2 + 0.8 * np.exp(-8 * solution.time))
    np.testing.assert_allclose(solution.r2, exact, rtol=1e-8)
    assert np.all(solution.m == 0)


def test_blow_up_is_reported() -> None:
    task = sl.tasks.PhaseRetrieval(spherical=False)
    limit = sl.effective_dynamics(task, step=3.0)
    with pytest.warns(RuntimeWarning, match="did not reach time"):
        solution = limit.solve({"M": [[0.5]], "R": [[2.0]]}, time=5.0)
    assert not np.all(np.isfinite(solution.R))


def test_paths_are_reproducible_and_labelled() -> None:
    limit = sl.effective_dynamics(PCA)
    few = limit.sample_paths(POINT, dim=500, time=0.2, runs=2, seed=3, points=3)
    many = limit.sample_paths(POINT, dim=500, time=0.2, runs=5, seed=3, points=3)
    assert few.m.dims == ("run", "time")
    assert few.attrs["kind"] == "paths"
    np.testing.assert_allclose(few.m, many.m[:2], rtol=1e-12)
    assert len(np.unique(many.m[:, -1])) == 5


def test_paths_stay_on_the_sphere() -> None:
    task = sl.tasks.PhaseRetrieval(width=2, noise=0.1)
    start = task.random_state(300, seed=1)
    paths = sl.effective_dynamics(task, step=0.1).sample_paths(
        start, dim=300, time=3.0, runs=4, points=4
    )
    norms = task.squared_norms(paths.M.values, paths.R.values)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(paths.R.values)) > -1e-12


def test_one_compilation_serves_all_parameter_values() -> None:
    traced = 0

    def loss(s: jax.Array, v: jax.Array, y: jax.Array) -> jax.Array:
        nonlocal traced
        traced += 1
        return (y - s[0]) ** 2

    counts = []
    for precision in (1.0, 2.0, 3.0):
        task = sl.tasks.MultiIndexTask(loss=loss, labels=[0.5], precision=precision, kinks="none")
        traced = 0  # forget the check of the loss
        sl.effective_dynamics(task, step=precision).drift({"M": [[0.1]], "R": [[1.0]]})
        counts.append(traced)
    assert counts[0] > 0
    assert counts[1:] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"step": 0.0}, ["step=0.0", "positive"]),
        ({"step": math.inf}, ["step=inf", "finite"]),
        ({"nodes": 1}, ["nodes=1", ">= 2"]),
        ({"task": 3}, ["task=3", "sgdlimits.tasks"]),
    ],
)
def test_wrong_input_to_the_constructor(arguments: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ValueError, match="not allowed") as caught:
        sl.effective_dynamics(**({"task": PCA} | arguments))
    assert all(part in str(caught.value) for part in parts)


@pytest.mark.parametrize(
    ("method", "arguments", "parts"),
    [
        ("drift", {"state": {"m": 0.0}}, ["state", "'m'", "'r2'"]),
        ("drift", {"state": {"m": 0.0, "r2": -1.0}}, ["r2", "-1.0", ">= 0"]),
        ("drift", {"state": {"m": 0.0, "r2": math.nan}}, ["r2", "finite"]),
        ("unravel", {"vector": [1.0]}, ["vector", "(1,)", "(2,)"]),
        ("solve", {"init": POINT, "time": -1.0}, ["time=-1.0", "positive"]),
        ("solve", {"init": POINT, "points": 1}, ["points=1", ">= 2"]),
        ("sample_paths", {"init": POINT, "dim": 1}, ["dim=1", "dim >= 2"]),
        ("sample_paths", {"init": POINT, "runs": 0}, ["runs=0", ">= 1"]),
    ],
)
def test_wrong_input(method: str, arguments: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ValueError, match="not allowed") as caught:
        getattr(sl.effective_dynamics(PCA), method)(**arguments)
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_solution_slides_along_the_jump_of_a_relu() -> None:
    """Without noise, overlaps with the wrong means reach zero in finite time and stay."""
    task = sl.tasks.XorMixture(precision=math.inf, ridge=0.05)
    starts = task.random_state(500, seed=0, runs=8)
    limit = sl.effective_dynamics(task)
    solution = limit.solve(starts, time=150.0, points=31)
    v, M = solution.v.values[:, -1], solution.M.values[:, -1]
    wrong = np.where(v > 0, M[..., 1], M[..., 0])  # positive readouts stand for ±mu
    right = np.where(v > 0, M[..., 0], M[..., 1])
    assert np.all(wrong == 0)
    # growth from overlaps of order 1/√500 has rate 1/8 − ridge; at the end m = ±v on every ring
    np.testing.assert_allclose(np.abs(right), np.abs(v), atol=2e-3)
    rest = math.log(1 / 0.2 - 1)
    sums = [
        np.sum(v[run, chosen] ** 2)
        for run in range(8)
        for mean in (0, 1)
        for sign in (1, -1)
        if np.any(chosen := (v[run] * (1 - 2 * mean) > 0) & (sign * right[run] > 0))
    ]
    np.testing.assert_allclose(sums, rest, atol=2e-3)


def test_solution_crosses_the_jump_of_a_relu() -> None:
    """A negative overlap of a neuron with positive readout passes through zero, like SGD's."""
    task = sl.tasks.BinaryMixture(precision=math.inf, ridge=0.1)
    start = {"v": [1.0, -0.5], "M": [[-0.3], [0.2]], "R": np.zeros((2, 2))}
    solution = sl.effective_dynamics(task).solve(start, time=40.0, points=41)
    assert solution.M[0, 0, 0] < 0 < solution.M[-1, 0, 0]
    for dim in (500, 5000):
        runs = sl.simulate(task, dim=dim, runs=64, time=40.0, init=start, points=41)
        gap = np.abs(runs.M.mean("run") - solution.M).max()
        assert gap < 6 / dim + 4 * float(runs.M.std("run").max()) / 8


def without_noise(loss: Any) -> Any:
    return sl.tasks.MultiIndexTask(
        loss=loss, anchors=["a"], means=[[1.0]], labels=[0.0], precision=math.inf
    )


def cubic(s: Any, v: Any, y: Any) -> Any:
    return -(s[0] ** 3) / 3


def kinked(s: Any, v: Any, y: Any) -> Any:
    return -(abs(s[0]) ** 3) / 3


def test_a_solution_is_right_until_it_blows_up() -> None:
    """M' = M² from 1 is 1/(1 − t)."""
    limit = sl.effective_dynamics(without_noise(cubic))
    path = limit.solve({"M": [[1.0]], "R": [[0.0]]}, times=[0.0, 0.5, 0.999, 0.9999])
    np.testing.assert_allclose(path.M[:, 0, 0] * (1 - path.time), 1.0, rtol=1e-4)


@pytest.mark.parametrize("loss", [cubic, kinked])
@pytest.mark.parametrize("end", [1.0001, 1.001, 2.0, 10.0])
def test_there_is_no_solution_after_it_has_blown_up(end: float, loss: Any) -> None:
    limit = sl.effective_dynamics(without_noise(loss))
    with pytest.warns(RuntimeWarning, match="did not reach"):
        path = limit.solve({"M": [[1.0]], "R": [[0.0]]}, times=[0.0, 0.5, end])
    assert float(path.M[1, 0, 0]) == pytest.approx(2.0, rel=1e-6)
    assert np.isnan(path.M[-1, 0, 0])
    two = {"M": [[[1.0]], [[0.01]]], "R": np.zeros((2, 1, 1))}
    with pytest.warns(RuntimeWarning, match="1 of 2 runs diverged"):
        both = limit.solve(two, times=[0.0, 0.5, end])
    assert both.diverged.values.tolist() == [True, False]
    assert float(both.diverged_at[0]) == end

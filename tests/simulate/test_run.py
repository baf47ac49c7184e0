"""``simulate`` as users meet it: labels, seeds, starts, divergence, wrong input."""

import math
from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from tests.cases import CASES, DIRECT_DIM, Case

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)
XOR = sl.tasks.XorMixture()
DIMS = {"chain": 60, "direct": DIRECT_DIM}


def test_dataset_is_labelled() -> None:
    runs = sl.simulate(XOR, dim=100, runs=3, time=2.0, step=0.5, seed=4, points=9)
    assert dict(runs.sizes) == {"run": 3, "time": 9, "neuron": 4, "neuron_": 4, "anchor": 2}
    assert runs.v.dims == ("run", "time", "neuron")
    assert runs.M.dims == ("run", "time", "neuron", "anchor")
    assert runs.R.dims == ("run", "time", "neuron", "neuron_")
    assert runs.anchor.values.tolist() == ["mu", "nu"]
    np.testing.assert_allclose(runs.time, np.linspace(0, 2, 9), atol=0.5 / 100)
    assert all(variable.dtype == np.float64 for variable in (runs.v, runs.M, runs.R))
    expected = {"task": "XorMixture", "dim": 100, "step": 0.5, "seed": 4, "method": "chain"}
    assert {key: runs.attrs[key] for key in expected} == expected
    assert sl.results.parameters(runs)["precision"] == 10.0
    assert runs.attrs["version"] == sl.__version__


def test_time_is_step_times_samples_over_dim() -> None:
    """Deterministic decay: without noise and signal R shrinks by (1 − δα)² per sample."""
    task = sl.tasks.XorMixture(precision=math.inf, ridge=0.3)
    zero = {"v": np.zeros(4), "M": np.zeros((4, 2)), "R": np.eye(4)}
    runs = sl.simulate(task, dim=50, runs=1, time=2.0, step=0.5, init=zero, points=3)
    decay = (1 - 0.5 / 50 * 0.3) ** (2 * np.array([0, 100, 200]))
    np.testing.assert_allclose(runs.R.values[0, :, 0, 0], decay, rtol=1e-12)


def test_no_more_points_than_steps() -> None:
    runs = sl.simulate(PCA, dim=10, runs=2, time=0.5, points=201)
    np.testing.assert_allclose(runs.time, np.arange(6) / 10)


@pytest.mark.parametrize("method", ["chain", "direct"])
@pytest.mark.parametrize("case", CASES[::3], ids=repr)
def test_run_is_the_same_whatever_the_others(case: Case, method: str) -> None:
    """Bit for bit, whatever the number of runs and of recorded points."""
    dim = DIMS[method]
    few, many = (
        sl.simulate(
            case.task,
            dim=dim,
            runs=runs,
            time=min(0.5, 200 * case.step / dim),
            step=case.step,
            seed=6,
            method=method,
            points=points,
        )
        for runs, points in ((2, 3), (140, 9))
    )
    for name in case.task.shapes:
        np.testing.assert_array_equal(few[name].values[:, -1], many[name].values[:2, -1])
        assert not np.array_equal(many[name].values[0, -1], many[name].values[130, -1])


def test_seeds_differ() -> None:
    first, second = (sl.simulate(PCA, dim=60, runs=2, time=0.5, seed=s, points=2) for s in (0, 1))
    assert np.all(first.m.values[:, -1] != second.m.values[:, -1])


def test_default_start_is_the_random_state() -> None:
    runs = sl.simulate(XOR, dim=60, runs=2, time=0.1, seed=9, points=2)
    start = XOR.random_state(60, seed=9)
    for name, value in start.items():
        np.testing.assert_array_equal(runs[name].values[0, 0], value)


@pytest.mark.parametrize("method", ["chain", "direct"])
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_given_start_is_realised(case: Case, method: str) -> None:
    """One very small step leaves the statistics where they were put."""
    dim = {"chain": 30, "direct": DIRECT_DIM}[method]
    start = case.task.random_state(dim, seed=2, runs=3)
    runs = sl.simulate(
        case.task, dim=dim, runs=3, time=1e-12, step=3e-11, init=start, method=method, points=2
    )
    for name, value in start.items():
        np.testing.assert_array_equal(runs[name].values[:, 0], value)
        np.testing.assert_allclose(runs[name].values[:, 1], value, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_least_dimension(method: str) -> None:
    """dim = K + r: no direction is left over."""
    runs = sl.simulate(XOR, dim=6, runs=4, time=1.0, method=method, points=3)
    assert np.all(np.isfinite(runs.R.values))


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_divergence_is_reported(method: str) -> None:
    task = sl.tasks.SpikedTensor(order=3, snr=1.0)
    with pytest.warns(RuntimeWarning, match=r"of 8 runs diverged"):
        runs = sl.simulate(task, dim=20, runs=8, time=20.0, step=2.0, method=method, points=5)
    diverged = runs.diverged.values
    assert diverged.any()
    assert np.array_equal(diverged, ~np.isfinite(runs.r2.values).all(axis=1))
    at = runs.diverged_at.values
    assert np.array_equal(np.isfinite(at), diverged)
    first = np.argmin(np.isfinite(runs.r2.values[diverged]), axis=1)
    np.testing.assert_allclose(at[diverged], runs.time.values[first])


def test_chain_reaches_any_dimension() -> None:
    """In dimension 10⁹ the fluctuations are of order 1e-4.5: the limit is all there is."""
    runs = sl.simulate(
        PCA, dim=10**9, runs=4, time=2e-6, init={"m": 0.5, "r2": 0.5}, points=2, seed=1
    )
    drift = sl.effective_dynamics(PCA).drift({"m": 0.5, "r2": 0.5})
    moved = runs.m.values[:, -1] - 0.5
    spread = np.sqrt(sl.effective_dynamics(PCA).diffusion({"m": 0.5, "r2": 0.5})[0, 0] * 2e-6 / 1e9)
    assert np.all(np.abs(moved - drift["m"] * 2e-6) < 5 * spread)
    assert np.all(moved != 0)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"dim": 1}, ["dim=1", "dim >= 2"]),
        ({"dim": 10.5}, ["dim=10.5", "integer"]),
        ({"runs": 0}, ["runs=0", ">= 1"]),
        ({"points": 1}, ["points=1", ">= 2"]),
        ({"time": 0.0}, ["time=0.0", "positive"]),
        ({"time": math.nan}, ["time=nan", "positive"]),
        ({"time": math.inf}, ["time=inf", "finite"]),
        ({"time": 1e-5}, ["time=1e-05", "one step"]),
        ({"step": -1.0}, ["step=-1.0", "positive"]),
        ({"step": "1"}, ["step='1'", "number"]),
        ({"seed": -1}, ["seed=-1", ">= 0"]),
        ({"method": "exact"}, ["method='exact'", "'chain'", "'direct'"]),
        ({"init": {"m": 0.0}}, ["init=['m']", "'v'", "'M'", "'R'"]),
        (
            {"init": {"v": np.zeros(3), "M": np.zeros((4, 2)), "R": np.eye(4)}},
            ["init['v']", "(3,)", "(4,)"],
        ),
        ({"task": "xor"}, ["task='xor'", "sgdlimits.tasks"]),
    ],
)
def test_wrong_input(arguments: dict[str, Any], parts: list[str]) -> None:
    valid: dict[str, Any] = {"task": XOR, "dim": 100, "runs": 2, "time": 1.0}
    with pytest.raises(ValueError, match="not allowed") as caught:
        sl.simulate(**(valid | arguments))
    assert all(part in str(caught.value) for part in parts), str(caught.value)

"""Runs that go on: to the last bit, with fresh noise where they start anew, and wrong input."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from tests.cases import CASES, DIRECT_DIM, Case

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)
XOR = sl.tasks.XorMixture(width=3)


@pytest.mark.parametrize("method", ["chain", "direct"])
@pytest.mark.parametrize("case", CASES[::3], ids=repr)
def test_ten_and_ten_are_twenty(case: Case, method: str) -> None:
    """Bit for bit, in every statistic and in what is not one."""
    settings: dict[str, Any] = {"runs": 130, "step": case.step, "seed": 6, "method": method}
    dim = {"chain": 60, "direct": DIRECT_DIM}[method]
    time = min(1.0, 300 * case.step / dim)
    whole = sl.simulate(case.task, dim, time=time, points=5, **settings)
    half = sl.simulate(case.task, dim, time=time / 2, points=3, **settings)
    other = sl.simulate(case.task, dim, time=time / 2, points=3, continue_from=half, **settings)
    for name in case.task.shapes:
        np.testing.assert_array_equal(other[name], whole[name][:, 2:])
    np.testing.assert_allclose(other.time, whole.time[2:], rtol=1e-12)
    np.testing.assert_array_equal(other.samples, whole.samples[2:])
    assert np.array_equal(other.internal_state, whole.internal_state)


@pytest.mark.parametrize("step", [1.0, [(0.0, 1.0), (0.7, 0.3)]], ids=["constant", "piecewise"])
def test_extended_is_whole(step: Any) -> None:
    whole = sl.simulate(XOR, 50, runs=5, time=2.0, step=step, points=9)
    half = sl.simulate(XOR, 50, runs=5, time=1.0, step=step, points=5)
    longer = sl.extend(half, time=1.0)
    if step == 1.0:
        xr.testing.assert_identical(longer, whole)
        assert sl.extend(sl.extend(half, 0.5), 0.5).identical(whole)
    else:
        np.testing.assert_array_equal(longer.M[:, -1], whole.M[:, -1])
        np.testing.assert_allclose(longer.time, whole.time, atol=1 / 50)


@pytest.mark.parametrize("method", ["chain", "direct"])
@pytest.mark.parametrize(
    "moves", [{"momentum": 0.5, "batch": 3}, {"momentum": ("slow", 2.0)}], ids=str
)
def test_velocities_go_on(moves: dict[str, Any], method: str) -> None:
    """They are no statistics of the task, and a new start has none."""
    settings: dict[str, Any] = {"runs": 3, "seed": 6, "method": method, **moves}
    whole = sl.simulate(XOR, 50, time=1.0, points=5, **settings)
    half = sl.simulate(XOR, 50, time=0.5, points=3, **settings)
    xr.testing.assert_identical(sl.extend(half, 0.5), whole)
    again = sl.simulate(XOR, 50, time=0.5, points=3, init=half.isel(time=-1), **settings)
    assert not np.array_equal(again.M[:, -1], whole.M[:, -1])


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_files_hold_what_it_takes(suffix: str, tmp_path: Path) -> None:
    whole = sl.simulate(XOR, 50, runs=5, time=2.0, points=9)
    sl.results.save(sl.simulate(XOR, 50, runs=5, time=1.0, points=5), tmp_path / f"half{suffix}")
    half = sl.results.load(tmp_path / f"half{suffix}")
    longer = sl.extend(half, time=1.0)
    for name in ("v", "M", "R", "time", "samples", "diverged"):
        np.testing.assert_array_equal(longer[name], whole[name])


def test_the_internal_state_is_hidden() -> None:
    runs = sl.simulate(XOR, 50, runs=5, time=1.0, points=5)
    assert sl.results.statistics(runs)[:2] == ["v[0]", "v[1]"]
    assert "internal_state" not in runs.data_vars
    assert set(runs.sizes) == {"run", "time", "neuron", "neuron_", "anchor"}
    np.testing.assert_array_equal((2.0 * runs).M, 2.0 * runs.M)
    assert "internal_state" not in sl.results.over("dim", [50], lambda _: runs).coords


def test_diverged_runs_stay_lost() -> None:
    task = sl.tasks.SpikedTensor(order=3, snr=1.0)
    settings: dict[str, Any] = {"runs": 8, "step": 2.0}
    with pytest.warns(RuntimeWarning, match="diverged"):
        half = sl.simulate(task, 20, time=10.0, points=5, **settings)
    with pytest.warns(RuntimeWarning, match="diverged"):
        whole = sl.simulate(task, 20, time=20.0, points=9, **settings)
    with pytest.warns(RuntimeWarning, match="diverged"):
        assert sl.extend(half, 10.0).identical(whole)


def test_times_are_those_given() -> None:
    times = np.geomspace(0.1, 10, 12)
    runs = sl.simulate(PCA, 50, runs=5, times=times)
    np.testing.assert_allclose(runs.time, np.unique(np.round(times * 50)) / 50)
    every = sl.simulate(PCA, 50, runs=5, time=10.0, points=501)
    np.testing.assert_array_equal(runs.m, every.m[:, runs.samples.values])
    late = sl.simulate(PCA, 50, runs=5, times=[10.0, 12.0, 20.0], continue_from=every)
    whole = sl.simulate(PCA, 50, runs=5, times=[0.0, 10.0, 12.0, 20.0])
    np.testing.assert_array_equal(late.m, whole.m[:, 1:])
    assert whole.time.values.tolist() == [0.0, 10.0, 12.0, 20.0]


def test_an_end_is_a_start_everywhere() -> None:
    task = sl.tasks.PhaseRetrieval(width=2)
    runs = sl.simulate(task, 50, runs=3, time=0.5, points=3)
    end = runs.isel(time=-1)
    again = sl.simulate(task, 50, runs=3, time=0.5, points=3, init=end, seed=1)
    np.testing.assert_array_equal(again.M[:, 0], end.M)
    limit = sl.effective_dynamics(task)
    np.testing.assert_allclose(limit.solve(end, 0.5, points=3).M[:, 0], end.M)
    np.testing.assert_allclose(
        limit.sample_paths(end.transpose(..., "run"), 50, time=0.1, runs=3, points=2).R[:, 0],
        end.R,
    )
    one = end.isel(run=0)
    np.testing.assert_array_equal(limit.ravel(one), limit.ravel(sl.results.state(runs, run=0)))
    assert limit.solve(one, 0.5, points=3).M.dims == ("time", "neuron", "anchor")
    assert set(limit.drift(one)) == {"M", "R"}
    first = sl.effective_dynamics(PCA)
    stopped = sl.simulate(PCA, 50, runs=4, time=1.0, points=3, until=("m", ">", 0.1))
    basins = first.basins(stopped.isel(time=-1))
    np.testing.assert_array_equal(basins.reached, first.basins(stopped).reached)


def fluctuations(runs: xr.Dataset) -> np.ndarray:
    """Increments of r2 of each run, less their mean over runs."""
    steps = np.diff(runs.r2.values, axis=1)
    deviations: np.ndarray = (steps - steps.mean(0)).ravel()
    return deviations


def test_a_start_with_the_same_seed_has_fresh_noise() -> None:
    """At a rest point increments depend on the noise alone.

    The trap is the control: from a state that does not tell where it is from, noise is replayed.
    """
    settings: dict[str, Any] = {"runs": 100, "time": 1.0, "points": 31, "init": {"m": 0, "r2": 1}}
    task = sl.tasks.SpikedTensor(order=2, snr=0.0)
    segments = [sl.simulate(task, 1000, **settings)]
    for _ in range(2):
        settings["init"] = segments[-1].isel(time=-1)
        segments.append(sl.simulate(task, 1000, **settings))
    assert [part.attrs.get("segment", 0) for part in segments] == [0, 1, 2]
    error = 1 / np.sqrt(fluctuations(segments[0]).size)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        parts = fluctuations(segments[i]), fluctuations(segments[j])
        assert abs(np.corrcoef(*parts)[0, 1]) < 3.5 * error
    settings["init"] = sl.results.state(segments[0])
    trap = sl.simulate(task, 1000, **settings)
    assert np.corrcoef(fluctuations(segments[0]), fluctuations(trap))[0, 1] > 0.9
    settings["init"] = segments[0].isel(time=-1)
    assert sl.simulate(task, 1000, seed=5, **settings).attrs.get("segment", 0) == 0


def test_a_segment_can_be_continued() -> None:
    first = sl.simulate(PCA, 50, runs=5, time=1.0, points=3)
    settings: dict[str, Any] = {"runs": 5, "init": first.isel(time=-1)}
    whole = sl.simulate(PCA, 50, time=2.0, points=5, **settings)
    half = sl.simulate(PCA, 50, time=1.0, points=3, **settings)
    assert sl.extend(half, 1.0).identical(whole)


def wait(state: Any) -> Any:
    return 1.0 / (1.0 + state)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"task": XOR}, ["task (SpikedTensor there, XorMixture here)"]),
        ({"task": PCA.replace(snr=3.0)}, ["parameters", '"snr": 2.0', '"snr": 3.0']),
        ({"dim": 60}, ["dim (50 there, 60 here)"]),
        ({"step": 0.5}, ["step (1.0 there, 0.5 here)"]),
        ({"step": wait}, ["step (1.0 there, wait here)"]),
        ({"runs": 6}, ["runs (5 there, 6 here)"]),
        ({"seed": 1, "method": "direct"}, ["seed (0 there, 1 here), method (chain there"]),
        ({"init": {"m": 0.0, "r2": 1.0}}, ["init", "together"]),
        ({"times": [0.5, 2.0]}, ["times=[0.5, 2.0]", "time 1"]),
    ],
)
def test_what_differs_is_named(arguments: dict[str, Any], parts: list[str]) -> None:
    half = sl.simulate(PCA, 50, runs=5, time=1.0, points=3)
    valid: dict[str, Any] = {"task": PCA, "dim": 50, "runs": 5, "time": 1.0, "points": 3}
    with pytest.raises(sl.InputError, match="not allowed") as caught:
        sl.simulate(**(valid | {"continue_from": half} | arguments))
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_what_cannot_be_continued_is_told() -> None:
    half = sl.simulate(PCA, 50, runs=5, time=1.0, points=3)
    with pytest.raises(sl.InputError, match="all of its statistics, and r2 is not there"):
        sl.extend(half.drop_vars("r2"), 1.0)
    stopped = sl.simulate(PCA, 50, runs=5, time=1.0, points=3, until=("m", ">", 0.1))
    path = sl.effective_dynamics(PCA).solve({"m": 0.1, "r2": 1.0}, 1.0)
    own = sl.simulate(PCA, 50, runs=5, time=0.1, points=3, step=wait)
    for runs, part in (
        (half.isel(time=slice(0, 2)), "last times"),
        (half.isel(time=-1), "with its times"),
        (half.drop_vars("internal_state"), "internal_state"),
        (stopped, "stand still"),
        (half.isel(run=[1, 0, 2, 3, 4]), "in order"),
        (path, "must be a Dataset"),
        (own, "functions step"),
    ):
        with pytest.raises(sl.InputError, match=re.escape(part)):
            sl.extend(runs, 1.0)
    with pytest.raises(sl.InputError, match="one step"):
        sl.extend(half, 1e-6)
    more = sl.simulate(PCA, 50, runs=5, time=0.1, points=3, step=wait, continue_from=own)
    whole = sl.simulate(PCA, 50, runs=5, time=0.2, points=5, step=wait)
    np.testing.assert_array_equal(more.m[:, -1], whole.m[:, -1])

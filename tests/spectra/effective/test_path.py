"""Effective spectra along a solution, and the times at which outliers come and go."""

from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits import spectra
from tests.spectra.effective.test_readout import learned


def test_transitions_in_time() -> None:
    """An outlier of the Hessian enters the bulk as a class is learned, and is timed."""
    task = sl.tasks.GaussianMixture(classes=2, precision=5.0, ridge=0.02)
    limit = sl.effective_dynamics(task)
    solution = limit.solve({"M": np.zeros((2, 2)), "R": np.eye(2)}, time=20.0, points=9)
    path = spectra.effective_path(task, solution, ratio=3.0, matrix="hessian", nodes=2**10)
    assert path.dataset.outliers.shape[0] == 9
    counts = np.isfinite(path.dataset.outliers.values).sum(axis=1)
    assert sum(change for _, _, change in path.transitions) == counts[-1] - counts[0]
    assert path.transitions
    for time, _, _ in path.transitions:
        after = np.searchsorted(solution.time.values, time)
        assert counts[after] != counts[after - 1]
    edges = np.array([spectrum.edges[[0, -1]] for spectrum in path.spectra])
    assert path.dataset.low.values == pytest.approx(edges[:, 0])
    assert path.dataset.high.values == pytest.approx(edges[:, 1])
    with pytest.raises(ValueError, match="of one run"):
        spectra.effective_path(task, solution.drop_vars("M"), ratio=3.0)


def straight_line(task: Any, first: Any, last: Any, times: np.ndarray) -> xr.Dataset:
    share = times / times[-1]
    return xr.Dataset(
        {
            name: (
                ("time", *task.layout.dims[name]),
                np.array([(1 - x) * first[name] + x * last[name] for x in share]),
            )
            for name in task.shapes
        },
        {"time": times},
    )


def test_outliers_of_the_readout_emerge() -> None:
    """From one to four (BGHJ23, Figure 2.5), on a straight way from a random start."""
    task = sl.tasks.XorMixture(width=8, precision=10.0)
    first, last = task.random_state(1000, seed=0), learned(8, 4, spread=0.1)
    times = np.linspace(0, 1, 5)
    solution = straight_line(task, first, last, times)
    path = spectra.effective_path(task, solution, ratio=3.0, block="vv", nodes=2**11)
    found = path.dataset
    assert set(found.data_vars) == {"outliers", "eigenvalues", "threshold"}
    assert found.eigenvalues.shape == (5, 8)
    counts = np.isfinite(found.outliers.values).sum(axis=1)
    assert (counts[0], counts[-1]) == (1, 4)
    beyond = np.abs(found.eigenvalues) > found.threshold
    assert np.array_equal(beyond.sum("index").values, counts)
    assert sum(change for _, _, change in path.transitions) == 3
    assert {side for _, side, _ in path.transitions} == {"above"}
    assert len(path.transitions) > np.count_nonzero(np.diff(counts))  # two in one interval

    def count_at(time: float) -> int:
        state = {name: solution.interp(time=time)[name].values for name in task.shapes}
        return len(spectra.effective(task, state, 3.0, block="vv", nodes=2**11).outliers)

    for time, _, change in path.transitions:
        width = 1e-3 * times[1]
        assert np.sign(count_at(time + width) - count_at(time - width)) == np.sign(change)


def test_on_the_sphere_states_in_between_are_states() -> None:
    """An interpolated state has shorter rows: to find a transition, they regain their norm."""
    task = sl.tasks.SingleIndex("square")
    first = {"M": np.array([[0.1]]), "R": np.array([[0.99]])}
    last = {"M": np.array([[1.0]]), "R": np.array([[0.0]])}
    solution = straight_line(task, first, last, np.array([0.0, 1.0]))
    middle = solution.interp(time=0.5)
    with pytest.raises(sl.InputError, match="squared weight norms"):
        spectra.effective(task, {"M": middle.M.values, "R": middle.R.values}, 3.0)
    path = spectra.effective_path(task, solution, ratio=3.0, nodes=2**8)
    assert path.transitions  # noiseless, the Hessian at the end is 8 E[a² x xᵀ] with one outlier
    assert 0 < path.transitions[0].time < 1

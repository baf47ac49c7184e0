"""Learning curves: what they draw and what they refuse."""

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.plot import learning_curve


@pytest.fixture
def measured(runs: xr.Dataset) -> xr.Dataset:
    table = np.random.default_rng(0).uniform(1.0, 2.0, size=(12, 41))
    table[[2, 7], 20:] = np.nan
    return runs.assign(risk=(("run", "time"), table))


@pytest.fixture
def solution(limit: xr.Dataset) -> xr.Dataset:
    return limit.assign(risk=("time", np.linspace(2.0, 1.0, 41)))


def test_mean_spread_limit_and_asymptote(measured: xr.Dataset, solution: xr.Dataset) -> None:
    figure = learning_curve(measured, solution)
    (panel,) = figure.axes
    kept = np.delete(measured.risk.values, [2, 7], axis=0)
    lines = {str(line.get_label()): np.asarray(line.get_ydata()) for line in panel.lines}
    assert list(lines) == ["SGD, mean of 10 runs (2 diverged)", "limit, dim → ∞", "asymptote 1"]
    mean, drawn, end = lines.values()
    np.testing.assert_allclose(mean, kept.mean(axis=0))
    np.testing.assert_array_equal(drawn, solution.risk)
    assert set(end) == {1.0}
    light, dark = (np.asarray(part.get_paths()[0].vertices)[:, 1] for part in panel.collections)
    assert np.isin(np.quantile(kept, 0.9, axis=0)[5], light)
    assert np.isin(kept[:, 5].mean() + 2 * kept[:, 5].std(ddof=1) / 10**0.5, dark)
    assert panel.get_ylabel() == "population risk"
    assert "samples / dim" in panel.get_xlabel()
    assert "XorMixture" in figure.get_suptitle()


def test_on_request(measured: xr.Dataset, solution: xr.Dataset) -> None:
    panel = learning_curve(measured, solution, asymptote=0.5, log="both", label="mine").axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.lines[0].get_label() == "mine, mean of 10 runs (2 diverged)"
    assert np.min(np.asarray(panel.lines[0].get_xdata())) > 0
    assert panel.lines[-1].get_label() == "asymptote 0.5"
    samples = learning_curve(measured, solution, x="samples").axes[0]
    assert samples.get_xlabel() == "samples"
    for line in samples.lines[:2]:
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), 2000 * measured.time)
    one = learning_curve(measured.isel(run=[0]), metric="risk").axes[0]
    assert [line.get_label() for line in one.lines] == ["SGD, one run"]
    error = measured.rename(risk="error")
    assert learning_curve(error, metric="error", axes=panel).axes[0].get_ylabel() == "0–1 error"
    none = learning_curve(measured.isel(run=[2, 7])).axes[0]
    assert none.lines[0].get_label() == "SGD, no run left (2 diverged)"


def test_wrong_input(measured: xr.Dataset, solution: xr.Dataset, runs: xr.Dataset) -> None:
    for arguments, message in (
        ((runs,), r"metric='risk' .*runs has the variables v, .*sgdlimits.measure\(task, runs"),
        ((None,), r"runs=NoneType .*must be a Dataset"),
        ((measured, measured.risk), r"path=DataArray .*must be a Dataset"),
        ((measured, runs), r"metric='risk' .*path has the variables"),
        ((measured, measured), r"path with the dims \['run', 'time'\] .*one solution"),
        ((measured, None, 3), r"metric=3 "),
        ((measured, None, "M"), r"runs with M over run, time, neuron, anchor .*not allowed"),
    ):
        with pytest.raises(sl.InputError, match=message):
            learning_curve(*arguments)
    with pytest.raises(sl.InputError, match=r"log='z' .*one of 'none', 'x', 'y', 'both'"):
        learning_curve(measured, log="z")
    with pytest.raises(sl.InputError, match=r"asymptote=.* must be real"):
        learning_curve(measured, asymptote="low")  # type: ignore[arg-type]

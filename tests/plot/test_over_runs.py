"""Runs as lines, their mean with its spread, shares with exact intervals."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.plot import band, proportions, runs


def values(count: int = 30, times: int = 101, *, diverged: int = 0) -> xr.DataArray:
    table = np.random.default_rng(0).normal(2.0, 1.0, size=(count, times))
    table[:diverged, times // 2 :] = np.inf
    coords = {"run": np.arange(count), "time": np.linspace(0, 4, times)}
    return xr.DataArray(table, coords, ("run", "time"), name="m")


def labels(figure: Figure) -> list[str]:
    return [str(label) for label in figure.axes[0].get_legend_handles_labels()[1]]


def test_runs_are_lines_with_one_label() -> None:
    figure = runs(values(), most=10)
    (panel,) = figure.axes
    assert labels(figure) == ["SGD, 10 of 30 runs"]
    assert len(panel.lines) == 10
    np.testing.assert_array_equal(panel.lines[3].get_ydata(), values().values[3])
    assert panel.get_ylabel() == "$m$"
    assert labels(runs(values(7), label="mine")) == ["mine"]
    assert labels(runs(values(1))) == ["SGD, one run"]
    assert labels(runs(values(diverged=2))) == ["SGD, 25 of 28 runs (2 diverged)"]
    assert labels(runs(values(diverged=2), label="mine")) == ["mine (2 diverged)"]


def test_samples_on_the_horizontal_axis() -> None:
    counted = values().assign_coords(samples=("time", np.arange(101) ** 2))
    limit = values()[0].drop_vars("run")
    (panel,) = runs(counted, x="samples", most=1, limit=limit).axes
    assert panel.get_xlabel() == "samples"
    for line in panel.lines:
        np.testing.assert_array_equal(line.get_xdata(), np.arange(101) ** 2)
    (panel,) = band(counted, x="samples").axes
    assert np.ravel(panel.lines[0].get_xdata())[-1] == 100**2
    with pytest.raises(ValueError, match=r"x='samples' is not allowed: how many samples"):
        band(values(), x="samples")
    with pytest.raises(ValueError, match=r"x='samples' is not allowed for values over snr"):
        band(values().rename(time="snr"), x="samples")


def test_order_of_dims_does_not_matter() -> None:
    first, second = (runs(part).axes[0].lines[0] for part in (values(), values().T))
    np.testing.assert_array_equal(first.get_xydata(), second.get_xydata())


@pytest.mark.parametrize(("spread", "scale"), [("deviation", 1.0), ("error", 2 / np.sqrt(28))])
def test_bands_have_the_stated_width(spread: str, scale: float) -> None:
    (panel,) = band(values(diverged=2), spread=spread).axes
    kept = values().values[2:]
    mean, width = kept.mean(axis=0), scale * kept.std(axis=0, ddof=1)
    vertices = np.asarray(panel.collections[0].get_paths()[0].vertices)
    times = values().time.values
    for number in (0, 50, 100):
        edges = np.unique(vertices[np.isclose(vertices[:, 0], times[number]), 1])
        low, high = mean[number] - width[number], mean[number] + width[number]
        np.testing.assert_allclose(edges[[0, -1]], [low, high], rtol=1e-12)
    points = np.asarray(panel.lines[0].get_xydata())
    assert len(points) == 16
    np.testing.assert_allclose(points[:, 1], np.interp(points[:, 0], times, mean))


def test_points_are_even_on_a_logarithmic_axis_too() -> None:
    figure = Figure()
    panel = figure.subplots()
    panel.set_xscale("log")
    band(values(times=1001), axes=panel)
    steps = np.diff(np.log(np.asarray(panel.lines[0].get_xdata(), dtype=float)))
    assert steps.max() < 2.5 * steps[3:].min()


def test_bars_of_few_points() -> None:
    few = values(times=3).rename(time="snr")
    (panel,) = band(few, spread="deviation", bars=True).axes
    (bars,) = panel.containers
    assert len(bars.lines[0].get_xdata()) == 3  # type: ignore[attr-defined]
    assert panel.get_xlabel() == r"$\mathrm{snr}$"


def test_what_cannot_be_drawn_is_named() -> None:
    for function in (runs, band):
        with pytest.raises(sl.InputError, match=r"values with the dims \['snr', 'run', 'time'\]"):
            function(values().expand_dims(snr=2))
    with pytest.raises(sl.InputError, match="spread='wide' is not allowed"):
        band(values(), spread="wide")
    with pytest.raises(sl.InputError, match="not empty"):
        runs(values(0))


def test_no_run_may_be_left() -> None:
    assert labels(band(values(3, diverged=3))) == ["SGD, no run left (3 diverged)"]
    assert labels(runs(values(3, diverged=3))) == ["SGD, no run left (3 diverged)"]


def test_intervals_are_exact() -> None:
    (panel,) = proportions([0, 47], 500, [1.0, 2.0], expected=[0.01, 0.1]).axes
    (bars,) = panel.containers
    drawn: Any = bars
    segments = drawn.lines[2][0].get_segments()
    for hits, segment in zip((0, 47), segments, strict=True):
        exact = stats.binomtest(hits, 500).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(segment[:, 1], [exact.low, exact.high], atol=1e-12)
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), [0.01, 0.1])


def test_words_have_a_point_each() -> None:
    figure = proportions(xr.DataArray([3, 9]), 10, ["λ = 1", "λ = ∞"], label="mine")
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["λ = 1", "λ = ∞"]
    assert labels(figure) == ["mine"]


@pytest.mark.parametrize("hits", [[11, 1], [-1, 1], [0.5, 1], [1]])
def test_wrong_counts_are_named(hits: list[Any]) -> None:
    with pytest.raises(sl.InputError, match=r"^hits"):
        proportions(hits, 10, ["a", "b"])


def test_the_limit_is_a_line_on_top_of_runs() -> None:
    solution = values().mean("run")
    figure = runs(values(), limit=solution)
    assert labels(figure) == ["SGD, 25 of 30 runs", "limit, dim → ∞"]
    *thin, line = figure.axes[0].lines
    np.testing.assert_array_equal(line.get_ydata(), solution)
    assert line.get_zorder() > max(run.get_zorder() for run in thin)
    with pytest.raises(sl.InputError, match=r"limit with the dims .* is not allowed"):
        runs(values(), limit=values())

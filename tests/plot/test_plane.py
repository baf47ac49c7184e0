"""What plane draws is the trajectories, their ends and the limit."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from sgdlimits.plot import plane


def trajectories(figure: Figure, number: int = 0) -> list[np.ndarray]:
    found = [c for c in figure.axes[0].collections if isinstance(c, LineCollection)]
    return [np.asarray(segment) for segment in found[number].get_segments()]


def legend_texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_lines_and_ends_are_those_of_the_runs(runs: xr.Dataset, limit: xr.Dataset) -> None:
    figure = plane(runs, limit, "v[0]", "M[1,mu]")
    kept = runs.isel(run=~runs.diverged.values)
    lines = trajectories(figure)
    assert len(lines) == 10
    for number, drawn in enumerate(lines):
        np.testing.assert_array_equal(drawn[:, 0], kept.v[number, :, 0])
        np.testing.assert_array_equal(drawn[:, 1], kept.M[number, :, 1, 0])
    (ends,) = [line for line in figure.axes[0].lines if line.get_label() == "SGD, end points"]
    expected = np.stack([kept.v[:, -1, 0], kept.M[:, -1, 1, 0]], axis=-1)
    np.testing.assert_array_equal(np.asarray(ends.get_xydata()), expected)


def test_the_limit_is_the_thickest_line(runs: xr.Dataset, limit: xr.Dataset) -> None:
    figure = plane(runs, limit, "R[0,0]", "R[0,1]")
    thick = max(figure.axes[0].lines, key=lambda line: line.get_linewidth())
    expected = np.stack([limit.R[:, 0, 0], limit.R[:, 0, 1]], axis=-1)
    np.testing.assert_array_equal(np.asarray(thick.get_xydata()), expected)


def test_labels_legend_and_caption(runs: xr.Dataset, limit: xr.Dataset) -> None:
    figure = plane(runs, limit, "v[0]", "M[1,mu]")
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("$v_{0}$", r"$M_{1,\mu}$")
    assert legend_texts(figure) == [
        "SGD, 10 runs (2 diverged)",
        "SGD, end points",
        "limit, dim → ∞, from ○ to ●",
    ]
    assert "XorMixture" in figure.get_suptitle()


def test_all_that_is_drawn_is_in_view(runs: xr.Dataset) -> None:
    figure = plane(runs, None, "v[0]", "v[1]")
    (panel,) = figure.axes
    points = np.concatenate(trajectories(figure))
    for values, (low, high) in zip(points.T, (panel.get_xlim(), panel.get_ylim()), strict=True):
        assert low < values.min()
        assert values.max() < high


def test_paths_with_runs_are_trajectories_too(runs: xr.Dataset, paths: xr.Dataset) -> None:
    figure = plane(runs, paths, "v[0]", "v[1]")
    lines = trajectories(figure, 1)
    assert len(lines) == 5
    np.testing.assert_array_equal(lines[3], paths.v[3, :, :2])
    assert "limit paths, 5 runs" in legend_texts(figure)


def test_at_most_200_runs_are_drawn_and_the_legend_says_so(pca: xr.Dataset) -> None:
    many = pca.isel(run=np.arange(250) % 4).assign_coords(run=np.arange(250))
    figure = plane(many, None, "m", "r2")
    assert len(trajectories(figure)) == 200
    assert legend_texts(figure)[0] == "SGD, 200 of 250 runs"


def test_when_all_runs_diverged_the_limit_is_still_drawn(
    runs: xr.Dataset, limit: xr.Dataset
) -> None:
    figure = plane(runs.isel(run=[2, 7]), limit, "v[0]", "v[1]")
    assert legend_texts(figure)[0] == "SGD, no run left (2 diverged)"
    figure.draw_without_rendering()


def test_axes_of_the_caller_are_used(runs: xr.Dataset, limit: xr.Dataset) -> None:
    mine = Figure()
    axes = mine.subplots()
    assert plane(runs, limit, "v[0]", "v[1]", axes=axes) is mine
    assert axes.get_legend() is not None
    assert mine.axes == [axes]


def test_unknown_statistics_are_named(runs: xr.Dataset) -> None:
    with pytest.raises(ValueError, match=r"x='m' is not allowed: .*v\[0\]"):
        plane(runs, None, "m", "v[0]")
    with pytest.raises(ValueError, match=r"y='R\[0\]' is not allowed: .*R\[0,0\]"):
        plane(runs, None, "v[0]", "R[0]")

"""What compare draws is the mean, spread and error of the runs, and the limit."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits.plot import compare, plane, save, style


def line(panel: Axes, start: str) -> np.ndarray:
    """Return the data, of shape (time, 2), of the line whose label starts so."""
    (found,) = [drawn for drawn in panel.lines if str(drawn.get_label()).startswith(start)]
    return np.asarray(found.get_xydata())


def band(panel: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper edge of the band with this label."""
    (found,) = [drawn for drawn in panel.collections if drawn.get_label() == label]
    vertices = np.asarray(found.get_paths()[0].vertices)
    times = np.unique(vertices[:, 0])
    at = [vertices[vertices[:, 0] == time, 1] for time in times]
    return np.array([values.min() for values in at]), np.array([values.max() for values in at])


def legend_texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_points_are_the_mean_over_the_runs_that_did_not_diverge(
    runs: xr.Dataset, limit: xr.Dataset
) -> None:
    figure = compare(runs, limit, ["M[1,nu]"])
    (panel,) = figure.axes
    kept = runs.M[~runs.diverged.values].sel(neuron=1, anchor="nu").values
    drawn = line(panel, "SGD")
    np.testing.assert_array_equal(drawn[:, 0], runs.time)
    np.testing.assert_allclose(drawn[:, 1], kept.mean(axis=0), rtol=1e-12)
    assert np.all(np.isfinite(drawn))
    # negative control: with the diverged runs the mean is another one
    assert not np.allclose(drawn[:20, 1], runs.M.sel(neuron=1, anchor="nu").mean("run")[:20])


def test_bands_are_one_deviation_and_two_errors(runs: xr.Dataset, limit: xr.Dataset) -> None:
    (panel,) = compare(runs, limit, ["v[0]"]).axes
    kept = runs.v[~runs.diverged.values].sel(neuron=0).values
    mean, deviation = kept.mean(axis=0), kept.std(axis=0, ddof=1)
    for label, width in (
        ("± 1 standard deviation", deviation),
        ("± 2 standard errors of the mean", 2 * deviation / np.sqrt(10)),
    ):
        low, high = band(panel, label)
        np.testing.assert_allclose(low, mean - width, rtol=1e-12)
        np.testing.assert_allclose(high, mean + width, rtol=1e-12)


def test_the_limit_is_a_line(runs: xr.Dataset, limit: xr.Dataset) -> None:
    coarse = limit.isel(time=slice(None, None, 4))
    (panel,) = compare(runs, coarse, ["R[0,1]"]).axes
    drawn = line(panel, "limit")
    np.testing.assert_array_equal(drawn[:, 0], coarse.time)
    np.testing.assert_array_equal(drawn[:, 1], coarse.R.sel(neuron=0, neuron_=1))


def test_paths_with_runs_are_drawn_as_mean_and_spread(runs: xr.Dataset, paths: xr.Dataset) -> None:
    (panel,) = compare(runs, paths, ["v[2]"]).axes
    values = paths.v.sel(neuron=2).values
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    np.testing.assert_allclose(line(panel, "limit paths, mean of 5 runs")[:, 1], mean)
    lower = line(panel, "± 1 standard deviation of the paths")[:, 1]
    np.testing.assert_allclose(lower, mean - deviation)
    (upper,) = [drawn for drawn in panel.lines if str(drawn.get_label()).startswith("_")]
    np.testing.assert_allclose(np.asarray(upper.get_ydata()), mean + deviation)


def test_default_panels_are_the_first_entries_of_each_statistic(
    runs: xr.Dataset, limit: xr.Dataset, pca: xr.Dataset
) -> None:
    labels = [panel.get_ylabel() for panel in compare(runs, limit).axes]
    assert labels == [
        *["$v_{0}$", "$v_{1}$"],
        *[r"$M_{0,\mu}$", r"$M_{0,\nu}$"],
        *["$R_{00}$", "$R_{01}$"],
    ]
    assert [panel.get_ylabel() for panel in compare(pca).axes] == ["$m$", r"$r_\perp^2$"]
    without_readout = compare(runs.drop_vars("v")).axes
    assert len(without_readout) == 6


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
def test_any_number_of_panels_fits(runs: xr.Dataset, limit: xr.Dataset, count: int) -> None:
    names = [f"M[{i},{a}]" for i in range(3) for a in ("mu", "nu")] + ["v[0]"]
    figure = compare(runs, limit, names[:count])
    assert len(figure.axes) == count
    labelled = [panel.get_xlabel() for panel in figure.axes if panel.get_xlabel()]
    columns = {1: 1, 2: 2, 4: 2}.get(count, 3)
    assert labelled == ["time $t$ (= step × samples / dim)"] * min(columns, count)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    for panel in figure.axes:
        outer = panel.get_tightbbox()
        assert outer is not None
        assert not outer.overlaps(box)


def test_legend_counts_diverged_runs_and_caption_has_the_parameters(
    runs: xr.Dataset, limit: xr.Dataset
) -> None:
    figure = compare(runs, limit)
    assert legend_texts(figure) == [
        "SGD, mean of 10 runs (2 diverged)",
        "± 1 standard deviation",
        "± 2 standard errors of the mean",
        "limit, dim → ∞",
    ]
    assert figure.get_suptitle() == (
        "XorMixture · width 3, precision 10, ridge 0.1 · dim 2000, step 1, 12 runs"
    )


def test_one_run_and_no_run_have_no_bands(runs: xr.Dataset, limit: xr.Dataset) -> None:
    single = compare(runs.isel(run=[0]), limit, ["v[0]"])
    assert legend_texts(single) == ["SGD, one run", "limit, dim → ∞"]
    np.testing.assert_array_equal(line(single.axes[0], "SGD")[:, 1], runs.v[0, :, 0])
    squeezed = compare(runs.isel(run=0), None, ["v[0]"])
    assert legend_texts(squeezed) == ["SGD, one run"]
    nothing = compare(runs.isel(run=[2, 7]), limit, ["v[0]"])
    assert legend_texts(nothing) == ["SGD, no run left (2 diverged)", "limit, dim → ∞"]


def test_axes_of_the_caller_are_used(runs: xr.Dataset, limit: xr.Dataset) -> None:
    mine = Figure()
    axes = mine.subplots(1, 2)
    assert compare(runs, limit, ["v[0]", "v[1]"], axes=axes) is mine
    assert len(mine.axes) == 2
    assert not mine.legends
    assert axes[0].get_legend() is not None
    assert [panel.get_xlabel() for panel in axes] == ["time $t$ (= step × samples / dim)"] * 2
    with pytest.raises(ValueError, match=r"axes has 2 entries.*there are 3 statistics"):
        compare(runs, limit, ["v[0]", "v[1]", "v[2]"], axes=axes)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["v[0]", "v[3]"], r"statistics='v\[3\]' is not allowed: .*v\[0\], v\[1\]"),
        ([], r"statistics=\[\] is not allowed"),
        ([3], r"statistics=3 is not allowed"),
        (3, r"statistics=3 is not allowed"),
    ],
)
def test_unknown_statistics_are_named(runs: xr.Dataset, wanted: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare(runs, None, wanted)


def test_a_limit_without_the_statistic_is_an_error(runs: xr.Dataset, pca: xr.Dataset) -> None:
    other = pca.isel(run=0).assign_attrs(kind="limit")
    with pytest.raises(ValueError, match=r"\(for path\)='v\[0\]'.*m, r2"):
        compare(runs, other, ["v[0]"])
    with pytest.raises(ValueError, match=r"\(for 'theory'\)='v\[0\]'.*m, r2"):
        compare({"SGD": runs, "theory": other}, None, ["v[0]"])


@pytest.fixture
def direct(runs: xr.Dataset) -> xr.Dataset:
    return runs.assign_attrs(method="direct")


def test_several_simulations_have_names_colours_and_shapes_of_their_own(
    runs: xr.Dataset, direct: xr.Dataset, limit: xr.Dataset
) -> None:
    other = direct.isel(run=slice(3)).assign(v=direct.v + 1).assign_attrs(seed=1)
    figure = compare({"chain": runs, "direct": other}, limit, ["v[0]"])
    assert legend_texts(figure) == [
        "chain, mean of 10 runs (2 diverged)",
        "± 1 standard deviation",
        "± 2 standard errors of the mean",
        "direct, mean of 2 runs (1 diverged)",
        "limit, dim → ∞",
    ]
    (panel,) = figure.axes
    first, second, theory = panel.lines
    assert len({line.get_color() for line in panel.lines}) == 3
    assert first.get_marker() != second.get_marker()
    np.testing.assert_allclose(line(panel, "direct")[:, 1], other.v[:2, :, 0].mean("run"))
    assert len({tuple(np.ravel(band.get_facecolor())[:3]) for band in panel.collections}) == 2
    assert "dim 2000" in figure.get_suptitle()
    larger = compare({"one": runs, "other": other.assign_attrs(dim=99)}, statistics="v[0]")
    assert "step 1" in larger.get_suptitle()
    assert "dim" not in larger.get_suptitle()  # which is not the same for both
    assert theory.get_color() == style.LIMIT


def test_long_names_fit_below(runs: xr.Dataset) -> None:
    names = [f"{word} simulation, with much to be said of it" for word in ("first", "other")]
    figure = compare(dict.fromkeys(names, runs), None, ["v[0]", "v[1]"])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= 0


def test_limits_may_be_among_the_named(
    runs: xr.Dataset, limit: xr.Dataset, paths: xr.Dataset
) -> None:
    figure = compare({"SGD": runs, "limit": limit, "other": limit, "SDE": paths}, None, "v[0]")
    texts = legend_texts(figure)
    assert [texts[i] for i in (0, 3, 4, 5)] == [
        "SGD, mean of 10 runs (2 diverged)",
        "limit",
        "other",
        "SDE, mean of 5 runs",
    ]
    (panel,) = figure.axes
    assert panel.lines[1].get_linestyle() != panel.lines[2].get_linestyle()


def test_a_second_simulation_is_not_called_a_limit(runs: xr.Dataset, direct: xr.Dataset) -> None:
    chain = runs.assign_attrs(method="chain")
    texts = legend_texts(compare(chain, direct, "v[0]"))
    assert [texts[0], texts[3]] == [
        "SGD, chain, mean of 10 runs (2 diverged)",
        "SGD, direct, mean of 10 runs (2 diverged)",
    ]
    texts = legend_texts(compare(chain, chain.assign_attrs(dim=50), "v[0]"))
    assert texts[3].startswith("SGD, dim 50, ")
    assert legend_texts(compare(chain, chain, "v[0]"))[3].startswith("SGD, second, ")


def test_theory_is_never_called_a_simulation(
    runs: xr.Dataset, limit: xr.Dataset, paths: xr.Dataset
) -> None:
    figure = compare(limit, paths, "v[0]")
    assert legend_texts(figure)[:2] == ["limit, dim → ∞", "limit paths, mean of 5 runs"]
    assert "XorMixture" in figure.get_suptitle()
    bare = limit.drop_attrs(deep=False)  # somebody's own solution, of no kind
    assert legend_texts(compare(runs, bare, "v[0]"))[-1] == "limit, dim → ∞"
    with pytest.raises(ValueError, match="path is a simulation, which is not allowed beside named"):
        compare({"SGD": runs}, runs, "v[0]")


def test_joined_runs(runs: xr.Dataset, direct: xr.Dataset, paths: xr.Dataset) -> None:
    """Their numbers repeat; those recorded at other times, or never said to diverge, are theirs."""
    both = xr.concat([runs, direct], "run", join="outer")
    assert legend_texts(compare(both, None, "v[0]"))[0] == "SGD, mean of 20 runs (4 diverged)"
    kept = runs.isel(run=slice(2)).drop_vars(["diverged", "diverged_at"])
    later = kept.assign_coords(time=kept.time + 0.05)
    mixed = xr.concat([kept, later], "run", join="outer")
    drawn = line(compare(mixed, None, "v[0]").axes[0], "SGD, mean of 4")
    assert len(drawn) == 82
    np.testing.assert_allclose(drawn[::2, 1], kept.v[:, :, 0].mean("run"))
    low, high = band(compare(mixed, None, "v[0]").axes[0], "± 1 standard deviation")
    np.testing.assert_allclose((high - low)[::2] / 2, kept.v[:, :, 0].std("run", ddof=1))
    lacking = xr.concat([runs, paths], "run", join="outer")
    assert legend_texts(compare(lacking, None, "v[0]"))[0] == "SGD, mean of 15 runs (2 diverged)"


def test_samples_on_the_horizontal_axis(
    runs: xr.Dataset, direct: xr.Dataset, limit: xr.Dataset
) -> None:
    del limit.attrs["dim"]
    longer = limit.assign_coords(time=2 * limit.time)
    figure = compare(runs, longer, "v[0]", x="samples")
    (panel,) = figure.axes
    assert panel.get_xlabel() == "samples"
    np.testing.assert_allclose(line(panel, "SGD")[:, 0], 2000 * runs.time)
    np.testing.assert_allclose(line(panel, "limit")[:, 0], 4000 * limit.time)
    told = runs.assign_coords(samples=("time", runs.time.values**2))  # as of a schedule
    np.testing.assert_allclose(
        line(compare(told, limit, "v[0]", x="samples").axes[0], "limit")[:, 0], limit.time**2
    )
    wide = direct.assign_attrs(dim=4000)
    by_name = {"small": runs, "large": wide}
    (panel,) = compare(by_name, None, "v[0]", x="samples").axes
    assert line(panel, "large")[-1, 0] == 2 * line(panel, "small")[-1, 0]
    with pytest.raises(ValueError, match=r"x='samples' is not allowed for a limit beside"):
        compare(by_name, limit, "v[0]", x="samples")
    with pytest.raises(ValueError, match=r"x='samples' is not allowed: how many .*assign_coords"):
        compare(runs.assign_attrs(step="schedule"), None, "v[0]", x="samples")
    with pytest.raises(ValueError, match=r"x='steps' is not allowed: x must be one of 'time', 'sa"):
        compare(runs, None, "v[0]", x="steps")


def test_what_is_no_result_is_refused(runs: xr.Dataset) -> None:
    wrong: list[tuple[Any, str]] = [
        ({}, r"runs=dict is not allowed"),
        ([runs], r"runs=list is not allowed: .*a dict by name"),
        ({"a": runs.v}, r"runs\['a'\] of type DataArray"),
    ]
    for given, message in wrong:
        with pytest.raises(ValueError, match=message):
            compare(given)


def test_pyplot_is_not_needed(
    runs: xr.Dataset, limit: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it is now an error
    save(compare(runs, limit, ["v[0]"]), tmp_path / "a.png")
    save(plane(runs, limit, "v[0]", "v[1]"), tmp_path / "b.png")

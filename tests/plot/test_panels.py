"""A panel for each value of a dim, shared axes, and one legend for all."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import sgdlimits as sl
from sgdlimits.plot import facets, legend_below, panels


def data(count: int = 4) -> xr.Dataset:
    times = np.linspace(0, 1, 5)
    m = np.outer(np.arange(count), times)
    return xr.Dataset({"m": (("snr", "time"), m)}, {"snr": 1.0 * np.arange(count), "time": times})


def draw(panel: Axes, part: xr.Dataset) -> None:
    panel.plot(part.time, part.m, label="m")
    panel.plot(part.time, part.time * float(part.snr), ":", label=f"line {int(part.snr) % 2}")
    panel.set(xlabel="time", ylabel="overlap")


def test_every_value_has_its_panel() -> None:
    figure = facets(data(), "snr", draw, title="λ = {:g}")
    assert [panel.get_title() for panel in figure.axes] == ["λ = 0", "λ = 1", "λ = 2", "λ = 3"]
    for number, panel in enumerate(figure.axes):
        np.testing.assert_array_equal(panel.lines[0].get_ydata(), data().m[number])
    assert len({panel.get_ylim() for panel in figure.axes}) == 1  # shared


def test_each_label_is_there_once() -> None:
    (legend,) = facets(data(), "snr", draw).legends
    assert [text.get_text() for text in legend.get_texts()] == ["m", "line 0", "line 1"]


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3)])
def test_labels_are_at_the_left_and_below(count: int, columns: int) -> None:
    axes = facets(data(count), "snr", draw).axes
    assert len(axes) == count
    lowest = [bool(panel.get_xlabel()) for panel in axes]
    assert lowest == [number + columns >= count for number in range(count)]
    first = [bool(panel.get_ylabel()) for panel in axes]
    assert first == [number % columns == 0 for number in range(count)]


def test_labels_of_a_grid_are_at_its_edges() -> None:
    grid = panels(2, 2, xlabel="time", ylabel="overlap")[1]
    assert [panel.get_xlabel() for panel in grid.ravel()] == ["", "", "time", "time"]
    assert [panel.get_ylabel() for panel in grid.ravel()] == ["overlap", "", "overlap", ""]


def test_panels_of_the_caller() -> None:
    figure, grid = panels(3, 2)
    facets(data(3), "snr", draw, axes=grid[:2])
    assert len(figure.axes) == 5  # one was left over
    assert figure.legends == []
    assert [bool(panel.get_xlabel()) for panel in figure.axes[:3]] == [False, True, True]
    legend_below(figure)
    legend_below(figure)
    assert len(figure.legends) == 1


@pytest.mark.parametrize(("width", "columns"), [(20.0, 4), (9.6, 3), (3.0, 1)])
def test_the_legend_is_no_wider_than_the_figure(width: float, columns: int) -> None:
    figure, ((panel,),) = panels(1, 1, width=width)
    for number in range(4):
        panel.plot([0, 1], label=f"a statistic with a long name, {number}")
    legend_below(figure)
    legend = figure.legends[0]
    figure.draw_without_rendering()
    assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == columns
    assert legend.get_window_extent().x0 > 0
    assert legend.get_window_extent().x1 < figure.bbox.width
    assert len(figure.legends) == 1


def test_draw_may_set_the_title() -> None:
    words = data(2).assign_coords(snr=["low", "high"])
    assert [p.get_title() for p in facets(words, "snr", lambda *_: None).axes] == ["low", "high"]
    figure = facets(words, "snr", lambda panel, _: panel.set_title("mine"))
    assert {panel.get_title() for panel in figure.axes} == {"mine"}


def test_a_result_over_a_parameter_has_its_caption() -> None:
    def run(snr: float) -> xr.Dataset:
        attrs = {"task": "SpikedTensor", "parameters": {"order": 2, "snr": snr}, "dim": 100}
        return sl.results.build({"m": [snr]}, {"m": ("time",)}, {"time": [0.0]}, attrs)

    figure = facets(sl.results.over("snr", [1.0, 2.0], run), "snr", draw)
    assert figure.get_suptitle() == "SpikedTensor · order 2 · dim 100"


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(
        sl.InputError, match=r"dim='ratio' is not allowed: the dims .* are snr, time"
    ):
        facets(data(), "ratio", draw)
    with pytest.raises(sl.InputError, match=r"axes has 2 entries.*there are 4 values of snr"):
        facets(data(), "snr", draw, axes=panels(1, 2)[1])
    with pytest.raises(sl.InputError, match="rows=0 is not allowed"):
        panels(0, 1)


def test_runs_over_a_parameter_are_refused_by_other_pictures(pca: xr.Dataset) -> None:
    flags = {"diverged": ("run", np.zeros(4, dtype=bool))}
    both = sl.results.over("snr", [1.0, 2.0], lambda _: pca.assign(flags))
    with pytest.raises(sl.InputError, match="runs over snr are not allowed: choose one entry"):
        sl.plot.plane(both, None, "m", "r2")


def test_other_data_of_the_same_value_are_drawn_beside() -> None:
    seen = []
    facets(data(), "snr", lambda _, *parts: seen.append(parts), 2 * data(), data() + 1)
    for first, second, third in seen:
        xr.testing.assert_equal(second.m, 2 * first.m)
        xr.testing.assert_equal(third.m, first.m + 1)
    for other in (data().isel(snr=0), data().isel(snr=[1, 0, 2, 3]), data(3)):
        with pytest.raises(sl.InputError, match="others without the same values of snr"):
            facets(data(), "snr", draw, other)

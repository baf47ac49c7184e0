"""What bifurcation draws is the branches, cut by stability, and what is special on them."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sgdlimits.plot import bifurcation
from sgdlimits.results import build

NAN = np.nan
LINE = {"stable": "-", "unstable": "--", "marginal": "-."}


@pytest.fixture
def diagram() -> xr.Dataset:
    """A fold at ridge = 1 and a ring that ends at 3; the ring has fewer points."""
    over = ("branch", "point")
    v = np.zeros((2, 5, 2))
    v[0, :, 0] = [2.0, 1.5, 1.0, 0.5, 0.0]
    v[1, :, 0] = [0.6, 0.3, 0.0, NAN, NAN]
    unstable, stable, marginal = "unstable", "stable", "marginal"
    coords = {
        "ridge": (over, np.array([[3.0, 2.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, NAN, NAN]])),
        "growth": (over, np.zeros((2, 5))),
        "stability": (
            over,
            np.array([[stable, stable, marginal, unstable, unstable], [marginal] * 3 + ["", ""]]),
        ),
        "special": (over, np.array([["", "", "fold", "", ""], ["", "", "end", "", ""]])),
        "kernel_dimension": ("branch", np.array([0, 1])),
        "neuron": [0, 1],
    }
    attrs = {
        "kind": "bifurcations",
        "task": "BinaryMixture",
        "parameters": {"width": 2},
        "parameter": "ridge",
        "low": 0.5,
        "high": 3.0,
    }
    return build({"v": v}, {"v": (*over, "neuron")}, coords, attrs)


def lines(figure: Figure, style: str) -> list[np.ndarray]:
    found = [line for line in figure.axes[0].lines if line.get_linestyle() == style]
    return [np.asarray(line.get_xydata()) for line in found]


def markers(figure: Figure) -> dict[str, Line2D]:
    chosen = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    return {str(line.get_label()): line for line in chosen}


def test_lines_are_cut_where_stability_changes(diagram: xr.Dataset) -> None:
    figure = bifurcation(diagram, "v[0]")
    (solid,), (dashed,), (dotted,) = (lines(figure, style) for style in LINE.values())
    np.testing.assert_array_equal(solid, [[3.0, 2.0], [2.0, 1.5], [1.0, 1.0]])
    np.testing.assert_array_equal(dashed, [[1.0, 1.0], [2.0, 0.5], [3.0, 0.0]])
    np.testing.assert_array_equal(dotted, [[1.0, 0.6], [2.0, 0.3], [3.0, 0.0]])


def test_special_points_are_marked_with_their_place(diagram: xr.Dataset) -> None:
    found = markers(bifurcation(diagram, "v[0]"))
    assert set(found) == {"fold at 1", "end at 3"}
    np.testing.assert_array_equal(found["fold at 1"].get_xydata(), [[1.0, 1.0]])
    np.testing.assert_array_equal(found["end at 3"].get_xydata(), [[3.0, 0.0]])


def test_legend_caption_and_axes(diagram: xr.Dataset) -> None:
    figure = bifurcation(diagram, "v[0]")
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["stable", "marginal", "unstable", "fold at 1", "end at 3"]
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("ridge", "$v_{0}$")
    assert (panel.get_xlim(), panel.get_xscale()) == ((0.5, 3.0), "linear")
    assert figure.get_suptitle() == "BinaryMixture · width 2"


def test_a_wide_range_is_logarithmic(diagram: xr.Dataset) -> None:
    (panel,) = bifurcation(diagram.assign_attrs(low=0.05), "v[0]").axes
    assert panel.get_xscale() == "log"


def test_what_is_derived_can_be_drawn_in_given_axes(diagram: xr.Dataset) -> None:
    figure = Figure()
    panel = figure.subplots()
    radius = diagram.assign(radius=(diagram.v**2).sum("neuron"))
    assert bifurcation(radius.isel(branch=[1]), "radius", axes=panel) is figure
    ((line,), none) = lines(figure, "-."), lines(figure, "-")
    np.testing.assert_allclose(line[:, 1], [0.36, 0.09, 0.0])
    assert none == []


def test_wrong_input(diagram: xr.Dataset, runs: xr.Dataset) -> None:
    with pytest.raises(ValueError, match=r"statistic='v\[2\]' is not allowed"):
        bifurcation(diagram, "v[2]")
    with pytest.raises(ValueError, match="diagram of kind 'simulation' is not allowed"):
        bifurcation(runs, "v[0]")

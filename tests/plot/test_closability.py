"""What closability draws: remainders that are seen as points, the others as upper limits."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from sgdlimits._types import Estimate
from sgdlimits.plot import closability

DIMS = (50, 200, 800)


def result(**changes: Any) -> Any:
    """The norm is seen and stays, the overlap is seen and decays until it is not; u[2] is zero."""
    value = np.array([[0.4, 0.08, -1e-4], [0.3, 0.02, 1e-4], [0.35, 0.004, 0.0]])
    error = np.array([[0.02, 0.01, 1e-3], [0.02, 0.004, 1e-3], [0.02, 0.003, 1e-3]])
    fields = {
        "names": ("norm", "M[0,mu]", "u[2]"),
        "dims": DIMS,
        "unexplained": Estimate(value, error),
        "mean_square": np.tile([2.0, 1.0, 0.1], (3, 1)),
        "exponent": Estimate(np.array([-0.05, -1.0, np.nan]), np.array([0.04, 0.2, np.inf])),
        "open_statistics": ("norm",),
        "undecided_statistics": (),
        "threshold": 0.01,
    }
    return SimpleNamespace(**(fields | changes))


def drawn(panel: Axes) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Places and half-lengths of the error bars, by label; upper limits start with '_'."""
    found = {}
    for number, bars in enumerate(panel.containers):
        assert isinstance(bars, ErrorbarContainer)
        (lines,) = bars.lines[2]
        half = [np.ptp(np.asarray(segment)[:, 1]) / 2 for segment in lines.get_segments()]
        label = str(bars.get_label())
        key = f"_{number // 2}" if label.startswith("_") else label
        found[key] = (np.asarray(bars.lines[0].get_xydata()), np.array(half))
    return found


def test_points_are_parts_of_the_mean_square_with_two_errors() -> None:
    figure = closability(result())
    (panel,) = figure.axes
    points, half = drawn(panel)[r"norm $\propto$ dim$^{-0.05 \pm 0.04}$"]
    np.testing.assert_allclose(points[:, 1], [0.2, 0.15, 0.175])
    np.testing.assert_allclose(half, 2 * 0.01)
    np.testing.assert_allclose(points[:, 0], DIMS, rtol=0.1)
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.get_title() == "not closed: norm"
    assert [
        float(np.asarray(line.get_ydata())[0])
        for line in panel.lines
        if line.get_linestyle() == ":"
    ] == [0.01]


def test_what_is_not_seen_is_an_upper_limit() -> None:
    (panel,) = closability(result()).axes
    found = drawn(panel)
    points, _ = found[r"$M_{0,\mu}$ $\propto$ dim$^{-1.00 \pm 0.20}$"]
    np.testing.assert_allclose(points[:, 1], [0.08, 0.02])
    np.testing.assert_allclose(found["_1"][0][:, 1], [0.004 + 2 * 0.003])
    assert len(found["$u_{2}$, not seen (↓ upper limit)"][0]) == 0
    # of a remainder below zero the limit is that of zero: two errors
    np.testing.assert_allclose(found["_2"][0][:, 1], np.array([2e-3, 2.1e-3, 2e-3]) / 0.1)


def test_one_panel_for_each_set() -> None:
    none: dict[str, Any] = {"open_statistics": ()}
    vague = result(**none, undecided_statistics=("M[0,mu]",))
    figure = closability({"small": result(), "large": result(**none), "blunt": vague})
    assert [panel.get_title() for panel in figure.axes] == [
        "small\nnot closed: norm",
        "large\nclosed",
        r"blunt" "\n" r"undecided: $M_{0,\mu}$",
    ]
    assert [len(panel.get_ylabel()) > 0 for panel in figure.axes] == [True, False, False]
    figure.draw_without_rendering()
    for panel in figure.axes:
        legend = panel.get_legend()
        assert legend is not None
        assert len(legend.get_texts()) == 3
        assert legend.get_window_extent().y0 >= 0
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["50", "200", "800"]


def test_axes_of_the_caller_are_used() -> None:
    mine = Figure()
    axes = mine.subplots()
    assert closability(result(), axes=axes) is mine
    assert mine.axes == [axes]
    with pytest.raises(ValueError, match=r"axes has 1 entries.*there are 2 sets"):
        closability({"a": result(), "b": result()}, axes=axes)


@pytest.mark.parametrize("wrong", [None, {}, {"a": 1}, [1]])
def test_wrong_input(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"result=.* is not allowed: .*sgdlimits.closability"):
        closability(wrong)

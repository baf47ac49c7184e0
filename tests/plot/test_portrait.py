"""What a portrait shows: the field and its nullclines, rest points, runs and the limit."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import sgdlimits as sl
from sgdlimits.plot import portrait
from sgdlimits.results import build

PCA = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
SQUARE: dict[str, Any] = {"x_range": (-1, 1), "y_range": (-1, 1)}
RANGES: dict[str, Any] = {"x_range": (-1.9, 1.9), "y_range": (0.0, 1.8)}


@dataclass(frozen=True)
class Rest:
    """A rest point as a user might write one down."""

    state: dict[str, Any]
    stability: str
    representatives: list[dict[str, Any]] = field(default_factory=list)
    orbit: list[dict[str, Any]] = field(default_factory=list)


KNOWN = [
    Rest({"m": 1.0, "r2": 1.0}, "stable", [{"m": -1.0, "r2": 1.0}]),
    Rest({"m": 0.0, "r2": 1.0}, "unstable"),
    Rest({"m": 0.0, "r2": 0.0}, "marginal"),
]


class Sink:
    """dv/dt = -v in three dimensions: a limit that needs no engine."""

    coordinates = ["v[0]", "v[1]", "v[2]"]  # noqa: RUF012
    nonnegative: list[str] = []  # noqa: RUF012
    rest = [Rest({"v": np.zeros(3)}, "stable"), Rest({"v": [0.5, 0.5, 1.0]}, "unstable")]  # noqa: RUF012

    def ravel(self, state: Any) -> np.ndarray:
        return np.asarray(state["v"], float)

    def fixed_points(self) -> list[Rest]:
        return self.rest

    def drift_in_plane(
        self,
        x: str,
        y: str,
        *,
        x_values: Any,
        y_values: Any,
        state: Any = None,
        others: str = "held",
    ) -> xr.Dataset:
        grid = np.stack(np.meshgrid(x_values, y_values), axis=-1)
        v = np.concatenate([grid, np.full((*grid.shape[:2], 1), state["v"][2])], axis=-1)
        arrays = {"x_velocity": -v[..., 0], "y_velocity": -v[..., 1], "v": v}
        dims = dict.fromkeys(arrays, ("y", "x")) | {"v": ("y", "x", "neuron")}
        attrs = {"task": "Sink", "x": x, "y": y}
        return build(arrays, dims, {"x": x_values, "y": y_values}, attrs)


@pytest.fixture(scope="module")
def drawn() -> Figure:
    return portrait(PCA, "m", "r2", **RANGES, fixed_points=KNOWN)


@pytest.fixture
def circle() -> xr.Dataset:
    """Three runs on circles, the last of which diverged."""
    angle = np.linspace(0, 3, 20)
    radius = np.array([0.5, 0.6, np.nan])[:, None]
    arrays = {
        "m": radius * np.cos(angle),
        "r2": 1 + radius * np.sin(angle),
        "diverged": np.array([False, False, True]),
    }
    dims: dict[str, Any] = {"m": ("run", "time"), "r2": ("run", "time"), "diverged": ("run",)}
    attrs = {"task": "SpikedTensor", "dim": 100}
    return build(arrays, dims, {"time": angle, "run": np.arange(3)}, attrs)


def nullclines(figure: Figure) -> list[np.ndarray]:
    """The points of the nullclines of x and of y, each of shape (points, 2)."""
    sets = [c for c in figure.axes[0].collections if isinstance(c, ContourSet)]
    return [np.concatenate([np.asarray(p.vertices) for p in c.get_paths()]) for c in sets]


def marks(figure: Figure, stability: str) -> np.ndarray:
    label = f"rest point, {stability}"
    lines = [line for line in figure.axes[0].lines if line.get_label() == label]
    return np.concatenate([np.zeros((0, 2)), *[np.asarray(line.get_xydata()) for line in lines]])


def legend_texts(figure: Figure) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def test_nullclines_are_those_of_the_closed_form(drawn: Figure) -> None:
    """dm = 4m(snr − m² − r2) and dr2 = 8(m² + r2)(1 − r2)."""
    still_m, still_r2 = nullclines(drawn)
    m, r2 = still_m.T
    on_axis, on_parabola = np.abs(m) < 5e-3, np.abs(m**2 + r2 - 2.0) < 2e-2
    assert np.all(on_axis | on_parabola)
    assert np.ptp(r2[on_axis]) > 1.7
    assert np.ptp(m[on_parabola]) > 2.5
    away = np.any(np.abs(still_r2) > 0.1, axis=1)  # from the origin, where both vanish
    np.testing.assert_allclose(still_r2[away, 1], 1.0, atol=1e-2)
    assert np.ptp(still_r2[:, 0]) > 3.7
    # negative control: at snr = 1 the parabola is another one
    assert not np.all(on_axis | (np.abs(m**2 + r2 - 1.0) < 2e-2))


def test_rest_points_are_marked_by_stability(drawn: Figure) -> None:
    np.testing.assert_array_equal(marks(drawn, "stable"), [[1, 1], [-1, 1]])
    np.testing.assert_array_equal(marks(drawn, "unstable"), [[0, 1]])
    np.testing.assert_array_equal(marks(drawn, "marginal"), [[0, 0]])
    fills = {
        str(line.get_label()): (line.get_fillstyle(), line.get_markerfacecolor())
        for line in drawn.axes[0].lines
    }
    assert fills["rest point, stable"] == ("full", "black")
    assert fills["rest point, unstable"] == ("full", "white")
    assert fills["rest point, marginal"] == ("left", "black")


def test_legend_labels_and_caption(drawn: Figure) -> None:
    assert legend_texts(drawn) == [
        "drift, darker where faster",
        r"$\mathrm{d}m/\mathrm{d}t = 0$",
        r"$\mathrm{d}r_\perp^2/\mathrm{d}t = 0$",
        "rest point, stable",
        "rest point, marginal",
        "rest point, unstable",
    ]
    (panel,) = drawn.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("$m$", r"$r_\perp^2$")
    assert drawn.get_suptitle() == "SpikedTensor · order 2, snr 2, ridge 0 · step 1"
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    box, outer = legend.get_window_extent(), panel.get_tightbbox()
    assert outer is not None
    assert not outer.overlaps(box)
    assert box.x0 >= 0
    assert box.x1 <= drawn.bbox.x1


def test_runs_and_path_are_on_top(circle: xr.Dataset) -> None:
    path = circle.isel(run=0, drop=True).drop_vars("diverged")
    figure = portrait(PCA, "m", "r2", fixed_points=False, runs=circle, path=path, points=11)
    (panel,) = figure.axes
    runs = next(c for c in panel.collections if str(c.get_label()).startswith("SGD"))
    assert isinstance(runs, LineCollection)
    assert len(runs.get_segments()) == 2
    np.testing.assert_array_equal(runs.get_segments()[1][:, 0], circle.m[1])
    below = [c.get_zorder() for c in panel.collections if c is not runs]
    assert max(below) < runs.get_zorder()
    thick = max(panel.lines, key=lambda line: line.get_linewidth())
    np.testing.assert_array_equal(np.asarray(thick.get_xydata())[:, 1], path.r2)
    assert "limit, dim → ∞" in legend_texts(figure)
    assert "SGD, 2 runs (1 diverged)" in legend_texts(figure)
    assert "dim 100" in figure.get_suptitle()
    for values, (low, high) in (
        (circle.m, panel.get_xlim()),
        (circle.r2, panel.get_ylim()),
    ):
        assert low < values.min() < values.max() < high
        assert high - low < 1.5 * float(values.max() - values.min())


def test_default_ranges_are_around_the_rest_points() -> None:
    figure = portrait(PCA, "m", "r2", fixed_points=KNOWN, points=11)
    (panel,) = figure.axes
    assert -2 < panel.get_xlim()[0] < -1
    assert 1 < panel.get_xlim()[1] < 2
    assert panel.get_ylim()[0] == 0.0  # a squared norm
    one = portrait(PCA, "m", "r2", fixed_points=KNOWN[1:2], points=11)
    assert one.axes[0].get_xlim() == (-1.0, 1.0)
    with pytest.raises(ValueError, match=r"x_range=None is not allowed here: .*no rest points"):
        portrait(PCA, "m", "r2", fixed_points=[])


@pytest.mark.parametrize(("at", "marked"), [(0.0, "stable"), (1.0, "unstable")])
def test_only_rest_points_in_the_section_are_marked(at: float, marked: str) -> None:
    state = {"v": np.array([0.0, 0.0, at])}
    figure = portrait(Sink(), "v[0]", "v[1]", state=state, fixed_points=True, **SQUARE)
    counts = {stability: len(marks(figure, stability)) for stability in ("stable", "unstable")}
    assert counts == {"stable": 0, "unstable": 0} | {marked: 1}
    assert figure.get_suptitle() == "Sink · others held"


def test_the_section_goes_through_the_first_rest_point_by_default() -> None:
    figure = portrait(Sink(), "v[0]", "v[1]", fixed_points=True)
    assert len(marks(figure, "stable")) == 1
    assert len(marks(figure, "unstable")) == 0


def test_arrows_follow_the_field_and_blank_is_where_no_state_is() -> None:
    options: dict[str, Any] = {"x_range": (-1.0, 1.0), "y_range": (-0.5, 1.5), "points": 9}
    figure = portrait(PCA, "m", "r2", **options, kind="arrows", fixed_points=False)
    (arrows,) = [c for c in figure.axes[0].collections if isinstance(c, Quiver)]
    m, r2 = np.reshape(arrows.XY, (9, 9, 2)).transpose(2, 0, 1)
    u, v = np.ma.reshape(arrows.U, (9, 9)), np.ma.reshape(arrows.V, (9, 9))
    shown = ~np.reshape(arrows.Umask, (9, 9))
    np.testing.assert_array_equal(shown, r2 >= 0)
    expected = sl.theory.spiked_tensor.drift(m[shown], r2[shown], order=2, snr=2.0)
    cross = u[shown] * expected.radius_squared - v[shown] * expected.overlap
    np.testing.assert_allclose(cross, 0, atol=1e-9)
    assert np.all(u[shown] * expected.overlap >= 0)
    figure.draw_without_rendering()
    portrait(PCA, "m", "r2", **options, fixed_points=False).draw_without_rendering()


def test_axes_of_the_caller_are_used(circle: xr.Dataset) -> None:
    mine = Figure()
    axes = mine.subplots()
    drawn = portrait(
        PCA, "m", "r2", **RANGES, fixed_points=KNOWN, runs=circle, axes=axes, points=11
    )
    assert drawn is mine
    assert mine.axes == [axes]
    assert not mine.legends
    assert axes.get_legend() is None
    assert not mine.get_suptitle()
    assert "rest point, stable" in axes.get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"limit": 3}, r"limit=3 is not allowed: .*effective_dynamics"),
        ({"x": "v[0]"}, r"x='v\[0\]' is not allowed: x must be one of 'm', 'r2'"),
        ({"y": "m"}, r"y='m' is not allowed: y must be one of 'r2'"),
        ({"kind": "lines"}, r"kind='lines' is not allowed: .*'streamlines', 'arrows'"),
        ({"others": "free"}, r"others='free' is not allowed: .*'held', 'slaved'"),
        ({"x_range": (1.0, 0.0)}, r"x_range=\(1.0, 0.0\) is not allowed: .*increasing"),
        ({"y_range": 2.0}, r"y_range has shape \(\), which is not allowed"),
        ({"points": 2}, r"points=2 is not allowed: .*>= 3"),
        ({"fixed_points": "yes"}, r"fixed_points='yes' is not allowed"),
        ({"fixed_points": [3]}, r"fixed_points=\[3\] is not allowed"),
    ],
)
def test_wrong_input_is_named(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"limit": PCA, "x": "m", "y": "r2", "fixed_points": False, **RANGES}
    with pytest.raises(ValueError, match=message):
        portrait(**given | changed)

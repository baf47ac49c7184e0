"""Phase portraits: the drift in the plane of two statistics, and what happens on it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import StateLike, WholeNumber, Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot._ensemble import finished
from sgdlimits.plot._rest_points import STABILITIES, Mark, RestPoint, draw_marks, lies_in
from sgdlimits.plot._trajectories import draw_limit, draw_many, points_of
from sgdlimits.plot._vector_field import KINDS, draw_field, draw_nullclines
from sgdlimits.plot.symbols import symbol

_AROUND_PATHS, _AROUND_POINTS = 0.08, 0.35  # margins of the default ranges


@runtime_checkable
class Limit(Protocol):
    """What a portrait asks of a limit; ``effective_dynamics`` makes them."""

    @property
    def coordinates(self) -> list[str]:
        """Flat names of the statistics."""

    @property
    def nonnegative(self) -> list[str]:
        """Flat names of the statistics that cannot be negative."""

    def ravel(self, state: StateLike) -> np.ndarray:
        """A state as a vector in ``coordinates``."""

    def fixed_points(self) -> Sequence[RestPoint]:
        """Where the drift vanishes, the most stable first."""

    def drift_in_plane(
        self,
        x: Word,
        y: Word,
        *,
        x_values: Any,
        y_values: Any,
        state: StateLike | None = None,
        others: Word = "held",
    ) -> xr.Dataset:
        """The drift on a grid."""


if TYPE_CHECKING:
    LimitLike = Limit
    Range = tuple[float, float]
    RestPoints = Sequence[RestPoint] | bool
else:  # validated here, so that wrong input meets our own ValueError
    LimitLike = Range = RestPoints = Any


def portrait(
    limit: LimitLike,
    x: Word,
    y: Word,
    *,
    state: StateLike | None = None,
    others: Word = "held",
    x_range: Range | None = None,
    y_range: Range | None = None,
    kind: Word = "streamlines",
    fixed_points: RestPoints = False,
    runs: xr.Dataset | None = None,
    path: xr.Dataset | None = None,
    axes: Axes | None = None,
    points: WholeNumber = 41,
) -> Figure:
    r"""Draw the phase portrait of du/dt = h(u) in the plane of two statistics.

    Grey lines follow (h_x, h_y), dashed ones are its nullclines h_x = 0 and h_y = 0. Full dots are
    stable rest points, half-filled ones marginal and open ones unstable, in the full dynamics: a
    point that attracts within the plane may be unstable across it. Runs and the limit's path, of
    which two statistics are seen, lie on top.

    With more than two statistics the picture is a section. Its field is the drift where the others
    are "held" as in ``state``, or "slaved": at rest, given x and y. A rest point is marked only if
    the section goes through it (to the resolution of the grid), since the nullclines of this
    section do not cross at the projection of any other. Runs are projected: they follow the lines
    as far as their other statistics are near those of the section. It is blank where there is no
    state.

    Args:
        limit: made by ``effective_dynamics``.
        x: flat name of the statistic on the horizontal axis, such as ``"M[0,mu]"``.
        y: flat name of the statistic on the vertical axis.
        state: at which the others are held, or start from if slaved; by default the first rest
            point. Not needed if there are no others.
        others: ``"held"`` or ``"slaved"``.
        x_range: (lowest, highest) value of x; by default around runs and path, without them around
            the rest points.
        y_range: (lowest, highest) value of y, likewise.
        kind: ``"streamlines"`` or ``"arrows"``.
        fixed_points: a list of rest points; True for those that ``limit.fixed_points()`` finds,
            which may take a while.
        runs: a simulation, drawn as thin lines that end in dots.
        path: a solution of the limit, drawn as a thick line; or paths with a ``run`` dim.
        axes: draw in these axes in place of a new figure, without caption and legend:
            ``axes.get_legend_handles_labels()`` has what a legend needs.
        points: grid points along each axis.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> figure = portrait(limit, "m", "r2", x_range=(-2, 2), y_range=(0, 2))
    >>> figure.get_suptitle()
    'SpikedTensor · order 2, snr 2, ridge 0 · step 1'
    """
    if not isinstance(limit, Limit):
        raise _checks.InputError(
            f"limit={limit!r} is not allowed: it must be made by effective_dynamics"
        )
    names = limit.coordinates
    _checks.choice("x", x, names)
    _checks.choice("y", y, [name for name in names if name != x])
    _checks.choice("kind", kind, KINDS)
    points = _checks.integer("points", points, least=3)
    marks = _marks(limit, fixed_points, x, y)
    if state is None and marks and len(names) > 2:
        state = marks[0].state
    shown = _shown(runs, path, x, y)
    ranges = [
        _range(
            f"{which}_range",
            given,
            [values[:, axis] for values in shown],
            marks,
            nonnegative=name in limit.nonnegative,
        )
        for axis, (which, given, name) in enumerate((("x", x_range, x), ("y", y_range, y)))
    ]
    x_values, y_values = (np.linspace(*ends, points) for ends in ranges)
    field = limit.drift_in_plane(
        x, y, x_values=x_values, y_values=y_values, state=state, others=others
    )
    with style.figure_style():
        figure, panel = one_panel(axes, (4.6, 5.4))
        if axes is None:
            panel.locator_params(axis="x", nbins=6)
        panel.grid(visible=False)
        draw_field(panel, field, kind)
        draw_nullclines(panel, field)
        if runs is not None:
            draw_many(panel, runs, x, y, "SGD", style.SIMULATION)
        if path is not None and "run" in path.dims:
            draw_many(panel, path, x, y, "limit paths", style.PATHS)
        elif path is not None:
            draw_limit(panel, path, x, y, mark_ends=False)
        draw_marks(
            panel, [mark for mark in marks if _within(mark, ranges) and lies_in(field, mark)]
        )
        panel.set(xlim=ranges[0], ylim=ranges[1], xlabel=symbol(x), ylabel=symbol(y))
        if axes is None:
            section = f" · others {others}" if len(names) > 2 else ""
            style.put_caption(figure, style.caption(field if runs is None else runs) + section)
            handles, labels = panel.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _marks(limit: Limit, given: RestPoints, x: str, y: str) -> list[Mark]:
    """Every rest point with its values of x and y."""
    if isinstance(given, bool):
        given = limit.fixed_points() if given else []
    if not isinstance(given, Sequence) or not all(isinstance(p, RestPoint) for p in given):
        raise _checks.InputError(
            f"fixed_points={given!r} is not allowed: it must be True, False or a list of points "
            "with state, stability, representatives and orbit"
        )
    names, marks = limit.coordinates, []
    for point in given:
        stability = _checks.choice("stability", point.stability, tuple(STABILITIES))
        for state in (point.state, *point.representatives, *point.orbit[1:]):
            vector = limit.ravel(state)
            ends = float(vector[names.index(x)]), float(vector[names.index(y)])
            marks.append(Mark(*ends, state, stability))
    return marks


def _shown(runs: xr.Dataset | None, path: xr.Dataset | None, x: str, y: str) -> list[np.ndarray]:
    """All points of runs and path that will be drawn, as arrays of shape (points, 2)."""
    given = [finished(dataset)[0] for dataset in (runs, path) if dataset is not None]
    drawn = [points_of(dataset, x, y).reshape(-1, 2) for dataset in given]
    return [values[np.all(np.isfinite(values), axis=1)] for values in drawn]


def _range(
    argument: str, given: Any, shown: list[np.ndarray], marks: list[Mark], *, nonnegative: bool
) -> tuple[float, float]:
    if given is not None:
        low, high = _checks.array(argument, given, (2,))
        if not low < high:
            raise _checks.InputError(
                f"{argument}={given!r} is not allowed: {argument} must be two increasing numbers"
            )
        return float(low), float(high)
    margin = _AROUND_PATHS
    values = np.concatenate([np.zeros(0), *shown])
    if len(values) == 0:
        margin = _AROUND_POINTS
        values = np.array([mark.x if argument == "x_range" else mark.y for mark in marks])
    if len(values) == 0:
        raise _checks.InputError(
            f"{argument}=None is not allowed here: there are no runs, no path and no rest points "
            "around which to draw"
        )
    low, high = float(values.min()), float(values.max())
    margin = margin * (high - low) if high - low > 1e-6 else max(1.0, abs(low))
    return max(low - margin, 0.0) if nonnegative else low - margin, high + margin


def _within(mark: Mark, ranges: list[tuple[float, float]]) -> bool:
    return all(
        low <= value <= high for value, (low, high) in zip((mark.x, mark.y), ranges, strict=True)
    )

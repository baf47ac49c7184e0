"""Simulation against limit: one panel per statistic, over time."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import given_panels
from sgdlimits.plot._ensemble import describe, ensemble, finished
from sgdlimits.plot.symbols import symbol
from sgdlimits.results import select
from sgdlimits.results import statistics as names_of

_PANELS = 6
_MARKERS = 16  # points shown of the mean; the bands have all times


def compare(
    runs: xr.Dataset,
    path: xr.Dataset | None = None,
    statistics: Word | Sequence[Word] | None = None,
    axes: Axes | Sequence[Axes] | np.ndarray | None = None,
) -> Figure:
    """Draw the mean over runs of statistics over time, with its errors, and the limit.

    Points are the mean over the runs that did not diverge, the light band is one standard deviation
    over runs, the dark one two standard errors of the mean: the limit should cross the dark band up
    to a gap that closes as dim grows.

    Args:
        runs: a simulation.
        path: the solution of the limit, drawn as a line; or paths with a ``run`` dim, drawn as
            their mean and one standard deviation; or None.
        statistics: flat names such as ``"M[0,mu]"``, one panel each. By default all of them if
            they are at most 6, otherwise the first entries of each of v, M and R.
        axes: draw in these axes, one per statistic, in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    chosen = _chosen(runs, statistics)
    kept, diverged = finished(runs)
    with style.figure_style():
        figure, panels = _panels(len(chosen), axes)
        for name, panel in zip(chosen, panels, strict=True):
            _draw_runs(panel, select(kept, name, argument="statistics"), diverged)
            if path is not None:
                _draw_path(panel, path, name)
            panel.margins(x=0.02)
        _label(panels, chosen, len(chosen) if axes is not None else _columns(len(chosen)))
        if axes is not None:
            panels[0].legend()
        else:
            figure.align_ylabels()
            style.put_caption(figure, style.caption(runs))
            handles, labels = panels[0].get_legend_handles_labels()
            columns = 1 if len(chosen) == 1 else 2
            figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure


def _chosen(runs: xr.Dataset, wanted: Word | Sequence[Word] | None) -> list[str]:
    if isinstance(wanted, str):
        wanted = [wanted]
    if wanted is not None:
        if not isinstance(wanted, Sequence) or len(wanted) == 0:
            raise _checks.InputError(
                f"statistics={wanted!r} is not allowed: it must name at least one"
            )
        for name in wanted:
            select(runs, name, argument="statistics")
        return list(wanted)
    available = names_of(runs)
    if not available:
        raise _checks.InputError(
            f"runs={list(runs.data_vars)} is not allowed: it has no statistic to draw"
        )
    if len(available) <= _PANELS:
        return available
    families: dict[str, list[str]] = {}
    for name in available:
        families.setdefault(name.split("[")[0], []).append(name)
    share = max(_PANELS // len(families), 1)
    return [name for family in families.values() for name in family[:share]][:_PANELS]


def _columns(count: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(count, 3)


def _panels(
    count: int, axes: Axes | Sequence[Axes] | np.ndarray | None
) -> tuple[Figure, list[Axes]]:
    if axes is not None:
        return given_panels(axes, count, "statistics")
    columns = _columns(count)
    rows = -(-count // columns)
    size = (4.4, 4.2) if count == 1 else (3.2 * columns, 2.1 * rows + 1.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for empty in grid[count:]:
        empty.remove()
    return figure, list(grid[:count])


def _label(panels: list[Axes], names: list[str], columns: int) -> None:
    """Name both axes; time only on the lowest panel of each column."""
    for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
        panel.set_ylabel(symbol(name))
        if number + columns >= len(panels):
            panel.set_xlabel(style.TIME_LABEL, fontsize="medium")
            panel.tick_params(labelbottom=True)  # the panel below may be one that was removed


def _draw_runs(panel: Axes, values: xr.DataArray, diverged: int) -> None:
    summary = ensemble(values)
    count = values.sizes["run"]
    label = "SGD, " + describe("mean of", count, diverged)
    if summary is None:
        panel.plot([], [], "o", color=style.SIMULATION, label=label)
        return
    time, mean = summary.time, summary.mean
    shown = np.unique(np.linspace(0, len(time) - 1, _MARKERS).round().astype(int)).tolist()
    panel.plot(
        time,
        mean,
        linestyle="none",
        marker="o",
        markersize=4.5,
        markerfacecolor="white",
        markeredgewidth=1.3,
        markevery=shown,
        color=style.SIMULATION,
        label=label,
        zorder=4,
    )
    if count > 1:
        for width, alpha, text in (
            (summary.deviation, 0.2, "± 1 standard deviation"),
            (2 * summary.error, 0.5, "± 2 standard errors of the mean"),
        ):
            low, high = mean - width, mean + width
            panel.fill_between(
                time, low, high, color=style.SIMULATION, alpha=alpha, linewidth=0, label=text
            )


def _draw_path(panel: Axes, path: xr.Dataset, name: str) -> None:
    kept, diverged = finished(path)
    values = select(kept, name, argument="statistics (for path)")
    summary = ensemble(values)
    if "run" not in path.dims and summary is not None:
        panel.plot(summary.time, summary.mean, color=style.LIMIT, label="limit, dim → ∞", zorder=3)
        return
    label = "limit paths, " + describe("mean of", values.sizes["run"], diverged)
    if summary is None:
        panel.plot([], [], color=style.PATHS, label=label)
        return
    panel.plot(summary.time, summary.mean, color=style.PATHS, label=label, zorder=3)
    if values.sizes["run"] == 1:
        return
    for sign, text in ((-1, "± 1 standard deviation of the paths"), (1, None)):
        edge = summary.mean + sign * summary.deviation
        panel.plot(
            summary.time, edge, color=style.PATHS, linestyle="--", linewidth=1, label=text, zorder=3
        )

"""Trajectories in the plane of two statistics."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._ensemble import describe, finished
from sgdlimits.plot.symbols import symbol
from sgdlimits.results import select

_MOST = 200  # more lines than this are a blot


def plane(
    runs: xr.Dataset,
    path: xr.Dataset | None,
    x: Word,
    y: Word,
    axes: Axes | None = None,
) -> Figure:
    """Draw the trajectories of runs in the plane of two statistics, and the limit.

    Thin lines are single runs (at most 200 of them, the first that did not diverge), dots their end
    points. The thick line is the limit, from an open circle to a full one.

    Args:
        runs: a simulation.
        path: the solution of the limit; or paths with a ``run`` dim, drawn as thin lines; or None.
        x: flat name of the statistic on the horizontal axis, such as ``"M[0,mu]"``.
        y: flat name of the statistic on the vertical axis.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    with style.figure_style():
        if axes is None:
            figure = Figure(figsize=(4.6, 4.7), layout="constrained")
            panel = figure.subplots()
        else:
            found: Any = axes.get_figure(root=True)
            figure, panel = found, axes
        _draw_many(panel, runs, x, y, "SGD", style.SIMULATION)
        if path is not None and "run" in path.dims:
            _draw_many(panel, path, x, y, "limit paths", style.PATHS)
        elif path is not None:
            _draw_limit(panel, path, x, y)
        panel.set_xlabel(symbol(x))
        panel.set_ylabel(symbol(y))
        panel.autoscale_view()
        if axes is None:
            style.put_caption(figure, style.caption(runs))
            handles, labels = panel.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=1)
        else:
            panel.legend()
    return figure


def _points(dataset: xr.Dataset, x: Word, y: Word) -> np.ndarray:
    """Return the trajectories, of shape (run, time, 2)."""
    both = [
        select(dataset, name, argument=argument).transpose("run", "time").values
        for argument, name in (("x", x), ("y", y))
    ]
    return np.stack(both, axis=-1)


def _draw_many(panel: Axes, dataset: xr.Dataset, x: Word, y: Word, word: str, color: str) -> None:
    kept, diverged = finished(dataset)
    count = kept.sizes["run"]
    lines = _points(kept.isel(run=slice(_MOST)), x, y)
    first = f"{len(lines)} of" if count > _MOST else ""
    # Many runs overlap: each is fainter, so that their density shows.
    alpha = float(np.clip(3 / np.sqrt(max(len(lines), 1)), 0.2, 0.9))
    panel.add_collection(
        LineCollection(
            list(lines),
            colors=color,
            linewidths=0.7,
            alpha=alpha,
            label=f"{word}, {describe(first, count, diverged)}".replace("  ", " "),
        )
    )
    if len(lines):
        panel.plot(
            *lines[:, -1].T,
            linestyle="none",
            marker="o",
            markersize=4,
            markeredgecolor="white",
            markeredgewidth=0.5,
            color=color,
            label=f"{word}, end points",
            zorder=3,
        )


def _draw_limit(panel: Axes, path: xr.Dataset, x: Word, y: Word) -> None:
    line = _points(finished(path)[0], x, y)[0]
    halo = [withStroke(linewidth=4.6, foreground="white")]
    label = "limit, dim → ∞, from ○ to ●"
    panel.plot(*line.T, color=style.LIMIT, linewidth=2.6, path_effects=halo, label=label, zorder=4)
    for end, face in ((0, "white"), (-1, style.LIMIT)):
        panel.plot(
            *line[end],
            marker="o",
            markersize=7,
            markerfacecolor=face,
            markeredgecolor=style.LIMIT,
            markeredgewidth=1.5,
            zorder=5,
        )

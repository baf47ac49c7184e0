"""Trajectories as lines in the plane of two statistics."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke

from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._ensemble import describe, finished
from sgdlimits.results import select

_MOST = 200  # more lines than this are a blot


def points_of(dataset: xr.Dataset, x: Word, y: Word) -> np.ndarray:
    """Return the trajectories, of shape (run, time, 2)."""
    both = [
        select(dataset, name, argument=argument).transpose("run", "time").values
        for argument, name in (("x", x), ("y", y))
    ]
    return np.stack(both, axis=-1)


def draw_many(panel: Axes, dataset: xr.Dataset, x: Word, y: Word, word: str, color: str) -> None:
    """Draw single runs as thin lines that end in dots."""
    kept, diverged = finished(dataset)
    count = kept.sizes["run"]
    lines = points_of(kept.isel(run=slice(_MOST)), x, y)
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


def draw_limit(panel: Axes, path: xr.Dataset, x: Word, y: Word, *, mark_ends: bool = True) -> None:
    """Draw one solution as a thick line, by default from an open circle to a full one."""
    line = points_of(finished(path)[0], x, y)[0]
    halo = [withStroke(linewidth=4.6, foreground="white")]
    label = "limit, dim → ∞" + (", from ○ to ●" if mark_ends else "")
    panel.plot(*line.T, color=style.LIMIT, linewidth=2.6, path_effects=halo, label=label, zorder=4)
    if not mark_ends:
        return
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

"""One result over time in a panel: runs as points and bands, a limit as a line, its paths too."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._along import along
from sgdlimits.plot._ensemble import Ensemble, describe, ensemble, finished
from sgdlimits.results import select

_MARKERS = 16  # points shown of the mean; the bands have all times
COLOURS = [style.PALETTE[c] for c in ("blue", "orange", "green", "purple", "sky blue", "yellow")]
SHAPES = "os^vDP"
DASHES = ("-", "--", "-.", ":")
SIMULATION, LIMIT, PATHS = "simulation", "limit", "paths"


@dataclass(frozen=True)
class Series:
    """A result with its name in the legend and its looks.

    Args:
        dataset: over time, perhaps over runs.
        name: as in "SGD, mean of 64 runs".
        kind: SIMULATION, LIMIT or PATHS.
        place: among those of its kind in the picture: decides about the looks.
        after: how many simulations are drawn on top of it: its points are larger, to be seen.
        x: what is on the horizontal axis.
        clock: a simulation that tells the samples of a limit.
        told: what an error calls it.
    """

    dataset: xr.Dataset
    name: str
    kind: str
    place: int = 0
    after: int = 0
    x: Word = "time"
    clock: xr.Dataset | None = None
    told: str = "runs"

    def draw(self, panel: Axes, statistic: Word, argument: str) -> None:
        """Draw one statistic; ``argument`` is what the caller calls its name."""
        kept, diverged = finished(self.dataset)
        values = select(kept, statistic, argument=argument)
        positions = along(self.dataset, self.x, like=self.clock)
        summary, count = ensemble(values), values.sizes["run"]
        shown = np.asarray(positions if summary is None else positions[summary.recorded])
        dashes = DASHES[self.place % len(DASHES)]
        if self.kind == LIMIT and summary is not None:
            panel.plot(shown, summary.mean, dashes, color=style.LIMIT, label=self.name, zorder=3)
            return
        label = f"{self.name}, {describe('mean of', count, diverged)}"
        draw = self._draw_runs if self.kind == SIMULATION else _draw_paths
        draw(panel, shown, summary, count, label)

    def _draw_runs(
        self, panel: Axes, x: np.ndarray, summary: Ensemble | None, count: int, label: str
    ) -> None:
        color, shape = (looks[self.place % len(looks)] for looks in (COLOURS, SHAPES))
        if summary is None:
            panel.plot([], [], shape, color=color, label=label)
            return
        panel.plot(
            x,
            summary.mean,
            linestyle="none",
            marker=shape,
            markersize=4.5 + 2.5 * self.after,
            markerfacecolor="white",
            markeredgewidth=1.3,
            markevery=_few(len(x)),
            color=color,
            label=label,
            zorder=4,
        )
        if count == 1:
            return
        for width, alpha, text in (
            (summary.deviation, 0.2, "± 1 standard deviation"),
            (2 * summary.error, 0.5, "± 2 standard errors of the mean"),
        ):
            low, high = summary.mean - width, summary.mean + width
            once = text if self.place == 0 else None
            panel.fill_between(x, low, high, color=color, alpha=alpha, linewidth=0, label=once)


def _draw_paths(
    panel: Axes, x: np.ndarray, summary: Ensemble | None, count: int, label: str
) -> None:
    if summary is None:
        panel.plot([], [], color=style.PATHS, label=label)
        return
    panel.plot(x, summary.mean, color=style.PATHS, label=label, zorder=3)
    if count == 1:
        return
    for sign, text in ((-1, "± 1 standard deviation of the paths"), (1, None)):
        edge = summary.mean + sign * summary.deviation
        panel.plot(x, edge, color=style.PATHS, linestyle="--", linewidth=1, label=text, zorder=3)


def _few(count: int) -> Sequence[int]:
    return np.unique(np.linspace(0, count - 1, _MARKERS).round().astype(int)).tolist()

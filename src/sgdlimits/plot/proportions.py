"""How often something happened in independent runs, with exact intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from sgdlimits import _checks
from sgdlimits._types import Number, Numbers, WholeNumber, Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel

CONFIDENCE = 0.95


def proportions(
    hits: Sequence[WholeNumber] | np.ndarray | xr.DataArray,
    total: WholeNumber,
    x: Sequence[Any] | np.ndarray | xr.DataArray,
    *,
    expected: Number | Numbers | None = None,
    label: Word | None = None,
    color: Word = style.SIMULATION,
    axes: Axes | None = None,
) -> Figure:
    """Draw the share of runs that hit, with exact 95 % intervals (Clopper and Pearson).

    Args:
        hits: how many of the runs hit, one number for each ``x``.
        total: number of independent runs, the same for all.
        x: numbers, or words for a point each.
        expected: the predicted share: one number for all ``x``, drawn as a dashed line; or one for
            each, drawn as a line over numbers and as a dash at each word.
        label: of the legend, in place of "SGD, 500 runs, 95 % intervals".
        color: of points and intervals.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> figure = proportions([3, 9], 10, ["λ = 1", "λ = ∞"], expected=0.5)
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['predicted', 'SGD, 10 runs, 95 % intervals']
    """
    runs = _checks.integer("total", total, least=1)
    counts = _checks.array("hits", np.asarray(hits), np.shape(x))
    if np.any((counts < 0) | (counts > runs) | (counts != counts.round())):
        raise _checks.InputError(
            f"hits={_checks.shown(counts)} is not allowed: hits must be whole numbers from 0 to "
            f"total={runs}"
        )
    points = np.asarray(x)
    shares = counts / runs
    intervals = np.array(
        [stats.binomtest(int(n), runs).proportion_ci(CONFIDENCE, method="exact") for n in counts]
    )
    words = points.dtype.kind == "U"
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        if expected is not None and np.ndim(expected) == 0:
            panel.axhline(
                float(np.asarray(expected)), color=style.LIMIT, linestyle="--", label="predicted"
            )
        elif expected is not None:
            predicted = _checks.array("expected", np.asarray(expected), points.shape)
            look: Any = {"ls": "none", "marker": "_", "ms": 22, "mew": 2} if words else {}
            panel.plot(points, predicted, color=style.LIMIT, label="predicted", **look)
        panel.errorbar(
            points,
            shares,
            np.abs(intervals.T - shares),
            fmt="o",
            ms=5,
            capsize=4,
            color=color,
            zorder=3,
            label=label or f"SGD, {runs} runs, {CONFIDENCE:.0%} intervals".replace("%", " %"),
        )
        if words:
            panel.margins(x=0.12)
        if axes is None:
            panel.set_ylabel("share of runs", fontsize="medium")
            panel.legend()
    return figure

"""The part of runs that have not had their event yet, over time."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks, results
from sgdlimits._types import Number, Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel


def survival(
    passage: xr.Dataset,
    *,
    limit: xr.Dataset | None = None,
    confidence: Number = 0.95,
    label: Word | None = None,
    color: Word = style.SIMULATION,
    axes: Axes | None = None,
) -> Figure:
    """Draw the Kaplan–Meier estimate in steps, its band, its median, and the limit's time.

    Ticks on the curve are runs whose watch ended before their event.

    Args:
        passage: of many runs, from ``first_passage`` or ``simulate(..., until=...)``.
        limit: the same event of one solution of the limit, a vertical line.
        confidence: of the band.
        label: of the legend, in place of "SGD, 180 of 200 runs passed".
        color: of curve and band.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> variables = {"time": ("run", [1.0, 2.0, 5.0]), "censored": ("run", [False, True, False])}
    >>> figure = survival(xr.Dataset(variables))
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['SGD, 2 of 3 runs passed', 'median 5 (1 to beyond what was watched)']
    """
    estimate = results.survival(passage, confidence=confidence)
    text = f"SGD, {estimate.passed} of {estimate.runs} runs passed" if label is None else label
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        x = np.concatenate([[0.0], estimate.time, [estimate.watched]])
        curves = (estimate.survival, estimate.low, estimate.high)
        s, low, high = (np.concatenate([[1.0], y, y[-1:] if len(y) else [1.0]]) for y in curves)
        panel.plot(x, s, drawstyle="steps-post", color=color, label=text, zorder=3)
        panel.fill_between(x, low, high, step="post", color=color, alpha=0.2, linewidth=0)
        _ticks(panel, passage, x, s, color)
        median = estimate.median
        if np.isfinite(median.value):
            look: Any = {"marker": "o", "markerfacecolor": "white", "zorder": 4}
            look |= {"color": color, "linestyle": "none", "markersize": 5.5}
            panel.plot([median.value], [0.5], label=f"median {median}", **look)
            ends = np.array([median.low, min(median.high, estimate.watched)])
            panel.plot(ends, [0.5, 0.5], color=color, linewidth=1.2, zorder=2)
        if limit is not None:
            _line(panel, limit)
        panel.set(ylim=(-0.02, 1.04), xlabel=style.TIME_LABEL)
        if axes is None:
            panel.xaxis.label.set_fontsize("medium")
            event = passage.attrs.get("event")
            panel.set_ylabel("part of runs that have not passed", fontsize="medium")
            panel.set_title(f"event: {event}" if event else "", fontsize="medium")
            panel.legend()
            style.put_caption(figure, style.caption(passage))
    return figure


def _ticks(panel: Axes, passage: xr.Dataset, x: np.ndarray, s: np.ndarray, color: str) -> None:
    """Where runs were censored."""
    name = "passage_time" if "passage_time" in passage else "time"
    times = np.unique(passage[name].values[passage["censored"].values.astype(bool)])
    height = s[np.searchsorted(x, times, side="right") - 1]
    panel.plot(times, height, "|", color=color, markersize=8, zorder=3)


def _line(panel: Axes, limit: xr.Dataset) -> None:
    """The time of the limit, if it has one."""
    if "time" not in limit.data_vars or limit["time"].ndim or "censored" not in limit:
        raise _checks.InputError(
            f"limit={list(limit.data_vars)} is not allowed: limit must be what "
            "limit.first_passage(event, init, max_time) returns for one start"
        )
    if bool(limit["censored"]):
        panel.plot([], [], color=style.LIMIT, linewidth=1.2, label="limit: not reached")
        return
    time = float(limit["time"])
    panel.axvline(time, color=style.LIMIT, linewidth=1.2, label=f"limit, dim → ∞: {time:.4g}")

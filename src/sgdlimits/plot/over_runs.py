"""One statistic of many runs: each run as a thin line, or their mean with its spread."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, WholeNumber, Word
from sgdlimits.plot import style
from sgdlimits.plot._along import along, label_of
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot._ensemble import describe
from sgdlimits.plot.symbols import symbol

_MARKS = 16  # points shown of a mean; a band has all of them
_SPREADS = {"deviation": "± 1 standard deviation", "error": "± 2 standard errors"}


def runs(
    values: xr.DataArray,
    *,
    label: Word | None = None,
    color: Word = style.SIMULATION,
    most: WholeNumber = 25,
    limit: xr.DataArray | None = None,
    x: Word | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw single runs of a statistic as thin lines, with one entry in the legend for all of them.

    Args:
        values: over ``run`` and one other dim, usually ``time``: such as
            ``results.select(runs, "M[0,mu]")``, or ``np.sqrt(dim) * runs.m``.
        label: of the legend, in place of "SGD, 25 of 200 runs".
        color: of the lines.
        most: at most so many runs are drawn, the first ones; a run that diverges ends where it
            does.
        limit: the same statistic of a solution of the limit, a line on top of the runs.
        x: "samples" for samples on the horizontal axis in place of time.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> noise = np.random.default_rng(0).standard_normal((30, 5))
    >>> figure = runs(xr.DataArray(noise, dims=("run", "time"), name="m"))
    >>> len(figure.axes[0].lines), figure.axes[0].get_legend_handles_labels()[1]
    (25, ['SGD, 25 of 30 runs'])
    """
    table, positions = _table(values, x)
    shown = table[: _checks.integer("most", most, least=1)]
    few = f"{len(shown)} of" if len(shown) < len(table) else ""
    text = _label(label, few, table)
    (other,) = (dim for dim in values.dims if dim != "run")
    if limit is not None and limit.dims != (other,):
        raise _checks.InputError(
            f"limit with the dims {list(limit.dims)} is not allowed: limit must be over {other}"
        )
    # Many runs overlap: each is fainter, so that their density shows.
    alpha = float(np.clip(2 / np.sqrt(len(shown)), 0.2, 0.8))
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        finite = np.where(np.isfinite(shown), shown, np.nan)
        lines = panel.plot(positions, finite.T, color=color, linewidth=0.7, alpha=alpha)
        lines[0].set_label(text)
        if limit is not None:
            look: Any = {"color": style.LIMIT, "linewidth": 1.2, "zorder": 3}
            where = limit[other] if x is None else along(limit, x, like=values)
            panel.plot(where, limit, label="limit, dim → ∞", **look)
        _finish(panel, values, x, alone=axes is None)
    return figure


def band(
    values: xr.DataArray,
    *,
    spread: Word = "error",
    bars: Flag = False,
    label: Word | None = None,
    color: Word = style.SIMULATION,
    size: Number = 4.5,
    x: Word | None = None,
    axes: Axes | None = None,
) -> Figure:
    """Draw the mean over runs of a statistic as points, with its spread as a band.

    Runs that diverge are left out, and counted in the legend. At most 16 points are drawn, evenly
    along the axis as it is scaled at that moment: make it logarithmic first.

    Args:
        values: over ``run`` and one other dim, such as ``time`` or a parameter.
        spread: "deviation" for one standard deviation over runs, "error" for two standard errors
            of the mean, from independent runs.
        bars: whether the spread is drawn as bars at the points, for few of them.
        label: of the legend, in place of "SGD, mean of 200 runs ± 2 standard errors".
        color: of points and band.
        size: of the points: means that agree are told apart if the larger ones are drawn first.
        x: "samples" for samples on the horizontal axis in place of time.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> noise = np.random.default_rng(0).standard_normal((30, 5))
    >>> figure = band(xr.DataArray(noise, dims=("run", "time"), name="m"))
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['SGD, mean of 30 runs ± 2 standard errors']
    """
    _checks.choice("spread", spread, list(_SPREADS))
    size = _checks.positive("size", size)
    table, positions = _table(values, x)
    text = _label(label, "mean of", table, f" {_SPREADS[spread]}")
    kept = table[np.all(np.isfinite(table), axis=1)]
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        if len(kept) == 0:
            panel.plot([], [], "o", color=color, label=text)
        else:
            mean = kept.mean(axis=0)
            width = kept.std(axis=0, ddof=1) if len(kept) > 1 else np.zeros_like(mean)
            if spread == "error":
                width = 2 * width / np.sqrt(len(kept))
            marks = _even(positions, logarithmic=panel.get_xscale() == "log")
            look: Any = {"color": color, "markersize": size, "linestyle": "none", "marker": "o"}
            look |= {"markerfacecolor": "white", "markeredgewidth": 1.3, "zorder": 4}
            if _checks.flag("bars", bars):
                look |= {"capsize": 2.5, "label": text}
                panel.errorbar(positions[marks], mean[marks], width[marks], **look)
            else:
                panel.plot(positions[marks], mean[marks], label=text, **look)
                low, high = mean - width, mean + width
                panel.fill_between(positions, low, high, color=color, alpha=0.3, linewidth=0)
        _finish(panel, values, x, alone=axes is None)
    return figure


def _table(values: xr.DataArray, x: Word | None) -> tuple[np.ndarray, np.ndarray]:
    """The values as an array (run, other dim), and where its entries are along the axis."""
    dims = [str(dim) for dim in values.dims]
    if len(dims) != 2 or "run" not in dims or values.size == 0:
        raise _checks.InputError(
            f"values with the dims {dims} are not allowed: values must be over run and one other "
            "dim, and not empty; choose one entry of the others by values.sel or values.isel"
        )
    (other,) = set(dims) - {"run"}
    if x is not None and other != "time":
        raise _checks.InputError(f"x={x!r} is not allowed for values over {other}: it is for time")
    positions = values[other].values if x is None else along(values, x)
    return values.transpose("run", other).values.astype(float), positions


def _label(label: str | None, word: str, table: np.ndarray, after: str = "") -> str:
    finite = np.all(np.isfinite(table), axis=1)
    count, lost = int(finite.sum()), int((~finite).sum())
    if label is not None:
        return f"{label} ({lost} diverged)" if lost else label
    return "SGD, " + describe(word, count, lost).strip() + (after if count > 1 else "")


def _even(positions: np.ndarray, *, logarithmic: bool) -> np.ndarray:
    """Positions of at most 16 entries, evenly spread on a linear or on a logarithmic axis."""
    possible = np.flatnonzero(positions > 0) if logarithmic else np.arange(len(positions))
    if len(possible) <= _MARKS:
        return possible
    scaled = np.log(positions[possible]) if logarithmic else positions
    wanted = np.linspace(scaled[0], scaled[-1], _MARKS)
    nearest = np.abs(scaled[:, None] - wanted).argmin(axis=0)
    return np.asarray(possible[np.unique(nearest)])


def _finish(panel: Axes, values: xr.DataArray, x: Word | None, *, alone: bool) -> None:
    """Name the axes; the vertical one only in a figure of our own."""
    (other,) = {str(dim) for dim in values.dims} - {"run"}
    panel.set_xlabel(label_of(x or "time") if other == "time" else symbol(other))
    if alone:
        panel.xaxis.label.set_fontsize("medium")
        panel.set_ylabel(symbol(str(values.name)) if values.name else "")
        panel.legend()

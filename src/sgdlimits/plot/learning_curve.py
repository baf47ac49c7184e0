"""Learning curves: risk, error or another metric over time, with the limit on top."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._names import explained
from sgdlimits._types import Number, Word
from sgdlimits.plot import style
from sgdlimits.plot._along import along, label_of
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot._ensemble import describe, finished

_WORDS = {"risk": "population risk", "error": "0–1 error"}
_SCALES = {"none": "", "x": "x", "y": "y", "both": "xy"}
_MIDDLE = (0.1, 0.9)  # quantiles over runs


@explained
def learning_curve(
    runs: xr.Dataset,
    path: xr.Dataset | None = None,
    metric: Word = "risk",
    *,
    asymptote: Number | None = None,
    log: Word = "none",
    x: Word = "time",
    label: Word = "SGD",
    color: Word = style.SIMULATION,
    axes: Axes | None = None,
) -> Figure:
    """Draw a metric over time: its mean over runs and their spread, the limit, where it ends.

    The dark band is two standard errors of the mean, the light one holds the middle 80 % of runs;
    those that diverged are left out and counted in the legend.

    Args:
        runs: a simulation to which :func:`sgdlimits.measure` has added the metric.
        path: a solution of the limit to which it has been added too: a dashed line on top.
        metric: the variable's name, "risk", "error" or that of a function.
        asymptote: drawn as a dotted line; by default where ``path`` ends.
        log: which axes are logarithmic: "none", "x", "y" or "both".
        x: what is on the horizontal axis, "time" or "samples".
        label: of the runs, in the legend.
        color: of the runs; several curves in one panel need several.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> times = np.linspace(0.0, 4.0, 5)
    >>> table = np.exp(-times) + 0.01 * np.arange(3)[:, None]
    >>> measured = xr.Dataset({"risk": (("run", "time"), table)}, {"time": times})
    >>> figure = learning_curve(measured, log="y")
    >>> figure.axes[0].get_ylabel(), figure.axes[0].get_yscale()
    ('population risk', 'log')
    """
    scaled = _SCALES[_checks.choice("log", log, list(_SCALES))]
    for argument, given in (("runs", runs), ("path", path)):
        if not isinstance(given, xr.Dataset) and (given is not None or argument == "runs"):
            raise _checks.InputError(
                f"{argument}={type(given).__name__} is not allowed: {argument} must be a Dataset "
                "to which sgdlimits.measure has added the metric"
            )
    kept, diverged = finished(runs)
    values = _curve("runs", kept, metric)
    limit = None if path is None else _curve("path", path, metric)
    if limit is not None and limit.dims != ("time",):
        raise _checks.InputError(
            f"path with the dims {list(limit.dims)} is not allowed: path must be one solution, "
            "over time"
        )
    if asymptote is not None:
        asymptote = _checks.array("asymptote", asymptote, ()).item()
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 4.2))
        shown = slice(1 if "x" in scaled else 0, None)  # a logarithm of time has no beginning
        text = f"{label}, " + describe("mean of", values.sizes["run"], diverged)
        table = values.transpose("run", "time").values[:, shown]
        _draw_runs(panel, along(runs, x)[shown], table, text, color)
        if path is not None and limit is not None:
            look: Any = {"color": style.LIMIT, "linewidth": 1.2, "linestyle": "--", "zorder": 5}
            places = along(path, x, like=runs)[shown]
            panel.plot(places, limit[shown], label="limit, dim → ∞", **look)
            asymptote = float(limit[-1]) if asymptote is None else asymptote
        if asymptote is not None:
            text = f"asymptote {asymptote:.3g}"
            panel.axhline(asymptote, color=style.LIMIT, linestyle=":", linewidth=1, label=text)
        panel.set(xlabel=label_of(x, runs), ylabel=_WORDS.get(metric, metric))
        panel.set(**{f"{axis}scale": "log" for axis in scaled})
        panel.margins(x=0.02)
        panel.legend()
        if axes is None:
            panel.xaxis.label.set_fontsize("medium")
            style.put_caption(figure, style.caption(runs))
    return figure


def _curve(argument: str, dataset: xr.Dataset, metric: str) -> xr.DataArray:
    if not isinstance(metric, str) or metric not in dataset.data_vars:
        raise _checks.InputError(
            f"metric={metric!r} is not allowed: {argument} has the variables "
            f"{', '.join(map(str, dataset.data_vars))}; "
            f"sgdlimits.measure(task, {argument}, metric) adds one"
        )
    if set(dataset[metric].dims) - {"run", "time"} or "time" not in dataset[metric].dims:
        raise _checks.InputError(
            f"{argument} with {metric} over {', '.join(map(str, dataset[metric].dims))} is not "
            "allowed: it must be over run and time; choose one entry of others by sel or isel"
        )
    return dataset[metric]


def _draw_runs(panel: Axes, places: np.ndarray, table: np.ndarray, text: str, color: str) -> None:
    if len(table) == 0:
        panel.plot([], [], color=color, label=text)
        return
    mean = table.mean(axis=0)
    panel.plot(places, mean, color=color, linewidth=2.4, label=text, zorder=4)
    if len(table) == 1:
        return
    width = 2 * table.std(axis=0, ddof=1) / np.sqrt(len(table))
    for low, high, alpha, words in (
        (*np.quantile(table, _MIDDLE, axis=0), 0.2, "middle 80 % of runs"),
        (mean - width, mean + width, 0.5, "± 2 standard errors of the mean"),
    ):
        panel.fill_between(places, low, high, color=color, alpha=alpha, linewidth=0, label=words)

"""How a gap closes as the dimension grows, beside the rate at which it should."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Number, Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot.over_runs import band
from sgdlimits.plot.symbols import symbol


def convergence(
    gaps: xr.DataArray,
    exponent: Number = -0.5,
    *,
    label: Word | None = None,
    color: Word = style.SIMULATION,
    axes: Axes | None = None,
) -> Figure:
    """Draw the mean over runs of a gap over the dimension on logarithmic axes, and a power law.

    Points have bars of two standard errors. The line goes through the last point: runs that follow
    it approach their limit at that rate.

    Args:
        gaps: positive numbers over ``run`` and one other dim, such as ``dim``: the distance of each
            run to the limit.
        exponent: of the power law. Runs of SGD are within dim^(−1/2) of their limit.
        label: of the points, as in :func:`sgdlimits.plot.band`.
        color: of the points.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> import numpy as np
    >>> noise = np.abs(np.random.default_rng(0).standard_normal((30, 2)))
    >>> gaps = xr.DataArray(noise / np.sqrt([100, 400]), {"dim": [100, 400]}, ("run", "dim"))
    >>> figure = convergence(gaps, label="SGD")
    >>> figure.axes[0].get_legend_handles_labels()[1]
    ['dim$^{-0.5}$', 'SGD']
    """
    power = float(_checks.array("exponent", exponent, ()))
    with style.figure_style():
        figure, panel = one_panel(axes, (4.6, 3.8))
        panel.set(xscale="log", yscale="log")
        band(gaps, bars=True, label=label, color=color, axes=panel)
        (other,) = (dim for dim in gaps.dims if dim != "run")
        x, last = gaps[other].values, float(gaps.isel({other: -1}).mean("run"))
        line = last * (x / x[-1]) ** power
        panel.plot(x, line, "k--", lw=1.2, label=f"{other}$^{{{power:g}}}$")
        panel.set(xlabel=symbol(str(other)), xticks=x, xticklabels=[f"{value:g}" for value in x])
        panel.xaxis.minorticks_off()
        if axes is None:
            panel.set_ylabel(symbol(str(gaps.name)) if gaps.name else "gap")
            panel.legend()
    return figure

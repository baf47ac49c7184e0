"""A risk over two statistics, with its critical points."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel

LOOKS = {"maximum": ("^", "w"), "saddle": ("D", "orange"), "minimum": ("*", "vermillion")}
SIZES = {"maximum": 8, "saddle": 7, "minimum": 14}
LEVELS = 24


def landscape(
    risk: xr.DataArray, points: xr.Dataset, x: Word, y: Word, axes: Axes | None = None
) -> Figure:
    """Draw a risk as shades and level lines, and its critical points.

    Args:
        risk: over two dims; NaN where there is no state.
        points: ``kind`` ("maximum", "saddle" or "minimum") and both statistics over ``point``.
        x: the dim on the horizontal axis, a variable of the points too.
        y: the dim on the vertical axis.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    values = risk.transpose(y, x)
    with style.figure_style():
        figure, panel = one_panel(axes, (5.2, 4.2))
        across, up = values[x].values, values[y].values
        levels = np.linspace(float(values.min()), float(values.max()), LEVELS)
        shades = panel.contourf(across, up, values, levels, cmap="YlGn_r")
        panel.contour(across, up, values, levels, colors="0.35", linewidths=0.4)
        figure.colorbar(shades, ax=panel, label="risk", format="%.2g")
        for kind, (marker, colour) in LOOKS.items():
            some = points.where(points.kind == kind, drop=True)
            if some.sizes["point"]:
                panel.plot(
                    some[x],
                    some[y],
                    marker,
                    color=style.PALETTE.get(colour, colour),
                    ms=SIZES[kind],
                    mec="k",
                    label=f"{kind}, risk {float(some.risk[0]):.3g}",
                    clip_on=False,
                    zorder=4,
                )
        panel.set(xlabel=f"${x}$", ylabel=f"${y}$")
        if axes is None:
            figure.legend(loc="outside lower center", ncols=3)
    return figure

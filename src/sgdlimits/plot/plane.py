"""Trajectories in the plane of two statistics."""

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot._trajectories import draw_limit, draw_many
from sgdlimits.plot.symbols import symbol


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
        figure, panel = one_panel(axes, (4.6, 4.7))
        draw_many(panel, runs, x, y, "SGD", style.SIMULATION)
        if path is not None and "run" in path.dims:
            draw_many(panel, path, x, y, "limit paths", style.PATHS)
        elif path is not None:
            draw_limit(panel, path, x, y)
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

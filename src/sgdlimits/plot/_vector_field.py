"""A vector field in a plane: its lines or arrows, and where each component vanishes."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize

from sgdlimits.plot import style
from sgdlimits.plot.symbols import symbol

KINDS = ("streamlines", "arrows")
NULLCLINES = (  # component, colour, dashes
    ("x", style.PALETTE["vermillion"], (0, (5, 1.6))),
    ("y", style.PALETTE["green"], (0, (5, 1.4, 1, 1.4))),
)

_SHADES = LinearSegmentedColormap.from_list("speed", ["0.86", "0.55"])
_ARROWS = 18  # along each axis: more of them touch


def draw_field(panel: Axes, field: xr.Dataset, kind: str) -> None:
    """Draw the directions of a field, darker where it is faster."""
    u, v = (np.ma.masked_invalid(field[f"{name}_velocity"].values) for name in "xy")
    x, y = field["x"].values, field["y"].values
    # in widths and heights of the panel per time, as the eye measures speed
    speed = np.ma.hypot(u / np.ptp(x), v / np.ptp(y))
    shade = np.ma.sqrt(speed)
    norm = Normalize(0, max(float(np.nanquantile(shade.filled(np.nan), 0.95)), 1e-300))
    label = "drift, darker where faster"
    if kind == "streamlines":
        panel.streamplot(
            *(x, y, u, v),
            color=shade,
            cmap=_SHADES,
            norm=norm,
            linewidth=0.8,
            arrowsize=0.8,
            density=1.0,
            zorder=1.2,
        )
    else:
        stride = -(-max(field.sizes.values()) // _ARROWS)
        every = (slice(stride // 2, None, stride),) * 2
        size = np.ma.maximum(np.ma.hypot(u, v), 1e-300)
        length = 0.35 + 0.65 * np.minimum(shade / norm.vmax, 1.0)
        panel.quiver(
            x[every[1]],
            y[every[0]],
            *((part / size * length)[every] for part in (u, v)),
            shade[every],
            cmap=_SHADES,
            norm=norm,
            angles="xy",  # along the field as drawn, whatever the scales of the axes
            pivot="mid",
            scale=1.15 * max(len(x), len(y)) / stride,
            scale_units="width",
            width=0.0035,
            headwidth=4,
            zorder=1.2,
        )
    panel.plot([], [], color=_SHADES(0.8), linewidth=0.9, label=label)


def draw_nullclines(panel: Axes, field: xr.Dataset) -> None:
    """Draw the lines on which one of the two components is zero."""
    for name, color, dashes in NULLCLINES:
        values = np.ma.masked_invalid(field[f"{name}_velocity"].values)
        if not values.min() < 0 < values.max():
            continue
        panel.contour(
            *(field["x"].values, field["y"].values, values),
            levels=[0.0],
            colors=[color],
            linestyles=[dashes],
            linewidths=1.5,
            zorder=1.8,
        )
        statistic = symbol(field.attrs[name]).strip("$")
        label = rf"$\mathrm{{d}}{statistic}/\mathrm{{d}}t = 0$"
        panel.plot([], [], color=color, linestyle=dashes, linewidth=1.5, label=label)

"""Particles on the sphere: their paths as a picture, their motion as an animation."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel
from sgdlimits.results import replacing

_TAIL = 12  # frames that the trace behind a particle lasts
_HOLD = 12  # frames for which the last picture stays
_LIMB = 1.06  # half the width of the picture, in radii
_HUES = [style.PALETTE[c] for c in ("blue", "vermillion", "green", "orange", "purple")]
_Parts = dict[str, Any]  # what is moved from frame to frame, by name


def sphere(
    path: xr.Dataset, time: Number | None = None, azimuth: Number = 30.0, axes: Axes | None = None
) -> Figure:
    """Draw particles on the sphere in three dimensions, seen from afar, with the paths behind them.

    What is on the far side is pale. Colours follow the particles.

    Args:
        path: ``points`` over time, particle and three coordinates.
        time: of the particles, the last one by default; open circles are where they started.
        azimuth: of the one who looks, in degrees.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    points, times = _points(path)
    moment = times[-1] if time is None else float(_checks.array("time", time, ()))
    if not times[0] <= moment <= times[-1]:
        raise _checks.InputError(
            f"time={time!r} is not allowed: time must be from {times[0]:g} to {times[-1]:g}"
        )
    last = int(np.searchsorted(times, moment, side="right")) - 1
    with style.figure_style():
        figure, panel = one_panel(axes, (4.4, 4.6))
        angle = _angle(azimuth)
        parts = _empty(panel, points.shape[1])
        _place(parts, points[: last + 1], angle)
        start = _turned(points[0], angle)
        front = start[:, 2] >= 0
        edges: Any = np.array(parts["colours"])[front]
        panel.scatter(
            start[front, 0], start[front, 1], s=26, facecolors="white", zorder=3,
            edgecolors=edges, linewidths=1.1,
        )  # fmt: skip
        if axes is None:
            style.put_caption(figure, f"{points.shape[1]} particles · t = {times[last]:.4g}")
    return figure


def animate_sphere(
    path: xr.Dataset,
    file: str | os.PathLike[str],
    *,
    turn: Number = 90.0,
    frames_per_second: WholeNumber = 20,
) -> None:
    """Write particles on the sphere as a moving picture, with one frame for each time.

    Args:
        path: ``points`` over time, particle and three coordinates. Times may be spaced in any way:
            where much happens early, in the logarithm.
        file: a ``.gif`` file; missing folders are made, and an old one is replaced once the new one
            is complete.
        turn: by how many degrees the one who looks goes around it.
        frames_per_second: as many.
    """
    target = Path(file)
    if target.suffix.lower() != ".gif":
        raise _checks.InputError(f"file={str(file)!r} is not allowed: file must end in .gif")
    points, times = _points(path)
    speed = _checks.integer("frames_per_second", frames_per_second, least=1)
    angles = 20 + _angle(turn, "turn") * np.linspace(0, 1, len(times))
    beta = path.attrs.get("inverse_temperature")
    head = "" if beta is None else rf"$\beta={beta:g}$, "
    with style.figure_style(), replacing(target) as temporary:
        figure = Figure(figsize=(4.2, 4.6))
        panel = figure.add_axes((0.0, 0.0, 1.0, 0.92))  # fixed: a layout moves with its title
        parts = _empty(panel, points.shape[1])

        def draw(frame: int) -> list[Any]:
            now = min(frame, len(times) - 1)
            first = max(0, now - _TAIL)
            _place(parts, points[first : now + 1], angles[now])
            panel.set_title(rf"{head}$t={times[now]:.3g}$")
            return []

        film = FuncAnimation(figure, draw, frames=len(times) + _HOLD, init_func=list)
        film.save(str(temporary), writer=_Gif(fps=speed), dpi=80)


class _Gif(PillowWriter):
    """GIF, whatever the file is called: that of an unfinished picture has a name of its own."""

    def finish(self) -> None:
        pictures: Any = [frame.convert("RGB") for frame in self._frames]  # type: ignore[attr-defined]
        palette = Image.new("P", (1, 1))
        palette.putpalette(_colours().astype(np.uint8).ravel().tolist())
        # the same colours in all, without dithering: nothing flickers
        first, *others = [
            picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
        ]
        first.save(
            self.outfile, format="GIF", save_all=True, append_images=others,
            duration=int(1000 / self.fps), loop=0,
        )  # fmt: skip


def _colours() -> np.ndarray:
    """At most 256 colours, red, green and blue to 255: greys, and all hues from pale to full."""
    greys = np.repeat(np.linspace(0, 255, 96)[:, None], 3, axis=1)
    depth = np.linspace(0.05, 1, 32)[:, None]
    hues = [255 * depth * np.array(to_rgb(hue)) + 236 * (1 - depth) for hue in _HUES]
    return np.concatenate([greys, *hues])


def _points(path: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    wanted = {"time", "particle", "coordinate"}
    if "points" not in path or set(path.points.dims) != wanted or path.sizes["coordinate"] != 3:
        raise _checks.InputError(
            f"path={list(path.sizes.items())} is not allowed: path must have points over time, "
            "particle and three coordinates"
        )
    points = path.points.transpose("time", "particle", "coordinate").values
    return points, path.time.values


def _angle(value: Number, name: str = "azimuth") -> float:
    return float(_checks.array(name, value, ()))


def _turned(points: np.ndarray, azimuth: float) -> np.ndarray:
    """Coordinates to the right, up and towards the one who looks from 20° above the equator."""
    a, h = np.radians(azimuth), np.radians(20.0)
    right = [-np.sin(a), np.cos(a), 0.0]
    up = [-np.sin(h) * np.cos(a), -np.sin(h) * np.sin(a), np.cos(h)]
    towards = [np.cos(h) * np.cos(a), np.cos(h) * np.sin(a), np.sin(h)]
    return np.asarray(points @ np.array([right, up, towards]).T)


def _empty(panel: Axes, count: int) -> _Parts:
    """The bare sphere, and what is moved on it."""
    panel.set(xlim=(-_LIMB, _LIMB), ylim=(-_LIMB, _LIMB), aspect="equal")
    panel.axis("off")
    for radius, grey in zip(np.linspace(1, 0.1, 10), np.linspace(0.91, 0.985, 10), strict=True):
        offset = 0.3 * (1 - radius)  # a light from above left
        centre = (-offset, offset)
        panel.add_patch(Circle(centre, radius, facecolor=str(grey), edgecolor="none", zorder=0))
    panel.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="0.55", lw=0.9, zorder=0.5))
    colours = [_HUES[i % len(_HUES)] for i in range(count)]
    tails = {
        side: [panel.plot([], [], color=c, lw=1.2, alpha=alpha, zorder=z)[0] for c in colours]
        for side, alpha, z in (("far", 0.15, 1), ("near", 0.6, 2))
    }
    grid = [panel.plot([], [], color="0.6", lw=0.5, alpha=0.5, zorder=0.6)[0] for _ in _CIRCLES]
    far = panel.scatter([], [], s=22, alpha=0.25, linewidths=0, zorder=1.5)
    near = panel.scatter([], [], s=46, linewidths=0.7, edgecolors="white", zorder=4)
    return {"colours": colours, "tails": tails, "grid": grid, "far": far, "near": near}


def _place(parts: _Parts, points: np.ndarray, azimuth: float) -> None:
    """Particles at the last of these times, with the trace of the others, seen from there."""
    turned = _turned(points, azimuth)
    here, colours = turned[-1], np.array(parts["colours"])
    for name, side in (("near", here[:, 2] >= 0), ("far", here[:, 2] < 0)):
        parts[name].set_offsets(here[side, :2])
        parts[name].set_facecolors(list(colours[side]))
        for line, track in zip(parts["tails"][name], np.moveaxis(turned, 1, 0), strict=True):
            line.set_data(*_seen(track, near=name == "near"))
    for line, circle in zip(parts["grid"], _CIRCLES, strict=True):
        line.set_data(*_seen(_turned(circle, azimuth), near=True))


def _seen(track: np.ndarray, *, near: bool) -> np.ndarray:
    """A line where it is on this side, with gaps where it is not."""
    side = (track[:, 2] >= 0) == near
    return np.asarray(np.where(side[:, None], track[:, :2], np.nan).T)


def _circles() -> list[np.ndarray]:
    """Meridians and parallels."""
    s = np.linspace(0, 2 * np.pi, 181)
    zero = np.zeros_like(s)
    meridians = [
        np.stack([np.cos(a) * np.cos(s), np.sin(a) * np.cos(s), np.sin(s)], axis=1)
        for a in np.radians(np.arange(0, 180, 30))
    ]
    parallels = [
        np.stack([np.cos(h) * np.cos(s), np.cos(h) * np.sin(s), np.sin(h) + zero], axis=1)
        for h in np.radians(np.arange(-60, 61, 30))
    ]
    return meridians + parallels


_CIRCLES = _circles()

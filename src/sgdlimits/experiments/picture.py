"""Marks that the pictures of several experiments share, on top of :mod:`sgdlimits.plot`."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from sgdlimits import plot

T = TypeVar("T")
WITHIN = np.sqrt(-2 * np.log(0.05))  # deviations that hold 95 % of a Gaussian law in the plane
COLOURS = [
    plot.style.PALETTE[c] for c in ("blue", "vermillion", "green", "orange", "purple", "sky blue")
]


def coloured(values: Iterable[T]) -> Iterator[tuple[T, str]]:
    """Each value of a parameter with its colour in a panel, in a fixed order.

    >>> [snr for snr, colour in coloured([0.8, 1.2])]
    [0.8, 1.2]
    """
    return zip(values, itertools.cycle(COLOURS), strict=False)


def points_of_each(
    axes: Axes, values: xr.DataArray, dim: str, name: str, *, aside: bool = False
) -> None:
    """Points over time for each value of a parameter, with a colour and a marker of its own.

    Args:
        axes: to draw in.
        values: over the parameter and ``time``.
        dim: of the parameter.
        name: of the parameter, such as ``"λ"``.
        aside: whether its values are written beside the last points, not in the legend.
    """
    for marker, (value, colour) in zip(itertools.cycle("os^vD"), coloured(values[dim].values)):
        part, word = values.sel({dim: value}), f"{name} = {value:g}"
        axes.plot(part.time, part, marker, ms=4, color=colour, label=f"_{word}" if aside else word)
        if aside:
            beyond = 1.03 * float(part.time[-1])
            axes.text(beyond, float(part[-1]), word, color=colour, va="center")
    axes.set_xlabel(plot.style.TIME_LABEL)


def envelope(axes: Axes, x: Any, width: Any, label: str, look: str = "k--", **options: Any) -> None:
    """Two lines at ± the width, with one entry in the legend."""
    width = np.broadcast_to(width, np.shape(x))
    axes.plot(x, np.stack([-width, width], axis=-1), look, label=label, zorder=3, **options)


class RestPoint(NamedTuple):
    """A rest point that is known in closed form, as ``plot.portrait`` wants it."""

    state: Mapping[str, Any]
    stability: str  # "stable", "marginal" or "unstable"
    representatives: Sequence[Mapping[str, Any]] = ()
    orbit: Sequence[Mapping[str, Any]] = ()


def rest_point(axes: Axes, x: float, y: float, *, stable: bool) -> None:
    """Mark a rest point: full if it is stable, open if not."""
    fill, label = ("k", "stable rest point") if stable else ("w", "unstable rest point")
    axes.plot(x, y, "o", color="k", markerfacecolor=fill, zorder=5, label=label)


def region(
    covariance: np.ndarray, centre: Any = (0.0, 0.0), deviations: float = WITHIN
) -> np.ndarray:
    """The ellipse of so many standard deviations of a law in the plane, as two rows x and y.

    By default it holds 95 % of a Gaussian law. The covariance may be singular: the ellipse is then
    a line.

    >>> region(np.eye(2)).shape, region(np.diag([1.0, 0.0]), deviations=2.0).max(axis=1)
    ((2, 101), array([2., 0.]))
    """
    angle = np.linspace(0, 2 * np.pi, 101)
    circle = deviations * np.stack([np.cos(angle), np.sin(angle)])
    variances, axes = np.linalg.eigh(covariance)
    return np.asarray(centre)[:, None] + axes * np.sqrt(np.maximum(variances, 0)) @ circle


def cloud(
    axes: Axes,
    points: np.ndarray,
    covariance: np.ndarray,
    labels: Sequence[str],
    deviations: float = WITHIN,
) -> None:
    """Points in the plane, and the region of a law about zero that they should have.

    Args:
        axes: to draw in.
        points: two rows x and y.
        covariance: of the law.
        labels: of points and region.
        deviations: as in :func:`region`.
    """
    axes.plot(*points, ".", color=plot.style.SIMULATION, ms=5, alpha=0.4, label=labels[0])
    axes.plot(*region(covariance, deviations=deviations), "k", label=labels[1])

"""Marks that the pictures of several experiments share, on top of :mod:`sgdlimits.plot`."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
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

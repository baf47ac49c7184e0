"""Marks that the pictures of several experiments share, on top of :mod:`sgdlimits.plot`."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from matplotlib.axes import Axes

from sgdlimits import plot

T = TypeVar("T")
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


def rest_point(axes: Axes, x: float, y: float, *, stable: bool) -> None:
    """Mark a rest point: full if it is stable, open if not."""
    fill, label = ("k", "stable rest point") if stable else ("w", "unstable rest point")
    axes.plot(x, y, "o", color="k", markerfacecolor=fill, zorder=5, label=label)


def region(covariance: np.ndarray, centre: Any = (0.0, 0.0)) -> np.ndarray:
    """The ellipse that holds 95 % of a Gaussian law in the plane, as two rows x and y.

    >>> region(np.eye(2)).shape
    (2, 101)
    """
    angle = np.linspace(0, 2 * np.pi, 101)
    circle = np.sqrt(-2 * np.log(0.05)) * np.stack([np.cos(angle), np.sin(angle)])
    return np.asarray(centre)[:, None] + np.linalg.cholesky(covariance) @ circle

"""Rest points in a plane: which lie in it, and a mark for each by its stability."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

STABILITIES: dict[str, Any] = {
    "stable": "full",
    "marginal": "left",
    "unstable": "none",
}

_CLOSE = 1e-3  # other statistics closer than this, relative to 1 + their size, are the same


@runtime_checkable
class RestPoint(Protocol):
    """What a picture asks of a rest point; ``FixedPoint`` of the effective dynamics has it."""

    @property
    def state(self) -> Mapping[str, Any]:
        """Values of the statistics by name."""

    @property
    def stability(self) -> str:
        """A key of ``STABILITIES``."""

    @property
    def representatives(self) -> Sequence[Mapping[str, Any]]:
        """Other states of the same connected set of rest points."""

    @property
    def orbit(self) -> Sequence[Mapping[str, Any]]:
        """States of all rest points, or sets of them, that are like this one by symmetry."""


class Mark(NamedTuple):
    """One rest point, or one of a connected set of them, in the plane of two statistics."""

    x: float
    y: float
    state: Mapping[str, Any]
    stability: str


def lies_in(field: xr.Dataset, mark: Mark) -> bool:
    """Whether the field was taken through this state, as far as its grid can tell.

    The statistics of the state must be among those of the grid points around it: two on each side,
    so that they say how the statistics go on towards an edge beyond which there is no state.
    """
    near = []
    for name, value in (("x", mark.x), ("y", mark.y)):
        grid = field[name].values
        spacing = np.max(np.diff(grid))
        near.append(np.flatnonzero(np.abs(grid - value) <= 2.001 * spacing))
    around = field.isel(x=near[0], y=near[1]).stack(point=("y", "x")).transpose("point", ...)
    kept = around.isel(point=np.isfinite(around["x_velocity"].values))
    if kept.sizes["point"] == 0:
        return False
    for name, value in mark.state.items():
        low, high = kept[name].values.min(axis=0), kept[name].values.max(axis=0)
        margin = (high - low) / 2 + _CLOSE * (1 + np.abs(value))
        if np.any(value < low - margin) or np.any(value > high + margin):
            return False
    return True


def draw_marks(panel: Axes, marks: Sequence[Mark]) -> None:
    """Full dots are stable, open ones unstable, half ones marginal."""
    for stability, fill in STABILITIES.items():
        chosen = [(mark.x, mark.y) for mark in marks if mark.stability == stability]
        if not chosen:
            continue
        panel.plot(
            *np.transpose(chosen),
            linestyle="none",
            marker="o",
            markersize=7.5,
            fillstyle=fill if fill != "none" else "full",
            markerfacecolor="white" if fill == "none" else "black",
            markerfacecoloralt="white",
            markeredgecolor="black",
            markeredgewidth=1.3,
            clip_on=False,
            label=f"rest point, {stability}",
            zorder=6,
        )

"""Small things that the pictures of experiments share."""

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def panels(
    rows: int, columns: int, *, width: float = 4.8, height: float = 3.2, **options: Any
) -> tuple[Figure, np.ndarray]:
    """A figure with panels of ``width`` x ``height`` inches, as an array of shape (rows, columns).

    Further options, such as ``sharey=True``, go to ``Figure.subplots``.
    """
    figure = Figure(figsize=(columns * width, rows * height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def rest_point(axes: Axes, x: float, y: float, *, stable: bool) -> None:
    """Mark a rest point: full if it is stable, open if not."""
    fill, label = ("k", "stable rest point") if stable else ("w", "unstable rest point")
    axes.plot(x, y, "o", color="k", markerfacecolor=fill, zorder=5, label=label)


def legend(figure: Figure, axes: np.ndarray, columns: int = 4) -> None:
    """One legend below all panels, in place of their own; each label once."""
    found: dict[str, Artist] = {}
    for panel in axes.ravel():
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
        if panel.get_legend() is not None:
            panel.get_legend().remove()
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)

"""Where a picture is drawn: in axes of the caller, or in a new figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks


def one_panel(axes: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The given axes and their figure, or the only panel of a new figure of that size in inches."""
    if axes is None:
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots()
    own: Any = axes.get_figure(root=True)
    return own, axes


def given_panels(
    axes: Axes | Sequence[Axes] | np.ndarray, count: int, what: str
) -> tuple[Figure, list[Axes]]:
    """The given axes, one for each of ``count`` things, and their figure."""
    given: list[Any] = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(given) != count:
        raise _checks.InputError(
            f"axes has {len(given)} entries, which is not allowed: there are {count} {what}"
        )
    return given[0].get_figure(root=True), given

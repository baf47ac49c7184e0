"""Figures with several panels: an empty grid, one panel for each value of a dim, one legend."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Flag, WholeNumber, Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import given_panels


def panels(
    rows: WholeNumber,
    columns: WholeNumber,
    *,
    width: float = 4.8,
    height: float = 3.2,
    xlabel: Word = "",
    ylabel: Word = "",
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its panels, to be filled by functions that take ``axes``.

    Args:
        rows: of panels.
        columns: of panels.
        width: of one panel, in inches.
        height: of one panel, in inches.
        xlabel: of the lowest panels.
        ylabel: of the leftmost panels.
        options: for ``Figure.subplots``, such as ``sharey=True``.

    Returns:
        The figure, and the panels as an array of shape (rows, columns).

    >>> figure, axes = panels(1, 2, ylabel="overlap", sharey=True)
    >>> axes.shape, float(figure.get_figwidth()), [panel.get_ylabel() for panel in axes[0]]
    ((1, 2), 9.6, ['overlap', ''])
    """
    shape = tuple(
        _checks.integer(name, value, least=1)
        for name, value in (("rows", rows), ("columns", columns))
    )
    with style.figure_style():
        figure = Figure(figsize=(shape[1] * width, shape[0] * height), layout="constrained")
        grid = figure.subplots(*shape, squeeze=False, **options)
        for panel in grid[-1]:
            panel.set_xlabel(xlabel)
        for panel in grid[:, 0]:
            panel.set_ylabel(ylabel)
        return figure, grid


def legend_below(figure: Figure, columns: WholeNumber = 4) -> Figure:
    """Put one legend below all panels of a figure, in place of all others, with each label once.

    Args:
        figure: whose panels have been drawn.
        columns: of the legend, at most: there are fewer where it would be wider than the figure.

    Returns:
        The same figure.

    >>> figure, axes = panels(1, 2)
    >>> lines = [panel.plot([0, 1], label="SGD") for panel in axes[0]]
    >>> figure = legend_below(figure)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['SGD']
    """
    handles: dict[str, Artist] = {}
    for old in figure.legends[:]:
        old.remove()
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
        own = panel.get_legend()
        if own is not None:
            own.remove()
    count = min(_checks.integer("columns", columns, least=1), max(len(handles), 1))
    entries = list(handles.values()), list(handles)
    with style.figure_style():
        for ncols in range(count, 0, -1):
            below = figure.legend(*entries, loc="outside lower center", ncols=ncols)
            if ncols == 1 or below.get_window_extent().width < figure.bbox.width:
                break
            below.remove()
    return figure


def facets(
    data: xr.Dataset,
    dim: Word,
    draw: Callable[..., Any],
    *others: xr.Dataset,
    title: Word | None = None,
    columns: WholeNumber | None = None,
    width: float = 4.8,
    height: float = 3.2,
    share: Flag = True,
    legend: WholeNumber = 4,
    axes: Sequence[Axes] | np.ndarray | None = None,
) -> Figure:
    """Draw one panel for each value of a dim of a dataset, and one legend below all of them.

    Args:
        data: such as a result of :func:`sgdlimits.results.over`.
        dim: its values are those of the panels.
        draw: called with a panel and the part of the data that belongs to it, in which the value
            is a scalar coordinate; and with that part of each of the others.
        others: further datasets with this dim, such as solutions of the limit beside runs.
        title: of each panel, a format such as ``"λ = {:g}"`` for the value; "dim = value" by
            default. It is written first: ``draw`` may set another.
        columns: of panels; by default at most three, two for four values.
        width: of one panel, in inches.
        height: of one panel, in inches.
        share: whether all panels have the same axes, labelled at the left and at the bottom only.
        legend: its number of columns, at most.
        axes: draw in these panels, a row or rows of them, in place of a new figure; those left over
            are removed. Scales are then shared as they are, and the caller makes the legend.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.

    >>> data = xr.Dataset({"m": (("snr", "time"), [[0, 1], [0, 2]])}, {"snr": [0.8, math.inf]})
    >>> figure = facets(data, "snr", lambda panel, part: panel.plot(part.m), title="λ = {:g}")
    >>> [panel.get_title() for panel in figure.axes]
    ['λ = 0.8', 'λ = ∞']
    """
    if dim not in data.dims:
        raise _checks.InputError(
            f"dim={dim!r} is not allowed: the dims of the data are {', '.join(map(str, data.dims))}"
        )
    for other in others:
        if dim not in other.dims or not data[dim].variable.equals(other[dim].variable):
            raise _checks.InputError(
                f"others without the same values of {dim} as the data are not allowed"
            )
    parts = [
        [data.isel({dim: number}), *(other.isel({dim: number}) for other in others)]
        for number in range(data.sizes[dim])
    ]
    count = len(parts)
    with style.figure_style():
        if axes is None:
            across = _across(count, columns)
            same = _checks.flag("share", share)
            size: Any = {"width": width, "height": height, "sharex": same, "sharey": same}
            figure, grid = panels(-(-count // across), across, **size)
        else:
            grid, same = np.atleast_2d(np.asarray(axes, dtype=object)), False
            across = grid.shape[1]
            figure, _ = given_panels(grid.ravel()[:count], count, f"values of {dim}")
        for empty in grid.ravel()[count:]:
            empty.remove()
        for panel, (part, *rest) in zip(grid.ravel(), parts, strict=False):
            panel.set_title(_title(part[dim].item() if dim in part.coords else "", dim, title))
            draw(panel, part, *rest)
        _label_outer(list(grid.ravel())[:count], across, ticks=same)
        if axes is None:
            if "task" in data.attrs:
                style.put_caption(figure, style.caption(data))
            legend_below(figure, legend)
    return figure


def _across(count: int, columns: WholeNumber | None) -> int:
    if columns is not None:
        return min(_checks.integer("columns", columns, least=1), count)
    return {1: 1, 2: 2, 4: 2}.get(count, 3)


def _title(value: Any, dim: str, form: str | None) -> str:
    if form is None:
        form = f"{dim} = {{:g}}" if isinstance(value, int | float) else "{}"
    if isinstance(value, float) and math.isinf(value):
        return form.format(value).replace("inf", "∞")
    return form.format(value)


def _label_outer(drawn: list[Axes], across: int, *, ticks: bool) -> None:
    """Labels, and those of ticks if they are shared, only at the left and below."""
    for number, panel in enumerate(drawn):
        lowest, first = number + across >= len(drawn), number % across == 0
        if ticks:
            panel.tick_params(labelbottom=lowest, labelleft=first)
        if not lowest:
            panel.set_xlabel("")
        if not first:
            panel.set_ylabel("")

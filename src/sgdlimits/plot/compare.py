"""Simulation against limit: one panel per statistic, over time."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._names import explained
from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._along import along, label_of
from sgdlimits.plot._axes import given_panels
from sgdlimits.plot._series import LIMIT, PATHS, SIMULATION, Series
from sgdlimits.plot.panels import legend_below
from sgdlimits.plot.symbols import symbol
from sgdlimits.results import select
from sgdlimits.results import statistics as names_of

_PANELS = 6


@explained
def compare(
    runs: xr.Dataset | Mapping[str, xr.Dataset],
    path: xr.Dataset | None = None,
    statistics: Word | Sequence[Word] | None = None,
    axes: Axes | Sequence[Axes] | np.ndarray | None = None,
    *,
    x: Word = "time",
) -> Figure:
    """Draw the mean over runs of statistics over time, with its errors, and the limit.

    Points are the mean over the runs that did not diverge, the light band is one standard deviation
    over runs, the dark one two standard errors of the mean: the limit should cross the dark band up
    to a gap that closes as dim grows.

    Args:
        runs: a simulation; or several by name, ``{"chain": a, "direct": b}``, which have the names
            in the legend, and a colour and a shape each.
        path: the solution of the limit, drawn as a line; or paths with a ``run`` dim, drawn as
            their mean and one standard deviation; or a second simulation, drawn as the first is.
        statistics: flat names such as ``"M[0,mu]"``, one panel each. By default all of them if
            they are at most 6, otherwise the first entries of each of v, M and R.
        axes: draw in these axes, one per statistic, in place of a new figure.
        x: what is on the horizontal axis, "time" or "samples".

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    series = _series(runs, path, x)
    chosen = _chosen(series[0].dataset, statistics)
    with style.figure_style():
        figure, panels = _panels(len(chosen), axes)
        for name, panel in zip(chosen, panels, strict=True):
            for number, one in enumerate(series):
                of = "" if number == 0 else f" (for {one.told})"
                one.draw(panel, name, f"statistics{of}")
            panel.margins(x=0.02)
        columns = len(chosen) if axes is not None else _columns(len(chosen))
        _label(panels, chosen, columns, label_of(x))
        if axes is not None:
            panels[0].legend()
        else:
            figure.align_ylabels()
            style.put_caption(
                figure,
                style.caption(_shared(series)),
            )
            legend_below(figure, 1 if len(chosen) == 1 else 2)
    return figure


def _series(
    runs: xr.Dataset | Mapping[str, xr.Dataset], path: xr.Dataset | None, x: Word
) -> list[Series]:
    """All that is drawn, simulations first."""
    named = _named(runs)
    if path is not None and path.attrs.get("kind") == SIMULATION:
        if not isinstance(runs, xr.Dataset):
            raise _checks.InputError(
                "path is a simulation, which is not allowed beside named ones: put it among them"
            )
        words = _difference(runs, path)
        named = {f"SGD, {word}": part for word, part in zip(words, (runs, path), strict=True)}
        path = None
    lines = [(name, part, repr(name)) for name, part in named.items() if _is_theory(part)]
    simulations = [(name, part) for name, part in named.items() if not _is_theory(part)]
    if path is not None:
        lines.append((_theory(path), path, "path"))
    clock = _clock([part for _, part in simulations], x) if lines else None
    found = [
        Series(part, name, SIMULATION, place=i, after=len(simulations) - 1 - i, x=x)
        for i, (name, part) in enumerate(simulations)
    ]
    for name, part, told in lines:
        kind = PATHS if "run" in part.dims else LIMIT
        place = sum(one.kind == kind for one in found)
        found.append(Series(part, name, kind, place=place, x=x, clock=clock, told=told))
    return found


def _named(runs: xr.Dataset | Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Results by what the legend calls them."""
    if isinstance(runs, xr.Dataset):
        return {_theory(runs) if _is_theory(runs) else "SGD": runs}
    if not isinstance(runs, Mapping) or not runs:
        raise _checks.InputError(
            f"runs={type(runs).__name__} is not allowed: runs must be a Dataset, or one or more of "
            "them in a dict by name"
        )
    named: dict[str, xr.Dataset] = {}
    for name, part in runs.items():
        if not isinstance(part, xr.Dataset):
            raise _checks.InputError(
                f"runs[{name!r}] of type {type(part).__name__} is not allowed: it must be a Dataset"
            )
        named[str(name)] = part
    return named


def _theory(dataset: xr.Dataset) -> str:
    return "limit paths" if "run" in dataset.dims else "limit, dim → ∞"


def _is_theory(dataset: xr.Dataset) -> bool:
    return dataset.attrs.get("kind") in ("limit", "paths")


def _difference(first: xr.Dataset, second: xr.Dataset) -> tuple[str, str]:
    """What tells two simulations apart, in one word each."""
    for name in ("method", "dim", "step", "batch", "momentum", "seed"):
        values = [part.attrs.get(name) for part in (first, second)]
        if values[0] != values[1] and None not in values:
            one, other = (str(value) if name == "method" else f"{name} {value}" for value in values)
            return one, other
    return "first", "second"


def _clock(simulations: Sequence[xr.Dataset], x: Word) -> xr.Dataset | None:
    """The simulation whose samples are those of the limit, if all have the same."""
    if x == "time" or not simulations:
        return None
    ends = [(float(along(part, x)[-1]), float(part["time"][-1])) for part in simulations]
    rates = [samples / time if time > 0 else np.nan for samples, time in ends]
    if not np.allclose(rates, rates[0], rtol=0.01, equal_nan=True):
        raise _checks.InputError(
            "x='samples' is not allowed for a limit beside simulations with different numbers of "
            "samples per time: it is not known which are its own"
        )
    return simulations[0]


def _shared(series: Sequence[Series]) -> xr.Dataset:
    """A result to make a caption of: what all simulations have in common, or else all limits."""
    simulations = [one.dataset for one in series if one.kind == SIMULATION]
    parts = simulations or [one.dataset for one in series]
    if len(parts) == 1:
        return parts[0]
    first = parts[0].attrs
    same = {k: x for k, x in first.items() if all(part.attrs.get(k) == x for part in parts)}
    return xr.Dataset(attrs=same)


def _chosen(runs: xr.Dataset, wanted: Word | Sequence[Word] | None) -> list[str]:
    if isinstance(wanted, str):
        wanted = [wanted]
    if wanted is not None:
        if not isinstance(wanted, Sequence) or len(wanted) == 0:
            raise _checks.InputError(
                f"statistics={wanted!r} is not allowed: it must name at least one"
            )
        for name in wanted:
            select(runs, name, argument="statistics")
        return list(wanted)
    available = names_of(runs)
    if not available:
        raise _checks.InputError(
            f"runs={list(runs.data_vars)} is not allowed: it has no statistic to draw"
        )
    if len(available) <= _PANELS:
        return available
    families: dict[str, list[str]] = {}
    for name in available:
        families.setdefault(name.split("[")[0], []).append(name)
    share = max(_PANELS // len(families), 1)
    return [name for family in families.values() for name in family[:share]][:_PANELS]


def _columns(count: int) -> int:
    return {1: 1, 2: 2, 4: 2}.get(count, 3)


def _panels(
    count: int, axes: Axes | Sequence[Axes] | np.ndarray | None
) -> tuple[Figure, list[Axes]]:
    if axes is not None:
        return given_panels(axes, count, "statistics")
    columns = _columns(count)
    rows = -(-count // columns)
    size = (4.4, 4.2) if count == 1 else (3.2 * columns, 2.1 * rows + 1.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False).ravel()
    for empty in grid[count:]:
        empty.remove()
    return figure, list(grid[:count])


def _label(panels: list[Axes], names: list[str], columns: int, along: str) -> None:
    """Name both axes; the horizontal one only on the lowest panel of each column."""
    for number, (panel, name) in enumerate(zip(panels, names, strict=True)):
        panel.set_ylabel(symbol(name))
        if number + columns >= len(panels):
            panel.set_xlabel(along, fontsize="medium")
            panel.tick_params(labelbottom=True)  # the panel below may be one that was removed

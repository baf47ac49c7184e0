"""Rest points over a parameter: where they are, whether they attract, where they meet."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Word
from sgdlimits.plot import style
from sgdlimits.plot._axes import one_panel
from sgdlimits.plot.symbols import symbol
from sgdlimits.results import select

_WIDE = 50.0  # a range whose ends have a larger ratio than this has a logarithmic axis
# what attracts is drawn on top
_LINES: dict[str, dict[str, Any]] = {
    "stable": {"color": style.LIMIT, "linewidth": 2.2, "zorder": 3.2},
    "marginal": {
        "color": style.PALETTE["green"],
        "linewidth": 1.8,
        "linestyle": "-.",
        "zorder": 3.1,
    },
    "unstable": {
        "color": style.PALETTE["vermillion"],
        "linewidth": 1.8,
        "linestyle": "--",
        "zorder": 3,
    },
}
_MARKERS = {"fold": "o", "branch": "D", "hopf": "^", "end": "s"}
_WORDS = {"fold": "fold", "branch": "branches cross", "hopf": "Hopf point", "end": "end"}


class _Piece(NamedTuple):
    stability: str
    x: np.ndarray
    y: np.ndarray


def bifurcation(diagram: xr.Dataset, statistic: Word, axes: Axes | None = None) -> Figure:
    """Draw one statistic of all rest points over the parameter that moves.

    Lines are solid where rest points attract, dashed where something grows, dash-dotted where to
    first order nothing grows but something is neutral, as on a ring. Folds, crossings of branches,
    Hopf points and ends are marked.

    Args:
        diagram: made by :func:`sgdlimits.bifurcations`; choose branches by ``diagram.isel(branch=
            ...)``, add what you want to draw by ``diagram.assign(...)``.
        statistic: flat name such as ``"m"`` or ``"M[0,mu]"``.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    parameter = str(diagram.attrs.get("parameter"))
    if parameter not in diagram.coords:
        raise _checks.InputError(
            f"diagram of kind {diagram.attrs.get('kind')!r} is not allowed: "
            "diagram must be made by bifurcations"
        )
    y = select(diagram, statistic, argument="statistic").transpose("branch", "point").values
    x = diagram[parameter].transpose("branch", "point").values
    with style.figure_style():
        figure, panel = one_panel(axes, (5.0, 4.6))
        _draw_lines(panel, diagram, x, y)
        _draw_special(panel, diagram, x, y)
        panel.set_xlabel(parameter.replace("_", " "), fontsize="medium")
        panel.set_ylabel(symbol(statistic))
        low, high = diagram.attrs["low"], diagram.attrs["high"]
        if 0 < _WIDE * low < high:
            panel.set_xscale("log")
        panel.set_xlim(low, high)
        if axes is None:
            style.put_caption(figure, style.caption(diagram))
            figure.legend(*_legend(panel), loc="outside lower center", ncols=3)
        else:
            panel.legend(*_legend(panel))
    return figure


def _draw_lines(panel: Axes, diagram: xr.Dataset, x: np.ndarray, y: np.ndarray) -> None:
    stability = diagram["stability"].transpose("branch", "point").values
    special = diagram["special"].transpose("branch", "point").values
    drawn: set[str] = set()
    for row in range(len(x)):
        for piece in _pieces(x[row], y[row], stability[row], special[row]):
            label = None if piece.stability in drawn else piece.stability
            drawn.add(piece.stability)
            panel.plot(piece.x, piece.y, label=label, **_LINES[piece.stability])


def _pieces(
    x: np.ndarray, y: np.ndarray, stability: np.ndarray, special: np.ndarray
) -> list[_Piece]:
    """Cut a branch where its stability changes; what is special belongs to both sides."""
    count = int(np.sum(np.isfinite(x)))
    # at a special point itself something is neutral: the other end of a segment speaks for it
    between = [
        str(stability[i + 1] if special[i] and not special[i + 1] else stability[i])
        for i in range(count - 1)
    ]
    pieces, start = [], 0
    for i in range(1, count):
        if i == count - 1 or between[i] != between[start]:
            pieces.append(_Piece(between[start], x[start : i + 1], y[start : i + 1]))
            start = i
    return pieces


def _draw_special(panel: Axes, diagram: xr.Dataset, x: np.ndarray, y: np.ndarray) -> None:
    special = diagram["special"].transpose("branch", "point").values
    for kind, marker in _MARKERS.items():
        marked = special == kind
        if not np.any(marked):
            continue
        spread = np.ptp(x[marked]) / np.max(np.abs(x[marked]))
        panel.plot(
            x[marked],
            y[marked],
            linestyle="none",
            marker=marker,
            markersize=5 if kind == "end" else 6.5,
            markerfacecolor="white",
            markeredgecolor="black",
            markeredgewidth=1.5,
            label=_WORDS[kind] + (f" at {np.mean(x[marked]):.4g}" if spread < 1e-6 else ""),
            zorder=4 if kind == "end" else 4.1,  # branches may end where others cross
        )


def _legend(panel: Axes) -> tuple[list[Any], list[str]]:
    """Lines in the order of the table above, then markers, then what the caller drew."""
    order = [*_LINES, *_WORDS.values()]
    entries = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))

    def rank(label: str) -> int:
        starts = (n for n, word in enumerate(order) if label.startswith(word))
        return next(starts, len(order))

    labels = sorted(entries, key=rank)
    return [entries[label] for label in labels], labels

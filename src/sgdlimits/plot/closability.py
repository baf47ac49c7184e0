"""Closed or not: the unexplained part of the drift against the dimension."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Estimate
from sgdlimits.plot import style
from sgdlimits.plot._axes import given_panels
from sgdlimits.plot.symbols import symbol

SEEN = 2.0  # standard errors above zero from which on a remainder is drawn as a point
_MARKERS = "osD^vP"


@runtime_checkable
class Remainders(Protocol):
    """What is drawn of a result of :func:`sgdlimits.closability`."""

    @property
    def names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def dims(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def unexplained(self) -> Estimate: ...  # noqa: D102
    @property
    def mean_square(self) -> np.ndarray: ...  # noqa: D102
    @property
    def exponent(self) -> Estimate: ...  # noqa: D102
    @property
    def open_statistics(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def undecided_statistics(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def threshold(self) -> float: ...  # noqa: D102


def closability(result: Any, axes: Axes | Sequence[Axes] | np.ndarray | None = None) -> Figure:
    """Draw how much of the drift of each statistic is not a function of the statistics.

    On log-log paper: the variance of the drift over parameters with the same statistics, divided by
    its mean square, with two standard errors. Where it is not seen, that is within two standard
    errors of zero, an arrow down from its upper limit, value + 2 standard errors. In a closed set
    every curve falls or is not seen; the legend has the exponents in dim of those that are. The
    dotted line is the threshold: what the test must be able to see before it says 'closed'.

    Args:
        result: a result of :func:`sgdlimits.closability`, or a dict of them by title, one panel
            each.
        axes: draw in these axes, one per set, in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    sets = _sets(result)
    with style.figure_style():
        figure, panels = _panels(len(sets), axes)
        for (title, one), panel in zip(sets.items(), panels, strict=True):
            for number in range(len(one.names)):
                _draw(panel, one, number)
            panel.axhline(one.threshold, color="0.5", linestyle=":", linewidth=1.0, zorder=0)
            verdict = _verdict(one)
            panel.set_title(f"{title}\n{verdict}" if title else verdict, fontsize="medium")
            _ticks(panel, one.dims)
            panel.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16))
        panels[0].set_ylabel(
            "unexplained part of the drift\n(variance / mean square, ± 2 s.e.)", fontsize="medium"
        )
    return figure


def _verdict(result: Remainders) -> str:
    for word, names in (
        ("not closed", result.open_statistics),
        ("undecided", result.undecided_statistics),
    ):
        if names:
            return f"{word}: {', '.join(_word(name) for name in names)}"
    return "closed"


def _sets(result: Any) -> dict[str, Remainders]:
    sets = dict(result) if isinstance(result, Mapping) else {"": result}
    if not sets or not all(isinstance(part, Remainders) for part in sets.values()):
        raise _checks.InputError(
            f"result={result!r} is not allowed: result must be one of sgdlimits.closability, or a "
            "dict of them"
        )
    return sets


def _panels(
    count: int, axes: Axes | Sequence[Axes] | np.ndarray | None
) -> tuple[Figure, list[Axes]]:
    if axes is not None:
        return given_panels(axes, count, "sets")
    figure = Figure(figsize=(3.1 * count + 1.0, 4.3), layout="constrained")
    return figure, list(figure.subplots(1, count, sharey=True, squeeze=False)[0])


def _draw(panel: Axes, result: Remainders, number: int) -> None:
    shift = 1.05 ** (number - (len(result.names) - 1) / 2)  # side by side, not one upon another
    dims = np.asarray(result.dims, dtype=float) * shift
    scale = np.asarray(result.mean_square)[:, number]
    value, error = (np.asarray(part)[:, number] / scale for part in result.unexplained)
    seen = value > SEEN * error
    slope, slope_error = (float(np.asarray(part)[number]) for part in result.exponent)
    label = _word(result.names[number])
    if seen.sum() > 1 and np.isfinite(slope):
        label += f" $\\propto$ dim$^{{{slope:.2f} \\pm {slope_error:.2f}}}$"
    elif not np.any(seen):
        label += ", not seen (↓ upper limit)"
    look: Any = {"color": f"C{number}", "marker": _MARKERS[number % len(_MARKERS)], "markersize": 5}
    panel.errorbar(dims[seen], value[seen], 2 * error[seen], capsize=3, label=label, **look)
    limit = np.maximum(value, 0.0)[~seen] + SEEN * error[~seen]
    look |= {"marker": "_", "alpha": 0.5, "linestyle": "none", "label": "_limit"}
    panel.errorbar(dims[~seen], limit, limit / 2, uplims=True, **look)


def _word(name: str) -> str:
    """The symbol of a statistic, or its name if it is a word."""
    drawn = symbol(name)
    return name if drawn.startswith("$\\mathrm{") and "_" not in drawn else drawn


def _ticks(panel: Axes, dims: tuple[int, ...]) -> None:
    panel.set(xscale="log", yscale="log")
    panel.minorticks_off()
    panel.set_xticks(list(dims), [str(dim) for dim in dims])
    panel.set_xlabel("dim", fontsize="medium")
    panel.margins(x=0.12)

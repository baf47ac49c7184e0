"""What the experiments on alignment share: weights that align with outlier eigenspaces.

The alignment of weights x with a space E is |P x| / |x|, P the orthogonal projection onto E. Here E
is spanned by the leading eigenvectors of a diagonal block of the Hessian or the gradient matrix,
as many as there should be outliers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, setting
from sgdlimits.experiments.catalogue._spectra import MATRICES, Tracked

ALIGNED = 0.95
NEAR_ONE = 100.0  # a precision from which on theory says more than ALIGNED


class Alignment(Tracked):
    """Both matrices at several noise levels, at few times while SGD runs."""

    precisions: tuple[float, ...] = setting((10.0, 100.0), "values of λ", above=0)
    points: int = 4


def prediction(task: Any, tracked: xr.Dataset, ratio: float, always: Sequence[str]) -> xr.DataArray:
    """The effective alignment at the states of a run: of all blocks at the end.

    Args:
        task: that was tracked.
        tracked: a result of ``sgdlimits.spectra.track``.
        ratio: samples per dimension.
        always: blocks that are predicted at the other times too. All others are NaN there.
    """
    predicted = xr.full_like(tracked.alignment, np.nan)
    for time in tracked.time.values:
        state = sl.results.state(tracked, time=time)
        for matrix in MATRICES:
            for block in tracked.block.values if time == tracked.time[-1] else always:
                spectrum = sl.spectra.effective(task, state, ratio, matrix, str(block))
                predicted.loc[time, matrix, block] = spectrum.alignment
    return predicted


def check_alignment(title: str, part: xr.Dataset, sample: str, bias: float) -> list[Check]:
    """Measured alignment less its prediction; above 0.95 each, where theory says so.

    Args:
        title: of the part.
        part: ``alignment``, ``effective`` and the precision.
        sample: dim whose entries are independent; the mean is taken over all others.
        bias: known bound for the gap between the prediction and the mean in finite dimension.
    """
    gaps = part.alignment - part.effective
    ranges = [1 - float(x) for x in (part.alignment.max(), part.alignment.min())]
    note = "1 less {:.2g} to {:.2g}, ".format(*ranges)
    note += f"predicted {1 - float(part.effective.mean()):.2g}; one sample for each {sample}"
    means = gaps.mean([dim for dim in gaps.dims if dim != sample])
    name = f"{title}: alignment less its prediction"
    results = [checks.mean(name, means, 0.0, bias=bias, note=note)]
    if part.precision >= NEAR_ONE:
        above = (part.alignment > ALIGNED).sum()
        name = f"{title}: alignments above {ALIGNED}"
        results.append(checks.exact(name, above, part.alignment.size))
    return results


def parts(data: Data) -> Iterator[tuple[str, xr.Dataset]]:
    """Each kind of data, precision and matrix: its title, and what belongs to it."""
    for kind, tracked in data.items():
        for precision in tracked.precision.values:
            for matrix, word in MATRICES.items():
                title = f"{word}, {kind} data, λ = {precision:g}"
                yield title, tracked.sel(precision=precision, matrix=matrix)


def draw_parts(data: Data, draw: Callable[[Axes, xr.Dataset], Any], label: str) -> Figure:
    """A panel for each part, both matrices side by side; ``label`` is that of the vertical axis."""
    titled = list(parts(data))
    look: Any = {"xlabel": sl.plot.style.TIME_LABEL, "ylabel": label, "height": 2.9}
    figure, panels = sl.plot.panels(len(titled) // 2, 2, sharex=True, sharey=True, **look)
    for panel, (title, part) in zip(panels.ravel(), titled, strict=True):
        draw(panel, part)
        panel.set(title=title, ylim=(0, 1.03))
    return sl.plot.legend_below(figure, 3)


def draw_measured(
    panel: Axes, alignment: xr.DataArray, label: str, color: str = sl.plot.style.SIMULATION
) -> None:
    """Alignment of one block, or of several, over time."""
    lines = alignment.transpose("time", ...)
    panel.plot(lines.time, lines, "o-", ms=3, lw=0.9, color=color, alpha=0.6, label=label)


def draw_predicted(panel: Axes, effective: xr.DataArray, label: str) -> None:
    """Predicted alignment of one block, or of several, over time."""
    marks = effective.transpose("time", ...)
    look: Any = {"ms": 6, "fillstyle": "none", "color": sl.plot.style.LIMIT}
    panel.plot(marks.time, marks, "D", label=label, **look)

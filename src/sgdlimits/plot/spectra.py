"""Pictures of spectra: histograms with their prediction, eigenvalues and alignment over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits._types import Numbers, Numeric, WholeNumber, Word
from sgdlimits.plot import style
from sgdlimits.plot._along import along, label_of
from sgdlimits.plot._axes import given_panels, one_panel

_MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}


def spectrum(
    eigenvalues: Any, predicted: Any = None, bins: WholeNumber = 60, axes: Axes | None = None
) -> Figure:
    """Draw a histogram of eigenvalues, with the effective density and outliers on top.

    Args:
        eigenvalues: of one block, or of several draws of it.
        predicted: a result of :func:`sgdlimits.spectra.effective`, or None.
        bins: number of bins of the histogram.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    values = _checks.array("eigenvalues", eigenvalues, None).ravel()
    count = _checks.integer("bins", bins, least=1)
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        heights, *_ = panel.hist(
            values, count, density=True, color=style.SIMULATION, alpha=0.45, label="eigenvalues"
        )
        top = float(np.max(heights))
        if predicted is not None and len(predicted.edges):
            low, high = predicted.edges[0], predicted.edges[-1]
            x = low + (high - low) * (1 - np.cos(np.linspace(0, np.pi, 400))) / 2
            density = np.asarray(predicted.density(x))
            panel.plot(x, density, color=style.LIMIT, label="effective density")
            top = min(1.3 * top, max(top, float(np.max(density))))
        outliers = [] if predicted is None else predicted.outliers
        for outlier in outliers:
            panel.plot(
                outlier.value, 0, "v", color=style.PATHS, ms=8, clip_on=False, zorder=5,
                label="effective outliers",
            )  # fmt: skip
        panel.set(xlabel="eigenvalue", ylabel="density", ylim=(0, 1.08 * top))
        _legend(panel)
    return figure


def eigenvalues_over_time(
    tracked: xr.Dataset | None = None,
    block: Word | None = None,
    matrix: Word = "hessian",
    predicted: xr.Dataset | None = None,
    axes: Axes | None = None,
    *,
    x: Word = "time",
) -> Figure:
    """Draw the leading eigenvalues of a block over time, with what is predicted of them.

    Outliers are predicted and the bulk; of a readout block, which has no bulk, all eigenvalues and
    the threshold beyond which they are outliers. Either of the two may be drawn alone.

    Args:
        tracked: a result of :func:`sgdlimits.spectra.track`, or of a Tracker; or None.
        block: such as ``"W0W0"`` or ``"vv"``: of ``tracked``, for a prediction has only one.
        matrix: "hessian" or "gradient", likewise.
        predicted: the Dataset of :func:`sgdlimits.spectra.effective_path`, or None.
        axes: draw in these axes in place of a new figure.
        x: what is on the horizontal axis, "time" or "samples".

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    if predicted is not None:
        _check_prediction(predicted)
    if tracked is None:
        return _prediction_alone(predicted, axes, x)
    chosen = _chosen(tracked, matrix, block)
    positions = along(tracked, x)
    values = chosen.eigenvalues.transpose("time", "rank").values
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        if "spectrum" in chosen:
            bulk = chosen.spectrum.transpose("time", "index").values
            panel.plot(
                positions,
                bulk,
                ".",
                color="0.75",
                ms=1.5,
                rasterized=True,
                label="all eigenvalues",
            )
        panel.plot(
            positions, values, "o", color=style.SIMULATION, ms=3.5, label="leading eigenvalues"
        )
        if predicted is not None:
            _draw_prediction(panel, predicted, along(predicted, x, like=tracked))
        panel.set(xlabel=label_of(x, tracked), ylabel=_eigenvalues(matrix, block))
        _legend(panel)
        if axes is None:
            style.put_caption(figure, style.caption(tracked))
    return figure


def outlier_curves(
    predicted: xr.Dataset,
    transitions: Numeric = (),
    axes: Axes | None = None,
    *,
    x: Word = "time",
) -> Figure:
    """Draw the effective outliers of a block over time on top of its bulk.

    A readout block has no bulk: its outliers lie on top of all its eigenvalues, beyond a threshold.

    Args:
        predicted: the Dataset of :func:`sgdlimits.spectra.effective_path`.
        transitions: pairs (time, change) for lines where outliers leave the bulk, change > 0, or
            enter it: of the ``transitions`` that :func:`sgdlimits.spectra.effective_path` returns.
        axes: draw in these axes in place of a new figure.
        x: what is on the horizontal axis, "time" or "samples", of which a prediction knows if its
            coordinate ``samples`` tells.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    positions = along(predicted, x)
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.8))
        _draw_prediction(panel, predicted, positions)
        for when, change in _checks.array("transitions", transitions, None).reshape(-1, 2):
            verb, dashes = ("enters", "--") if change < 0 else ("leaves", ":")
            label = f"an outlier {verb} the bulk"
            where = float(np.interp(when, predicted.time, positions))
            panel.axvline(where, color=style.PATHS, lw=1, ls=dashes, label=label)
        panel.set(xlabel=label_of(x), ylabel="eigenvalue")
        if axes is None:
            _legend(panel)
    return figure


def alignment(
    tracked: xr.Dataset,
    blocks: Sequence[Word] | None = None,
    axes: Any = None,
    *,
    x: Word = "time",
) -> Figure:
    """Draw over time how the weights of each block align with its leading eigenvectors.

    Args:
        tracked: a result of :func:`sgdlimits.spectra.track`, or of a Tracker.
        blocks: names of blocks, all of them by default.
        axes: one for each matrix, in place of a new figure.
        x: what is on the horizontal axis, "time" or "samples".

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    names = [str(name) for name in tracked.block.values] if blocks is None else list(blocks)
    positions = along(tracked, x)
    with style.figure_style():
        matrices = [str(matrix) for matrix in tracked.matrix.values]
        if axes is None:
            figure = Figure(figsize=(4.8 * len(matrices), 3.6), layout="constrained")
            panels = list(np.ravel(figure.subplots(1, len(matrices), sharey=True)))
            style.put_caption(figure, style.caption(tracked))
        else:
            figure, panels = given_panels(axes, len(matrices), "matrices")
        for panel, matrix in zip(panels, matrices, strict=True):
            for name in names:
                chosen = _chosen(tracked, matrix, name)
                panel.plot(positions, chosen.alignment, "o-", ms=3, lw=1.1, label=name)
            panel.set(xlabel=label_of(x, tracked), title=_MATRICES[matrix], ylim=(0, 1.03))
        panels[0].set_ylabel("alignment with leading eigenvectors")
        if len(names) <= 12:
            panels[-1].legend(ncols=2, fontsize=8)
    return figure


def eigenvectors(vectors: Numeric, marked: Numbers = (), axes: Axes | None = None) -> Figure:
    """Draw eigenvectors coordinate by coordinate, as in Figure 2.2 of BGHJ23.

    Args:
        vectors: in columns, such as ``vectors[0]`` of :meth:`sgdlimits.spectra.Empirical.leading`.
        marked: coordinates to mark, such as those in which the means lie.
        axes: draw in these axes in place of a new figure.

    Returns:
        The figure; :func:`sgdlimits.plot.save` writes it.
    """
    columns = _checks.array("vectors", vectors, None)
    if columns.ndim != 2:
        raise _checks.InputError(
            f"vectors has shape {columns.shape}: it must have vectors in columns"
        )
    size, count = columns.shape
    coordinates = _checks.array("marked", marked, (len(marked),))
    if np.any((coordinates < 0) | (coordinates >= size)):
        raise _checks.InputError(
            f"marked={_checks.shown(marked)} is not allowed: 0 to {size - 1} are"
        )
    with style.figure_style():
        figure, panel = one_panel(axes, (5.6, 3.4))
        panel.plot(columns, lw=0.6, color=style.LIMIT, alpha=0.6, label=f"{count} eigenvectors")
        reach = 1.05 * float(np.max(np.abs(columns)))
        panel.set(xlabel="coordinate", ylabel="entry", ylim=(-reach, reach))
        if len(coordinates):
            low = np.full(len(coordinates), -reach)
            panel.plot(
                coordinates, low, "^", ms=4, color=style.PATHS, clip_on=False, label="marked"
            )
        _legend(panel)
    return figure


def _check_prediction(predicted: object) -> None:
    """What effective_path returns holds a Dataset, and is none."""
    if isinstance(predicted, xr.Dataset) and predicted.attrs.get("kind") == "effective spectra":
        return
    another = isinstance(predicted, xr.Dataset)
    given = "a Dataset of another kind" if another else type(predicted).__name__
    raise _checks.InputError(
        f"predicted={given} is not allowed: predicted must be effective_path(...).dataset"
    )


def _prediction_alone(predicted: xr.Dataset | None, axes: Axes | None, x: Word) -> Figure:
    if predicted is None:
        raise _checks.InputError(
            "predicted=None is not allowed without tracked: predicted must be the Dataset of "
            "effective_path"
        )
    figure = outlier_curves(predicted, axes=axes, x=x)
    panel = figure.axes[0] if axes is None else axes
    panel.set_ylabel(_eigenvalues(predicted.attrs["matrix"], predicted.attrs["block"]))
    if axes is None:
        style.put_caption(figure, style.caption(predicted))
    return figure


def _draw_prediction(panel: Axes, predicted: xr.Dataset, x: np.ndarray) -> None:
    """Bulk and outliers; of a readout block all eigenvalues and the threshold of outliers."""
    if "low" in predicted:
        look: Any = {"color": "0.6", "alpha": 0.25, "lw": 0, "label": "effective bulk"}
        panel.fill_between(x, predicted.low, predicted.high, **look)
    else:
        others = predicted.eigenvalues.transpose("time", "index").values
        panel.plot(x, others, color="0.6", lw=0.7, label="effective eigenvalues")
        panel.plot(x, predicted.threshold, "k:", lw=1.0, label="threshold of outliers")
    curves = predicted.outliers.transpose("time", "rank").values
    panel.plot(x, curves, color=style.LIMIT, lw=1.3, label="effective outliers")


def _eigenvalues(matrix: str, block: str | None) -> str:
    return f"eigenvalues, {_MATRICES[matrix]} {block}"


def _chosen(tracked: xr.Dataset, matrix: str, block: str | None) -> xr.Dataset:
    if tracked.attrs.get("kind") != "spectra":
        raise _checks.InputError(
            f"tracked of kind {tracked.attrs.get('kind')!r} is not allowed: it must come from track"
        )
    _checks.choice("matrix", matrix, [str(name) for name in tracked.matrix.values])
    _checks.choice("block", block, [str(name) for name in tracked.block.values])
    return tracked.sel(matrix=matrix, block=block)


def _legend(panel: Axes) -> None:
    """A legend with every label once."""
    handle_of = dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    panel.legend(list(handle_of.values()), list(handle_of))

"""Softmax regression: k outliers at all times, and the top one leaves the others in training."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """Means are orthonormal and classes equally likely; the first class block of the Hessian."""

    classes: int = setting(10, "number k of classes", least=2)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(50.0, "samples in the matrix, per dimension", above=1)
    precision: float = setting(10.0, "λ, the inverse variance of the noise", above=0)
    ridge: float = setting(0.01, "ridge β", above=0)
    time: float = setting(60.0, "duration, in units of d samples", above=0)
    points: int = setting(14, "times after the start at which the matrix is computed", least=2)
    draws: int = setting(6, "data sets on which the end is looked at", least=3)


def compute(p: Parameters, seed: int) -> Data:
    """Track one run on test and on training data, predict, and repeat the end on fresh data."""
    task = sl.tasks.GaussianMixture(classes=p.classes, precision=p.precision, ridge=p.ridge)
    times = p.time * np.linspace(0, 1, p.points + 1) ** 2
    samples = round(p.ratio * p.dim)
    data = {}
    few = np.union1d(times[:1], times[::-4])
    for kind, looks in (("test", times), ("train", few)):
        tracked = sl.spectra.track(
            task, p.dim, samples, looks, seed=seed, data=kind, blocks=[0], full=kind == "test"
        )
        data[kind] = tracked.sel(matrix=["hessian"])
    data["effective"] = sl.spectra.effective_path(task, data["test"], p.ratio).dataset
    end = data["test"].isel(time=-1)
    state = task.check_state({name: end[name].values for name in task.shapes})
    values, overlaps = [], []
    for number in range(1, p.draws + 1):
        training = sl.spectra.Training(task, p.dim, 1.0, seed + number, state)
        W = next(training.weights_at(np.zeros(1))).W
        found = sl.spectra.Empirical(task, training.unseen(samples), W)
        pairs = found.leading("hessian", [0], p.classes + 1)
        values.append(pairs.values[0])
        overlaps.append((sl.spectra.anchors(task, p.dim)[0] @ pairs.vectors[0, :, 0]) ** 2)
    top = sl.spectra.effective(task, state, p.ratio).outliers[0]
    data["end"] = xr.Dataset(
        {
            "eigenvalues": (("draw", "rank"), np.array(values)),
            "overlap": (("draw",), np.array(overlaps)),
            "predicted": ((), top.overlaps[task.anchors[0]]),
        }
    )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Numbers of outliers at all times; values and the top eigenvector at the end."""
    k, effective, end = p.classes, data["effective"], data["end"]
    curves = np.sort(effective.outliers.values, axis=1)[:, ::-1]
    said = np.isfinite(curves).sum(axis=1)
    spectra = data["test"].spectrum.values[:, 0, 0]
    high = effective.high.values
    least = np.nanmin(np.where(curves > high[:, None], curves, np.nan), axis=1)
    bounds = high + (least - high) / 4  # equal outliers repel each other, the bulk's end does not
    counts = np.sum(spectra > bounds[:, None], axis=1)
    first, second = curves[-1, 0], curves[-1, 1:k].mean()
    values = end.eigenvalues.values
    return [
        checks.exact("predicted outliers, least over time", said.min(), k, 0.0),
        checks.exact("outliers of SGD, least over time", counts.min(), k, 0.0),
        checks.exact("outliers of SGD, most over time", counts.max(), k, 0.0),
        checks.mean("top eigenvalue at the end / predicted", values[:, 0] / first, 1.0, bias=0.01),
        checks.mean(
            "mean of the other outliers / predicted",
            values[:, 1:k].mean(axis=1) / second,
            1.0,
            bias=0.01,
            note=f"the top one is {first / second:.2f} times as large",
        ),
        checks.mean(
            "squared overlap of the top eigenvector with its class mean",
            end.overlap.values,
            float(end.predicted),
            bias=5 / p.dim,
        ),
        checks.exact(
            "overlaps of the first weights with other means, largest at the end",
            float(data["test"].M.values[-1, 0, 1:].max() < 0),
            1.0,
            0.0,
            note="1 if all are negative (Theorem 2.5)",
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Eigenvalues on test and training data, overlaps with the means, and three histograms."""
    figure, panels = picture.panels(2, 3, width=4.4, height=3.1)
    effective = data["effective"]
    for panel, kind in zip(panels[0], ("test", "train"), strict=False):
        sl.plot.eigenvalues_over_time(data[kind], "W0W0", predicted=effective, axes=panel)
        panel.set(title=f"{kind} data", ylabel="eigenvalue")
    overlaps = data["test"].M.isel(neuron=0)
    panels[0, 2].plot(overlaps.time, overlaps, color=sl.plot.style.SIMULATION)
    panels[0, 2].set(
        title="overlaps of $x^1$ with all means", xlabel=sl.plot.style.TIME_LABEL, ylabel="overlap"
    )
    task = sl.tasks.GaussianMixture(classes=p.classes, precision=p.precision, ridge=p.ridge)
    places = [0, effective.sizes["time"] // 2, effective.sizes["time"] - 1]
    for panel, place in zip(panels[1], places, strict=True):
        here = data["test"].isel(time=place)
        state = {name: here[name].values for name in task.shapes}
        sl.plot.spectrum(
            here.spectrum.values[0, 0], sl.spectra.effective(task, state, p.ratio), axes=panel
        )
        panel.set_title(f"t = {float(here.time):.3g}")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.3, 9.2, 9.4",
    claim="Softmax regression: k outliers at all times, and the top one leaves the others.",
    parameters=Parameters,
    tiny={"classes": 3, "dim": 150, "ratio": 20.0, "points": 3, "time": 20.0},
    quick={"dim": 400, "points": 8},
    compute=compute,
    check=check,
    draw=draw,
)

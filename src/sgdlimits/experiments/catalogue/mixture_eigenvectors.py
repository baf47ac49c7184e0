"""Softmax regression: weights and leading eigenvectors, coordinate by coordinate."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}


class Parameters(Settings):
    """The mean of class a is the coordinate vector of number a · dim / (2 · classes)."""

    classes: int = setting(10, "number k of classes", least=2)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(50.0, "samples in the matrices, per dimension", above=1)
    precisions: tuple[float, ...] = setting((10.0, 100.0), "values of λ", above=0)
    ridge: float = setting(0.01, "ridge β", above=0)
    time: float = setting(50.0, "duration, in units of d samples", above=0)


def places(p: Parameters) -> np.ndarray:
    """The coordinates in which the means lie."""
    return np.arange(1, p.classes + 1) * (p.dim // (2 * p.classes))


def placement(p: Parameters, seed: int) -> np.ndarray:
    """From our coordinates, where the means come first, to places; a random rotation elsewhere.

    Data and SGD have the same law in any coordinates.
    """
    k = p.classes
    rotation = np.random.default_rng(seed).standard_normal((p.dim - k, p.dim - k))
    found = np.zeros((p.dim, p.dim))
    found[np.arange(k), places(p)] = 1
    others = np.setdiff1d(np.arange(p.dim), places(p))
    found[k:, others] = np.linalg.qr(rotation)[0]
    return found


def compute(p: Parameters, seed: int) -> Data:
    """Weights at start and end, eigenvectors of the first class block at the end."""
    place = placement(p, seed)
    data = {}
    for precision in p.precisions:
        task = sl.tasks.GaussianMixture(classes=p.classes, precision=precision, ridge=p.ridge)
        start = task.random_state(p.dim, seed=seed)
        training = sl.spectra.Training(task, p.dim, 1.0, seed, start)
        first, last = training.weights_at(np.array([0.0, p.time]))
        found = sl.spectra.Empirical(task, training.unseen(round(p.ratio * p.dim)), last.W)
        A = sl.spectra.anchors(task, p.dim)
        overlaps = last.W @ A.T
        outside = last.W - overlaps @ A
        state = {"M": overlaps, "R": outside @ outside.T}
        vectors = np.zeros((2, p.classes, p.dim))
        mass = np.full((2, p.classes), np.nan)
        for number, matrix in enumerate(MATRICES):
            vectors[number] = found.leading(matrix, [0], p.classes).vectors[0].T
            outliers = sl.spectra.effective(task, state, p.ratio, matrix).outliers
            shares = [
                share
                for o in outliers
                for share in [sum(o.overlaps.values()) / o.multiplicity] * o.multiplicity
            ][: p.classes]
            mass[number, : len(shares)] = shares
        data[f"{precision:g}"] = xr.Dataset(
            {
                "weights": (
                    ("when", "row", "coordinate"),
                    np.stack([first.W[:2], last.W[:2]]) @ place,
                ),
                "vectors": (("matrix", "rank", "coordinate"), vectors @ place),
                "predicted": (("matrix", "rank"), mass),
            },
            {"when": ["start", "end"], "matrix": list(MATRICES)},
        )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """How much of the outliers' eigenvectors lies on the means, and the signs of the weights."""
    found = []
    for precision, one in data.items():
        for matrix, word in MATRICES.items():
            predicted = one.predicted.sel(matrix=matrix).values
            here = np.isfinite(predicted)
            vectors = one.vectors.sel(matrix=matrix).values[here]
            share = (vectors[:, places(p)] ** 2).sum(axis=1)
            found.append(
                checks.exact(
                    f"{word}, λ = {precision}: part of the eigenvectors on the means",
                    share.mean(),
                    predicted[here].mean(),
                    4 / np.sqrt(p.dim * here.sum()),
                    note=f"{here.sum()} outliers of {p.classes}; tolerance 4/√(d · outliers)",
                )
            )
        ends = one.weights.sel(when="end").values[:, places(p)]
        own = float(np.min([ends[0, 0], ends[1, 1]]))
        others = float(max(np.delete(ends[0], 0).max(), np.delete(ends[1], 1).max()))
        found.append(
            checks.exact(
                f"λ = {precision}: overlap positive with the own mean, negative with others",
                float(own > 0 > others),
                1.0,
                0.0,
                note=f"{own:.2f}, and at most {others:.2f}",
            )
        )
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """For every precision: weights at start and end, and eigenvectors of both matrices."""
    figure, panels = picture.panels(len(data), 4, width=3.6, height=2.6, sharex=True)
    for row, (precision, one) in zip(panels, data.items(), strict=True):
        for panel, when in zip(row, ("start", "end"), strict=False):
            for number, weights in enumerate(one.weights.sel(when=when).values):
                panel.plot(weights, lw=0.8, label=f"$x^{number + 1}$")
            panel.set_title(f"weights at the {when}, λ = {precision}", fontsize=10)
            panel.set_ylim(-0.6, 2.8)
        for panel, (matrix, word) in zip(row[2:], MATRICES.items(), strict=True):
            vectors = one.vectors.sel(matrix=matrix).values
            sl.plot.eigenvectors(vectors.T, marked=places(p), axes=panel)
            panel.set_title(f"{word}, λ = {precision}", fontsize=10)
            panel.set(xlabel="", ylabel="")
        row[0].set_ylabel("entry")
    for panel in panels[-1]:
        panel.set_xlabel("coordinate; class means marked")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGHJ23",
    figure="Fig. 2.2, 9.1",
    claim="Softmax regression: weights and leading eigenvectors lie on the class means.",
    parameters=Parameters,
    tiny={"classes": 3, "dim": 150, "precisions": (100.0,), "ratio": 20.0},
    quick={"dim": 400},
    compute=compute,
    check=check,
    draw=draw,
)

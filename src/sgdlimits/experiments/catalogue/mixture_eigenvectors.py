"""Softmax regression: weights and leading eigenvectors, coordinate by coordinate.

The mean of class a is the coordinate vector of number a · dim / (2 · classes), a = 1 … classes.
"""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._mixtures import Softmax
from sgdlimits.experiments.catalogue._spectra import MATRICES, Spectra, of_outliers


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.2, 9.1",
    claim="Softmax regression: weights and leading eigenvectors lie on the class means.",
    tiny={"classes": 3, "dim": 150, "precisions": (100.0,), "ratio": 20.0},
    quick={"dim": 400},
)
class MixtureEigenvectors(Softmax, Spectra):
    """The first two class vectors, and the first class block of both matrices."""

    precisions: tuple[float, ...] = setting((10.0, 100.0), "values of λ", above=0)
    time: float = 50.0

    @property
    def coordinates(self) -> np.ndarray:
        """Those of the class means."""
        return np.arange(1, self.classes + 1) * (self.dim // (2 * self.classes))

    def rotation(self, seed: int) -> np.ndarray:
        """From the library's coordinates, where the means come first, to those of the picture.

        It is random on all other coordinates: data and SGD have the same law in all of them.
        """
        means, others = self.classes, self.dim - self.classes
        noise = np.random.default_rng(seed).standard_normal((others, others))
        rotation = np.zeros((self.dim, self.dim))
        rotation[np.arange(means), self.coordinates] = 1
        rotation[means:, np.delete(np.arange(self.dim), self.coordinates)] = np.linalg.qr(noise)[0]
        return rotation

    def compute(self, seed: int) -> Data:
        """Weights at start and end; eigenvectors at the end, and their predicted part on means."""
        rotation, k = self.rotation(seed), self.classes

        def one(precision: float) -> xr.Dataset:
            task = self.task(precision)
            start = task.random_state(self.dim, seed=seed)
            training = sl.spectra.Training(task, self.dim, 1.0, seed, start)
            first, last = (x.W for x in training.weights_at(np.array([0.0, self.time])))
            matrices = sl.spectra.Empirical(task, training.unseen(self.samples), last)
            vectors = np.stack([matrices.leading(x, [0], k).vectors[0].T for x in MATRICES])
            anchors = sl.spectra.anchors(task, self.dim)
            outside = last - last @ anchors.T @ anchors
            state = {"M": last @ anchors.T, "R": outside @ outside.T}
            # weights may add outliers to those of the means: at most 2k, of which k are compared
            spectra = [sl.spectra.effective(task, state, self.ratio, name) for name in MATRICES]
            predicted = [of_outliers(spectrum, 2 * k, on_means)[:k] for spectrum in spectra]
            return xr.Dataset(
                {
                    "weights": (("when", "row", "coordinate"), [first[:2], last[:2]] @ rotation),
                    "vectors": (("matrix", "rank", "coordinate"), vectors @ rotation),
                    "predicted": (("matrix", "rank"), predicted),
                },
                {"when": ["start", "end"], "matrix": list(MATRICES.values())},
            )

        return {"run": sl.results.over("precision", self.precisions, one)}

    def check(self, data: Data) -> list[Check]:
        """How much of the outliers' eigenvectors is on the means, and the signs of the weights."""
        results, on = [], data["run"].isel(coordinate=self.coordinates)
        for precision in self.precisions:
            for matrix in MATRICES.values():
                part = on.sel(precision=precision, matrix=matrix)
                shares = (part.vectors**2).sum("coordinate").where(part.predicted.notnull())
                count = int(shares.count())
                name = f"{matrix}, λ = {precision:g}: part of the eigenvectors on the means"
                note = f"{count} outliers of {self.classes}; tolerance 4/√(d · outliers)"
                tolerance, expected = 4 / np.sqrt(self.dim * count), part.predicted.mean()
                results.append(checks.exact(name, shares.mean(), expected, tolerance, note=note))
            ends = on.weights.sel(precision=precision, when="end").values
            own = np.eye(2, self.classes, dtype=bool)
            least, most = ends[own].min(), ends[~own].max()
            name = f"λ = {precision:g}: overlap positive with the own mean, negative with others"
            note = f"{least:.2f}, and at most {most:.2f}"
            results.append(checks.holds(name, least > 0 > most, note=note))
        return results

    def draw(self, data: Data) -> Figure:
        """For every precision: weights at start and end, and eigenvectors of both matrices."""
        figure, panels = sl.plot.panels(len(self.precisions), 4, width=3.6, height=2.6, sharex=True)
        mark: Any = {"ms": 4, "color": sl.plot.style.PATHS, "clip_on": False}

        def weights(panel: Axes, part: xr.Dataset) -> None:
            panel.plot(part.weights.T, lw=0.8, label=["$x^1$", "$x^2$"])
            panel.set(ylim=(-0.6, 2.8), ylabel="entry")

        def vectors(panel: Axes, part: xr.Dataset) -> None:
            sl.plot.eigenvectors(part.vectors.T, axes=panel)
            panel.set(xlabel="", ylabel="")

        for row, precision in zip(panels, self.precisions, strict=True):
            part, word = data["run"].sel(precision=precision), f"λ = {precision:g}"
            titles = f"weights at the {{}}, {word}", f"{{}}, {word}"
            sl.plot.facets(part, "when", weights, title=titles[0], axes=row[:2])
            sl.plot.facets(part, "matrix", vectors, title=titles[1], axes=row[2:])
        means = np.stack([self.coordinates, 0 * self.coordinates])
        for panel in panels.ravel():
            below = panel.get_xaxis_transform()
            panel.plot(*means, "^", transform=below, label="class means", **mark)
        for panel in panels[-1]:
            panel.set_xlabel("coordinate")
        return sl.plot.legend_below(figure)


def on_means(outlier: sl.spectra.Outlier) -> float:
    """How much of its eigenvector lies in the span of the means, as predicted."""
    return sum(outlier.overlaps.values()) / outlier.multiplicity

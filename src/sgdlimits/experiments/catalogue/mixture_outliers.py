"""Softmax regression: k outliers at all times, and the top one leaves the others in training."""

from functools import partial

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._mixtures import Softmax
from sgdlimits.experiments.catalogue._spectra import Tracked, draw_histogram


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.3, 9.2, 9.4",
    claim="Softmax regression: k outliers at all times, and the top one leaves the others.",
    tiny={"classes": 3, "dim": 150, "ratio": 20.0, "points": 3, "time": 20.0},
    quick={"dim": 400, "points": 8},
)
class MixtureOutliers(Softmax, Tracked):
    """The first class block of the Hessian, on test and on training data."""

    precision: float = setting(10.0, "λ, the inverse variance of the noise", above=0)
    draws: int = setting(6, "data sets on which the end is looked at", least=3)

    def compute(self, seed: int) -> Data:
        """Track one run on test and on training data, predict, and repeat the end on fresh data."""
        task = self.task(self.precision)
        few = np.union1d(self.times[:1], self.times[::-4])
        test = self.track(task, self.times, seed, blocks=[0], full=True).sel(matrix=["hessian"])
        train = self.track(task, few, seed, blocks=[0], data="train").sel(matrix=["hessian"])
        end = sl.results.state(test)

        top = sl.spectra.effective(task, end, self.ratio).outliers[0]
        draws = self.track_again(task, end, seed + 1, self.draws, blocks=[0])
        draws = draws[["eigenvalues", "overlap"]].sel(matrix="hessian").isel(time=0, block=0)
        return {
            "test": test,
            "train": train,
            "effective": sl.spectra.effective_path(task, test, self.ratio).dataset,
            "end": draws.assign(predicted=top.overlaps[task.anchors[0]]),
        }

    def check(self, data: Data) -> list[Check]:
        """Numbers of outliers at all times; values and the top eigenvector at the end."""
        k, end, high = self.classes, data["end"], data["effective"].high
        curves = data["effective"].outliers
        least = curves.where(curves > high).min("rank")
        # nearer to the bulk than to the outliers: equal ones repel each other, the bulk does not
        bounds = high + (least - high) / 4
        spectra = data["test"].spectrum.sel(matrix="hessian", block="W0W0")
        counts = (spectra > bounds).sum("index")
        first, *others = np.sort(curves.isel(time=-1).dropna("rank"))[::-1]
        second = np.mean(others[: k - 1])
        others_measured = end.eigenvalues.isel(rank=slice(1, k)).mean("rank")
        return [
            checks.exact("predicted outliers, least over time", curves.count("rank").min(), k),
            checks.exact("outliers of SGD, least over time", counts.min(), k),
            checks.exact("outliers of SGD, most over time", counts.max(), k),
            checks.mean(
                "top eigenvalue at the end / predicted",
                end.eigenvalues.isel(rank=0) / first,
                1.0,
                bias=0.01,
            ),
            checks.mean(
                "mean of the other outliers / predicted",
                others_measured / second,
                1.0,
                bias=0.01,
                note=f"the top one is {first / second:.2f} times as large",
            ),
            checks.mean(
                "squared overlap of the top eigenvector with its class mean",
                end.overlap.isel(rank=0, anchor=0),
                end.predicted,
                bias=5 / self.dim,
            ),
            checks.holds(
                "overlaps of the first weights with other means, largest at the end",
                data["test"].M[-1, 0, 1:].max() < 0,
                note="1 if all are negative (Theorem 2.5)",
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """Eigenvalues on test and training data, overlaps with the means, and three histograms."""
        figure, panels = sl.plot.panels(2, 3, width=4.4, height=3.1)
        for panel, kind in zip(panels[0], ("test", "train"), strict=False):
            predicted = data["effective"]
            sl.plot.eigenvalues_over_time(data[kind], "W0W0", predicted=predicted, axes=panel)
            panel.set(title=f"{kind} data", ylabel="eigenvalue")
        overlaps = data["test"].M.isel(neuron=0)
        panels[0, 2].plot(overlaps.time, overlaps, color=sl.plot.style.SIMULATION)
        panels[0, 2].set(title="overlaps of $x^1$ with all means", ylabel="overlap")
        panels[0, 2].set_xlabel(sl.plot.style.TIME_LABEL)

        task = self.task(self.precision)
        draw = partial(draw_histogram, task=task, ratio=self.ratio)
        last = data["test"].sizes["time"] - 1
        shown = data["test"].isel(time=[0, (last + 1) // 2, last], matrix=0, block=0)
        sl.plot.facets(shown, "time", draw, title="t = {:.3g}", axes=panels[1])
        return sl.plot.legend_below(figure)

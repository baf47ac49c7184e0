"""Softmax regression: every class vector aligns with the outliers of its blocks of the matrices."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._alignment import (
    Alignment,
    check_alignment,
    draw_measured,
    draw_parts,
    draw_predicted,
    parts,
    prediction,
)
from sgdlimits.experiments.catalogue._mixtures import Softmax


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.1, 9.3",
    claim="Softmax regression: weights align with the outlier eigenspaces, up to O(1/λ).",
    tiny={"classes": 3, "dim": 200, "precisions": (100.0,), "points": 2, "train": False},
    quick={"dim": 300, "train": False},
)
class MixtureAlignment(Softmax, Alignment):
    """Orthonormal means; all class blocks of both matrices, on test and training data."""

    train: bool = setting(True, "whether training data are looked at too, at the largest λ")

    def compute(self, seed: int) -> Data:
        """Follow SGD, and predict alignment from its summary statistics."""

        def follow(precision: float, kind: str = "test") -> xr.Dataset:
            task = self.task(precision)
            times = self.times if kind == "test" else self.times[[0, -1]]
            tracked = self.track(task, times, seed, data=kind)
            return tracked.assign(effective=prediction(task, tracked, self.ratio, ["W0W0"]))

        data = {"test": sl.results.over("precision", self.precisions, follow)}
        if self.train:
            largest = max(self.precisions)
            data["train"] = sl.results.over("precision", [largest], follow, ["train"])
        return data

    def check(self, data: Data) -> list[Check]:
        """Alignment at the end against the effective theory; above 0.95 where theory says so."""
        return [
            check
            for title, part in parts(data)
            for check in check_alignment(title, part.isel(time=-1), "block", 5 / self.dim)
        ]

    def draw(self, data: Data) -> Figure:
        """Alignment of every block over time, and the prediction for the first."""

        def one(panel: Axes, part: xr.Dataset) -> None:
            draw_measured(panel, part.alignment, f"SGD, d = {self.dim}: class blocks")
            draw_predicted(panel, part.effective.isel(block=0), "effective spectrum, block 1")
            means = np.sqrt(np.maximum(0.0, 1 - part.residual**2)).mean("neuron")
            panel.plot(
                means.time, means, "0.3", ls=":", label="alignment with the span of the means"
            )

        return draw_parts(data, one, f"alignment with $E_{{{self.classes}}}$")

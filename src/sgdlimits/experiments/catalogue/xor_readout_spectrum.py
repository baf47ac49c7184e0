"""XOR: four eigenvalues of the readout block leave the others as the hidden classes are learned.

The run is the first, from the seed on, that discerns all four hidden classes: at width 20 nearly
every one does.
"""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment
from sgdlimits.experiments.catalogue._spectra import MATRICES
from sgdlimits.experiments.catalogue._xor_spectra import Readout, check_outliers, relative_sums

CLASSES = 4
RANKS = 8  # the largest ratio of neighbours is looked for among so many eigenvalues
TRIES = 10
KINDS = ("test", "train")  # the data of the matrices


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.5, 9.6",
    claim="XOR: the readout block has one outlier at the start, four after training.",
    tiny={"width": 12, "dim": 100, "points": 3, "draws": 8},
    quick={"dim": 300, "points": 20},
)
class XorReadoutSpectrum(Readout):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    def compute(self, seed: int) -> Data:
        """Eigenvalues over time on test and train data, and again on fresh data at the end."""
        task = self.task(self.precision)
        for good in range(seed, seed + TRIES):
            test = self.track(task, self.times, good, blocks=["vv"])
            end = sl.results.state(test)
            discerned = sl.spectra.hidden_classes(task, end)
            if discerned == CLASSES:
                break
        train = self.track(task, self.times, good, data="train", blocks=["vv"])

        def along(_: str, tracked: xr.Dataset) -> xr.Dataset:
            return tracked[["eigenvalues"]].isel(block=0)

        def predicted(time: float) -> xr.Dataset:
            state = sl.results.state(test, time=time)
            return xr.Dataset({"eigenvalues": self.predicted(state)})

        return {
            "run": sl.results.over("data", KINDS, along, [test, train]).assign(classes=discerned),
            "predicted": sl.results.over("time", self.times, predicted),
            "fresh": self.fresh(end, good + 1),
        }

    def check(self, data: Data) -> list[Check]:
        """One outlier at the start, four at the end; their sum, which does not feel repulsion."""
        results = []
        discerned = int(data["run"].classes)
        for matrix, word in MATRICES.items():
            run, predicted, fresh = (
                data[name].eigenvalues.sel(matrix=matrix).transpose(..., "rank")
                for name in ("run", "predicted", "fresh")
            )
            target = predicted.values[-1, :CLASSES]
            sums = relative_sums(fresh, target)
            each = (fresh.mean("draw").values[:CLASSES] / target - 1) * 100
            note = f"each by {', '.join(f'{x:+.2f}' for x in each)} %; one sample per draw"
            name = f"{word}: sum of the leading {CLASSES} eigenvalues over its prediction, less 1"
            results.append(checks.mean(name, sums, 0.0, bias=self.bias, note=note))
            spread = np.std(sums, ddof=1), len(sums)
            for kind in KINDS:
                title, values = f"{word}, {kind} data", run.sel(data=kind).values
                gap = values[-1, :CLASSES].sum() / target.sum() - 1
                name = f"{title}: the same in the run"
                note = "one data set, in the spread of fresh ones"
                results += [
                    checks.single(name, gap, 0.0, *spread, bias=self.bias, note=note),
                    check_outliers(f"{title}: outliers at the start", values[0], 1, RANKS),
                    check_outliers(f"{title}: outliers at the end", values[-1], discerned, RANKS),
                ]
        return [*results, checks.exact("hidden classes discerned", discerned, CLASSES)]

    def draw(self, data: Data) -> Figure:
        """All eigenvalues over time."""
        figure, panels = sl.plot.panels(2, 2, width=4.8, height=3.0, sharex=True, sharey="col")
        for row, kind in zip(panels, KINDS, strict=True):
            for panel, (matrix, word) in zip(row, MATRICES.items(), strict=True):
                measured = data["run"].eigenvalues.sel(data=kind, matrix=matrix)
                predicted = data["predicted"].eigenvalues.sel(matrix=matrix)
                self.draw_eigenvalues(panel, measured, predicted)
                panel.set(title=f"{word}, {kind} data", ylabel="eigenvalues, block $vv$")
        for panel in panels[0]:
            panel.set_xlabel("")  # columns have the same times, and scales of their own
        return sl.plot.legend_below(figure, 2)

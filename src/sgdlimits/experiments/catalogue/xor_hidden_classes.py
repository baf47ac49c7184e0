"""XOR: as many eigenvalues of the readout block stand out as hidden classes are discerned.

Runs that discern few classes are rare, so random starts are reflected into events that favour
them, which conditions their law: all v_i > 0 (two classes), also all m_i^μ > 0 (one class), or
m_i^ν > 0 wherever v_i < 0 (three classes). Of many runs the first is taken that discerns as many
classes as wanted and is settled. SGD is the exact chain of summary statistics.
"""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._xor_spectra import Readout, check_outliers, relative_sums

CLASSES = (1, 2, 3, 4)
BATCHES = 6
MARGIN = 0.1  # of a network output that discerns a class
SETTLED = 0.01  # no output may lie between: its class would be on the way


@experiment(
    paper="BGHJ23",
    figure="Fig. 2.6",
    claim="XOR: the readout block has as many outliers as hidden classes are discerned.",
    tiny={"dim": 200, "points": 2, "draws": 6},
    quick={"dim": 300, "points": 20},
)
class XorHiddenClasses(Readout):
    """Four Gaussians of variance 1/λ in the XOR arrangement, and a two-layer ReLU network."""

    width: int = setting(6, "width K, small: wide networks hardly ever miss a class", least=5)
    ratio: float = setting(10.0, "samples in the matrix, per dimension", above=1)
    runs: int = setting(64, "runs of a batch, among which one is looked for", least=4)

    def compute(self, seed: int) -> Data:
        """A run for each number of hidden classes, and eigenvalues of G in the readout block.

        On the same data at all times, and on fresh data sets at the end.
        """

        def one(classes: int) -> xr.Dataset:
            run = self.search(classes, seed)

            def look(time: float) -> xr.Dataset:
                state = sl.results.state(run, time=time)
                predicted = self.predicted(state, ["gradient"])
                both = {"eigenvalues": self.eigenvalues(state, seed), "effective": predicted}
                return xr.Dataset(both).sel(matrix="gradient")

            fresh = self.fresh(sl.results.state(run), seed + 1).eigenvalues.sel(matrix="gradient")
            return sl.results.over("time", run.time.values, look).assign(fresh=fresh)

        return {"readout": sl.results.over("classes", CLASSES, one)}

    def search(self, classes: int, seed: int) -> xr.Dataset:
        """The first run that discerns so many classes and is settled."""
        task = self.task(self.precision)
        size: Any = {"runs": self.runs, "time": self.time, "points": self.points + 1}
        for batch in range(BATCHES):
            numbers = range(batch * self.runs, (batch + 1) * self.runs)
            starts = reflected(task.random_state(self.dim, seed, runs=numbers), classes)
            own = seed + 10 * batch + classes
            runs = sl.simulate(task, self.dim, seed=own, init=starts, **size)
            for number in range(self.runs):
                run = runs.isel(run=number)
                end = sl.results.state(run)
                seen = {sl.spectra.hidden_classes(task, end, x) for x in (MARGIN, SETTLED)}
                if seen == {classes}:
                    return run
        tried = BATCHES * self.runs
        raise RuntimeError(f"no run of {tried} discerns {classes} classes: try another seed")

    def check(self, data: Data) -> list[Check]:
        """As many outliers as classes; their sum, which does not feel repulsion, as predicted."""
        results = []
        for classes in CLASSES:
            readout = data["readout"].sel(classes=classes)
            end, target = (readout[name].values[-1] for name in ("eigenvalues", "effective"))
            leading = ", ".join(f"{x:.4f}" for x in target[:classes])
            note = f"predicted {leading}, the next {target[classes]:.4f}"
            sums = relative_sums(readout.fresh, target[:classes])
            name = f"sum of the {classes} leading eigenvalues over its prediction, less 1"
            outliers = f"outliers of a run that discerns {classes}"
            results += [
                check_outliers(outliers, end, classes, max(CLASSES) + 1),
                checks.mean(name, sums, 0.0, bias=self.bias, note=note),
            ]
        return results

    def draw(self, data: Data) -> Figure:
        """All eigenvalues over time, a panel for each number of classes."""

        def one(panel: Axes, readout: xr.Dataset) -> None:
            self.draw_eigenvalues(panel, readout.eigenvalues, readout.effective)
            word = "class" if readout.classes == 1 else "classes"
            panel.set(title=f"{readout.classes:d} hidden {word}", xlabel="time (samples / dim)")
            panel.set_ylabel("eigenvalues of $G_{vv}$")

        size: Any = {"columns": len(CLASSES), "width": 3.1, "height": 3.4}
        return sl.plot.facets(data["readout"], "classes", one, legend=2, **size)


def reflected(starts: State, classes: int) -> State:
    """Random starts with signs that favour so many classes."""
    v, M = np.array(starts["v"]), np.array(starts["M"])
    if classes <= 2:
        v = np.abs(v)
    if classes == 1:
        M[..., 0] = np.abs(M[..., 0])
    if classes == 3:
        M[..., 1] = np.where(v < 0, np.abs(M[..., 1]), M[..., 1])
    return {**starts, "v": v, "M": M}

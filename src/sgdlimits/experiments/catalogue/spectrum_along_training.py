"""Outlier curves from the effective dynamics alone, and when outliers leave or enter the bulk."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._mixtures import Softmax
from sgdlimits.experiments.catalogue._spectra import MATRICES, Spectra, compare_outliers

MARGIN = 0.1  # outliers nearer to an edge than this part of the bulk are not told from it
LISTS = ("rank", "transition")  # as long as the longest of both matrices


@experiment(
    paper="ours",
    figure="effective spectra over time",
    claim="Outliers along training follow from the effective dynamics, with no data at all.",
    tiny={"dim": 200, "points": 2, "runs": 3, "time": 20.0},
    quick={"dim": 400, "points": 10},
    headline=True,
    cost=3.0,
)
class SpectrumAlongTraining(Softmax, Spectra):
    """Softmax regression with orthonormal means, from random weights; the first class block."""

    classes: int = 3
    ratio: float = setting(4.0, "samples in the matrices, per dimension", above=0)
    precision: float = setting(10.0, "λ, the inverse variance of the noise", above=0)
    time: float = 40.0
    points: int = setting(12, "times after the start at which the matrices are computed", least=2)
    runs: int = setting(6, "runs of SGD, each with its own data", least=3)

    def compute(self, seed: int) -> Data:
        """Solve the limit and predict along it; track runs from the same start."""
        task = self.task(self.precision)
        start = task.random_state(self.dim, seed=seed)
        points = 4 * self.points + 1
        solution = sl.effective_dynamics(task).solve(start, time=self.time, points=points)
        times = np.linspace(0, self.time, self.points + 1)

        def predict(matrix: str) -> xr.Dataset:
            path = sl.spectra.effective_path(task, solution, self.ratio, matrix, dim=self.dim)
            moves = np.array([(t.time, t.change) for t in path.transitions]).reshape(-1, 2)
            both = {"when": ("transition", moves[:, 0]), "change": ("transition", moves[:, 1])}
            table = path.dataset.assign(both).drop_attrs()
            return table.assign_coords({name: np.arange(table.sizes[name]) for name in LISTS})

        def track(run: int) -> xr.Dataset:
            tracked = self.track(task, times, seed + run, init=start, blocks=[0])
            return tracked[["eigenvalues"]].isel(block=0)

        return {
            "effective": sl.results.over("matrix", list(MATRICES), predict, fill=True),
            "runs": sl.results.over("run", range(self.runs), track),
        }

    def check(self, data: Data) -> list[Check]:
        """Outlier curves against the mean over runs, and none missing or too many."""
        results = []
        for matrix, word in MATRICES.items():
            predicted = data["effective"].sel(matrix=matrix)
            runs = data["runs"].eigenvalues.sel(matrix=matrix)
            looks = []
            for time in runs.time.values:
                now = predicted.sel(time=time, method="nearest")
                edge, margin = float(now.high), MARGIN * float(now.high - now.low)
                tops, curves = runs.sel(time=time).values, now.outliers.values
                looks.append(compare_outliers(tops, curves, edge, margin, near=0.0))
            distances, clear, wrong = zip(*looks, strict=True)
            said = f"{sum(clear)} outliers at {len(looks)} times, less two standard errors"
            moves = ", ".join(
                f"{change:+.0f} at t = {time:.3g}" for time, change in transitions(predicted)
            )
            name = f"{word}: sum of outliers, largest relative distance over time"
            results.append(checks.exact(name, np.max(distances), 0.0, 0.03, note=said))
            name = f"{word}: outliers missing or too many, over all times"
            said = f"predicted transitions: {moves or 'none'}"
            results.append(checks.exact(name, sum(wrong), 0, note=said))
        return results

    def draw(self, data: Data) -> Figure:
        """Predicted curves, bulk and transitions, with the eigenvalues of the runs."""

        def one(panel: Axes, predicted: xr.Dataset) -> None:
            runs = data["runs"].eigenvalues.sel(matrix=predicted.matrix)
            sl.plot.outlier_curves(predicted, transitions(predicted), axes=panel)
            label = f"SGD, mean of {self.runs} runs ± 2 standard errors"
            for rank in range(runs.sizes["rank"]):
                sl.plot.band(runs.isel(rank=rank), bars=True, label=label, axes=panel)
            panel.set(title=MATRICES[str(predicted.matrix.values)], ylim=(0, None))

        return sl.plot.facets(data["effective"], "matrix", one, width=5.2, height=3.8, share=False)


def transitions(predicted: xr.Dataset) -> np.ndarray:
    """Times at which outliers leave or enter the bulk, and by how many their number changes."""
    return np.stack([predicted.when, predicted.change], axis=1)[predicted.when.notnull()]

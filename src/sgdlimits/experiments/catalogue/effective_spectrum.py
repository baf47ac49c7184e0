"""Bulk edges and outliers predicted from summary statistics, against matrices of data."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue._spectra import (
    MATRICES,
    beyond,
    compare_outliers,
    draw_histogram,
    fresh,
    of_outliers,
)

TASKS: dict[str, Any] = {
    "mixture": sl.tasks.GaussianMixture(classes=3, precision=10.0, ridge=0.01),
    "xor": sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.02),
}
TITLES = {"mixture": "softmax regression, 3 classes", "xor": "XOR, 4 neurons"}
ALLOWED = {"upper edge": 0.02, "lower edge": 0.02, "outliers": 0.03}  # relative distances
MARGIN = 0.05  # outliers nearer to an edge than this part of the bulk are not told from it
RANKS = 6  # at most so many outliers


@experiment(
    paper="ours",
    figure="effective spectra",
    claim="Summary statistics alone predict the bulk edges and outliers of matrices of data.",
    tiny={"tasks": 1, "times": (6.0,), "ratios": (4.0,), "dims": (60, 300), "draws": 6},
    quick={"ratios": (4.0,), "dims": (100, 400)},
)
class EffectiveSpectrum(Settings):
    """States of SGD at which the block of the first row of weights is predicted, and sizes."""

    tasks: int = setting(2, "1: softmax regression; 2: XOR too", least=1, most=2)
    times: tuple[float, ...] = setting((0.0, 6.0, 40.0), "times of the states", least=0)
    ratios: tuple[float, ...] = setting((2.0, 4.0, 10.0), "samples per dimension", above=0)
    dims: tuple[int, ...] = setting((500, 2000), "dimensions of the matrices", least=20)
    draws: int = setting(8, "independent data sets", least=3)

    def compute(self, seed: int) -> Data:
        """At states along a solution of the limit: predictions, and spectra of drawn matrices."""

        def along(task: Any) -> xr.Dataset:
            start, end = task.random_state(max(self.dims), seed=seed + 1), max(*self.times, 1.0)
            solution = sl.effective_dynamics(task).solve(start, time=end, points=201)

            def at(time: float) -> xr.Dataset:
                state = solution[list(task.shapes)].sel(time=time, method="nearest", drop=True)
                own = partial(self.spectra, task, sl.results.state(solution, time=time), seed)
                return sl.results.over("ratio", self.ratios, own).assign(state)

            return sl.results.over("time", self.times, at)

        return {name: along(TASKS[name]) for name in list(TASKS)[: self.tasks]}

    def spectra(self, task: Any, state: Any, seed: int, ratio: float) -> xr.Dataset:
        """All eigenvalues on every data set; predicted edges in every dimension, and outliers."""

        def sized(dim: int) -> xr.Dataset:
            samples = round(ratio * dim)
            draws = (fresh(task, state, dim, samples, seed + k) for k in range(self.draws))
            drawn = [[one.eigenvalues(matrix, 0) for matrix in MATRICES] for one in draws]
            edges = [predict(matrix, dim=dim).edges[[0, -1]] for matrix in MATRICES]
            spectra = {
                "spectrum": (("draw", "matrix", "index"), drawn),
                "edges": (("matrix", "side"), edges),
            }
            return xr.Dataset(spectra, {"matrix": list(MATRICES), "index": np.arange(dim)})

        predict = partial(sl.spectra.effective, task, state, ratio)
        outliers = [of_outliers(predict(matrix), RANKS) for matrix in MATRICES]
        sizes = sl.results.over("dim", self.dims, sized, fill=True)
        return sizes.assign(outliers=(("matrix", "rank"), outliers))

    def check(self, data: Data) -> list[Check]:
        """The worst case of each task at the largest dimension, and that gaps shrink with it."""
        results = []
        small, large = self.dims[0], self.dims[-1]
        for name, result in data.items():
            cases = [
                result.sel(time=time, matrix=matrix, ratio=ratio)
                for time, matrix, ratio in product(self.times, MATRICES, self.ratios)
            ]
            first, last = ([compare(case.sel(dim=dim)) for case in cases] for dim in (small, large))
            said = f"the worst of {len(cases)} cases, less two standard errors"
            for what, allowed in ALLOWED.items():
                text = f"{TITLES[name]}, d = {large}: {what}, relative distance"
                worst = np.max([case[what] for case in last])
                results.append(checks.exact(text, worst, 0.0, allowed, note=said))
            text = f"{TITLES[name]}: outliers missing or too many"
            results.append(checks.exact(text, sum(case["wrong"] for case in last), 0))
            text = f"{TITLES[name]}: mean gap at the edges, d = {large} to d = {small}"
            before, after = (np.mean([case["gap"] for case in every]) for every in (first, last))
            said = f"{after:.2g} and {before:.2g} of the bulk"
            results.append(checks.exact(text, after / before, 0.0, 1.0, note=said))
        return results

    def draw(self, data: Data) -> Figure:
        """Histograms with their prediction at the middle ratio, for every state and matrix."""
        rows = list(product(data, MATRICES))
        ratio, dim = self.ratios[len(self.ratios) // 2], self.dims[-1]
        figure, panels = sl.plot.panels(len(rows), len(self.times), width=3.8, height=2.6)
        for row, (name, matrix) in zip(panels, rows, strict=True):
            part = data[name].sel(matrix=matrix, ratio=ratio, dim=dim).isel(index=slice(dim))
            own: Any = {"task": TASKS[name], "ratio": ratio, "matrix": matrix, "dim": dim}
            title = f"{name}: {MATRICES[matrix]}, t = {{:g}}"
            sl.plot.facets(part, "time", partial(draw_histogram, **own), title=title, axes=row)
        return sl.plot.legend_below(figure, 3)


def compare(case: xr.Dataset) -> dict[str, float]:
    """Distances of drawn spectra to their prediction; all but the gap less two standard errors."""
    (low, high), outliers = case.edges.values, case.outliers.values
    width, margin = high - low, MARGIN * (high - low)
    bottoms = case.spectrum.isel(index=slice(int(case.dim))).values
    tops = bottoms[:, ::-1]
    upper = tops[:, np.sum(outliers > high)] - high
    lower = bottoms[:, np.sum(outliers < low)] - low
    above = compare_outliers(tops, outliers, high, margin, near=0.95)
    return {
        "upper edge": beyond(upper / high),
        "lower edge": beyond(lower / width),
        "outliers": above.distance,
        "wrong": above.wrong + checks.wrong_outliers(-bottoms, -outliers, -low, margin),
        "gap": (abs(upper.mean()) + abs(lower.mean())) / width,
    }

"""Bulk edges and outliers predicted from summary statistics, against matrices of data."""

import itertools
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}
TITLES = {"mixture": "softmax regression, 3 classes", "xor": "XOR, 4 neurons"}
MARGIN = 0.05  # outliers nearer to an edge than this part of the bulk are not told from it
RANKS = 6


class Parameters(Settings):
    """States of SGD at which the block of the first row of weights is predicted, and sizes."""

    tasks: int = setting(2, "1: softmax regression; 2: XOR too", least=1, most=2)
    times: tuple[float, ...] = setting((0.0, 6.0, 40.0), "times of the states", least=0)
    ratios: tuple[float, ...] = setting((2.0, 4.0, 10.0), "samples per dimension", above=0)
    dims: tuple[int, ...] = setting((500, 2000), "dimensions of the matrices", least=20)
    draws: int = setting(8, "independent data sets", least=3)


def tasks(count: int) -> dict[str, Any]:
    """Softmax regression and XOR, both with λ = 10."""
    found = {
        "mixture": sl.tasks.GaussianMixture(classes=3, precision=10.0, ridge=0.01),
        "xor": sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.02),
    }
    return dict(list(found.items())[:count])


def compute(p: Parameters, seed: int) -> Data:
    """At states along a solution of the limit: predictions, then the ends of drawn spectra."""
    return {name: one_task(p, task, seed) for name, task in tasks(p.tasks).items()}


def one_task(p: Parameters, task: Any, seed: int) -> xr.Dataset:
    """Everything over dim, case (time, matrix and ratio) and draw."""
    start = task.random_state(max(p.dims), seed=seed + 1)
    solution = sl.effective_dynamics(task).solve(start, time=max(*p.times, 1.0), points=201)
    states = [
        {name: solution[name].sel(time=time, method="nearest").values for name in task.shapes}
        for time in p.times
    ]
    cases = list(itertools.product(range(len(p.times)), MATRICES, p.ratios))
    shape = (len(p.dims), len(cases))
    edges, limits = np.zeros((*shape, 2)), np.zeros((len(cases), 2))
    outliers = np.full((len(cases), RANKS), np.nan)
    measured = np.full((*shape, p.draws, 2 * RANKS), np.nan)
    spectra = np.zeros((len(cases), max(p.dims)))
    for number, (place, matrix, ratio) in enumerate(cases):
        limit = sl.spectra.effective(task, states[place], ratio, matrix)
        limits[number] = limit.edges[[0, -1]]
        values = [o.value for o in limit.outliers for _ in range(o.multiplicity)]
        outliers[number, : len(values)] = values
        for k, dim in enumerate(p.dims):
            finite = sl.spectra.effective(task, states[place], ratio, matrix, dim=dim)
            edges[k, number] = finite.edges[[0, -1]]
            for draw in range(p.draws):
                drawn = spectrum(task, states[place], dim, ratio, matrix, seed + draw)
                measured[k, number, draw] = [*drawn[:RANKS], *drawn[-RANKS:]]
        spectra[number] = drawn
    coords = {
        "dim": list(p.dims),
        "time": ("case", [p.times[place] for place, _, _ in cases]),
        "matrix": ("case", [matrix for _, matrix, _ in cases]),
        "ratio": ("case", [ratio for _, _, ratio in cases]),
    }
    return xr.Dataset(
        {
            "edges": (("dim", "case", "side"), edges),
            "limits": (("case", "side"), limits),
            "outliers": (("case", "rank"), outliers),
            "measured": (("dim", "case", "draw", "end"), measured),
            "spectra": (("case", "index"), spectra),
        }
        | {
            name: (("state", *task.dims[name]), np.stack([state[name] for state in states]))
            for name in task.shapes
        },
        coords,
    )


def spectrum(task: Any, state: Any, dim: int, ratio: float, matrix: str, seed: int) -> np.ndarray:
    """All eigenvalues of the first block on fresh data, increasing."""
    training = sl.spectra.Training(task, dim, 1.0, seed, task.check_state(state))
    weights = next(training.weights_at(np.zeros(1)))
    data = training.unseen(round(ratio * dim))
    return sl.spectra.Empirical(task, data, weights.W, weights.v).eigenvalues(matrix, 0)


def compare(data: xr.Dataset, k: int, case: int) -> dict[str, float]:
    """Distances of one case at one dimension, beyond what the draws leave open."""
    low, high = data.edges.values[k, case]
    drawn = data.measured.values[k, case]
    values = data.outliers.values[case]
    above = np.sort(values[values > high])[::-1]
    below = np.sort(values[values < low])
    tops, bottoms = drawn[:, ::-1], drawn
    width = high - low
    clear = above[above > high + MARGIN * width]
    found = {
        "upper edge": _beyond(tops[:, len(above)] / high - 1),
        "lower edge": _beyond((bottoms[:, len(below)] - low) / width),
        "wrong": _wrong(tops, above, high, width) + _wrong(-bottoms, -below, -low, width),
        "outliers": 0.0,
    }
    place = 0
    while place < len(clear):  # nearly equal ones repel each other by 1/√dim: compare their mean
        near = int(np.sum(clear[place:] > 0.95 * clear[place]))
        ratio = tops[:, place : place + near].mean(axis=1) / clear[place : place + near].mean()
        found["outliers"] = max(found["outliers"], _beyond(ratio - 1))
        place += near
    return found


def _wrong(ends: np.ndarray, outliers: np.ndarray, edge: float, width: float) -> int:
    """Outliers that are predicted and not there, or there and not predicted, beyond the margin."""
    mean, error = ends.mean(axis=0), ends.std(axis=0, ddof=1) / np.sqrt(len(ends))
    place, bound = len(outliers), edge + MARGIN * width
    missing = np.sum((outliers > bound) & (mean + 2 * error < bound)[:place])
    return int(missing + np.sum((mean - 2 * error > bound)[place:]))


def _beyond(gaps: np.ndarray) -> float:
    """The size of a mean, less its standard error times what chance allows."""
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return max(0.0, abs(float(gaps.mean())) - 2 * float(error))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """The worst case of each task at the largest dimension, and that gaps shrink with it."""
    found = []
    for name, result in data.items():
        every = [[compare(result, k, case) for case in _cases(result)] for k in range(len(p.dims))]
        said = f"the worst of {result.sizes['case']} cases, less two standard errors"
        for what, allowed in (("upper edge", 0.02), ("lower edge", 0.02), ("outliers", 0.03)):
            worst = max(case[what] for case in every[-1])
            text = f"{TITLES[name]}, d = {p.dims[-1]}: {what}, relative distance"
            found.append(checks.exact(text, worst, 0.0, allowed, note=said))
        wrong = sum(case["wrong"] for case in every[-1])
        found.append(checks.exact(f"{TITLES[name]}: outliers missing or too many", wrong, 0.0, 0.0))
        gaps = [np.mean([_gap(result, k, case) for case in _cases(result)]) for k in (0, -1)]
        found.append(
            checks.exact(
                f"{TITLES[name]}: mean gap at the edges, d = {p.dims[-1]} to d = {p.dims[0]}",
                gaps[1] / gaps[0],
                0.0,
                1.0,
                note=f"{gaps[1]:.2g} and {gaps[0]:.2g} of the bulk",
            )
        )
    return found


def _cases(result: xr.Dataset) -> range:
    return range(result.sizes["case"])


def _gap(result: xr.Dataset, k: int, case: int) -> float:
    """Of mean and predicted ends together, as a part of the bulk."""
    drawn, edges = result.measured.values[k, case], result.edges.values[k, case]
    values = result.outliers.values[case]
    above, below = np.sum(values > edges[1]), np.sum(values < edges[0])
    mean = drawn.mean(axis=0)
    distance = abs(mean[::-1][above] - edges[1]) + abs(mean[below] - edges[0])
    return float(distance / (edges[1] - edges[0]))


def draw(p: Parameters, data: Data) -> Figure:
    """Histograms with their prediction at the middle ratio, for every state and matrix."""
    ratio = p.ratios[len(p.ratios) // 2]
    rows = [(name, matrix) for name in data for matrix in MATRICES]
    figure, panels = picture.panels(len(rows), len(p.times), width=3.8, height=2.6)
    for row, (name, matrix) in zip(panels, rows, strict=True):
        task, result = tasks(p.tasks)[name], data[name]
        for place, panel in enumerate(row):
            chosen = [
                c
                for c in _cases(result)
                if result.matrix.values[c] == matrix
                and result.ratio.values[c] == ratio
                and result.time.values[c] == p.times[place]
            ]
            state = {variable: result[variable].values[place] for variable in task.shapes}
            predicted = sl.spectra.effective(task, state, ratio, matrix, dim=p.dims[-1])
            sl.plot.spectrum(result.spectra.values[chosen[0]], predicted, axes=panel)
            panel.set_title(f"{name}: {MATRICES[matrix]}, t = {p.times[place]:g}", fontsize=10)
    picture.legend(figure, panels, columns=3)
    return figure


EXPERIMENT = Experiment(
    paper="ours",
    figure="effective spectra",
    claim="Summary statistics alone predict the bulk edges and outliers of matrices of data.",
    parameters=Parameters,
    tiny={"tasks": 1, "times": (6.0,), "ratios": (4.0,), "dims": (60, 300), "draws": 6},
    quick={"ratios": (4.0,), "dims": (100, 400)},
    compute=compute,
    check=check,
    draw=draw,
)

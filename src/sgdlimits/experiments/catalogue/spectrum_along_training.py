"""Outlier curves from the effective dynamics alone, and when outliers leave or enter the bulk."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}
MARGIN = 0.1  # outliers nearer to an edge than this part of the bulk are not told from it


class Parameters(Settings):
    """Softmax regression with orthonormal means, from random weights; the first class block."""

    classes: int = setting(3, "number k of classes", least=2)
    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(4.0, "samples in the matrices, per dimension", above=0)
    precision: float = setting(10.0, "λ, the inverse variance of the noise", above=0)
    ridge: float = setting(0.01, "ridge β", above=0)
    time: float = setting(40.0, "duration, in units of d samples", above=0)
    points: int = setting(12, "times after the start at which the matrices are computed", least=2)
    runs: int = setting(6, "runs of SGD, each with its own data", least=3)


def compute(p: Parameters, seed: int) -> Data:
    """Solve the limit and predict along it; track runs from the same start."""
    task = sl.tasks.GaussianMixture(classes=p.classes, precision=p.precision, ridge=p.ridge)
    start = task.random_state(p.dim, seed=seed)
    solution = sl.effective_dynamics(task).solve(start, time=p.time, points=4 * p.points + 1)
    data = {}
    for matrix in MATRICES:
        path = sl.spectra.effective_path(task, solution, p.ratio, matrix, dim=p.dim)
        moves = np.array([(t.time, t.change) for t in path.transitions]).reshape(-1, 2)
        data[matrix] = path.dataset.assign(transitions=(("transition", "what"), moves))
    times = np.linspace(0, p.time, p.points + 1)
    samples = round(p.ratio * p.dim)
    runs = [
        sl.spectra.track(task, p.dim, samples, times, seed=seed + run, init=start, blocks=[0])
        for run in range(p.runs)
    ]
    data["runs"] = xr.concat([run.eigenvalues.isel(block=0) for run in runs], "run").to_dataset()
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Outlier curves against the mean over runs, and none missing or too many."""
    found = []
    for matrix, word in MATRICES.items():
        worst, wrong, compared = 0.0, 0, 0
        for time in data["runs"].time.values:
            predicted = data[matrix].sel(time=time, method="nearest")
            values = data["runs"].eigenvalues.sel(time=time, matrix=matrix).values
            mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(p.runs)
            low, high = float(predicted.low), float(predicted.high)
            curves = np.sort(predicted.outliers.values)[::-1]  # NaN first
            curves = curves[curves > high]
            bound = high + MARGIN * (high - low)
            clear = int(np.sum(curves > bound))
            compared += clear
            if clear:
                # nearly equal ones repel each other by 1/√dim: compare their sum
                sums = values[:, :clear].sum(axis=1) / curves[:clear].sum() - 1
                gap = abs(float(sums.mean())) - 2 * float(sums.std(ddof=1)) / np.sqrt(p.runs)
                worst = max(worst, gap)
            wrong += int(np.sum((mean + 2 * error)[:clear] < bound))
            wrong += int(np.sum((mean - 2 * error)[len(curves) :] > bound))
        moves = ", ".join(
            f"{'+' if change > 0 else ''}{change:.0f} at t = {time:.3g}"
            for time, change in data[matrix].transitions.values
        )
        found += [
            checks.exact(
                f"{word}: sum of outliers, largest relative distance over time",
                worst,
                0.0,
                0.03,
                note=f"{compared} outliers at {p.points + 1} times, less two standard errors",
            ),
            checks.exact(
                f"{word}: outliers missing or too many, over all times",
                wrong,
                0.0,
                0.0,
                note=f"predicted transitions: {moves or 'none'}",
            ),
        ]
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """Predicted curves, bulk and transitions, with the eigenvalues of the runs."""
    figure, panels = picture.panels(1, 2, width=5.2, height=3.8)
    for panel, (matrix, word) in zip(panels[0], MATRICES.items(), strict=True):
        predicted = data[matrix]
        panel.fill_between(
            predicted.time, predicted.low, predicted.high, color="0.6", alpha=0.3, lw=0,
            label="effective bulk",
        )  # fmt: skip
        curves = predicted.outliers.transpose("time", "rank")
        panel.plot(predicted.time, curves, color=sl.plot.style.LIMIT, label="effective outliers")
        runs = data["runs"].eigenvalues.sel(matrix=matrix)
        error = runs.std("run", ddof=1) / np.sqrt(p.runs)
        for rank in range(runs.sizes["rank"]):
            panel.errorbar(
                runs.time,
                runs.mean("run").isel(rank=rank),
                error.isel(rank=rank),
                fmt="o",
                ms=4,
                color=sl.plot.style.SIMULATION,
                label=f"SGD, mean of {p.runs} runs",
            )
        for time, change in predicted.transitions.values:
            verb, dashes = ("enters", "--") if change < 0 else ("leaves", ":")
            said = f"an outlier {verb} the bulk"
            panel.axvline(time, color=sl.plot.style.PATHS, lw=1, ls=dashes, label=said)
        panel.set(title=word, xlabel=sl.plot.style.TIME_LABEL, ylim=(0, None))
    panels[0, 0].set_ylabel("eigenvalue")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="ours",
    figure="effective spectra over time",
    claim="Outliers along training follow from the effective dynamics, with no data at all.",
    parameters=Parameters,
    tiny={"dim": 200, "points": 3, "runs": 4, "time": 20.0},
    quick={"dim": 400, "points": 10},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)

"""XOR: the wider the network, the more random starts lead to an optimal one."""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

LONG = 400.0  # until rest: the slowest rate is 1/8 - ridge
SMALL = 10**6  # dimension of starts of the limit, whose overlaps are 0+ or 0-


class Parameters(Settings):
    """Widths of the network; the data have no noise."""

    widths: tuple[int, ...] = setting((4, 5, 6, 7, 8, 9, 10), "numbers K of neurons", least=2)
    ridge: float = setting(0.05, "ridge α, below 1/8", above=0, most=0.1)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD, and starts of the limit", least=20)
    time: float = setting(30.0, "duration of SGD, in units of dim samples", least=10)


def compute(p: Parameters, seed: int) -> Data:
    """Count the optimal networks at the end of SGD, and where the limit comes to rest."""
    hits = []
    for width in p.widths:
        task = sl.tasks.XorMixture(width=width, precision=math.inf, ridge=p.ridge)
        runs = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, points=2, seed=seed + width)
        starts = task.random_states(SMALL, seed=seed + 100 + width, runs=range(p.runs))
        rest = sl.effective_dynamics(task).solve(starts, time=LONG, points=2)
        hits.append([optimal(ends).sum() for ends in (runs, rest)])
    return {
        "chances": xr.Dataset(
            {"hits": (("width", "how"), np.array(hits))},
            {"width": list(p.widths), "how": ["SGD", "limit"]},
        )
    }


def optimal(runs: xr.Dataset) -> np.ndarray:
    """Whether at the end all four means are on their side of the boundary."""
    v, m = runs.v.values[:, -1, :, None], runs.M.values[:, -1]
    margins = [np.sum(v * np.maximum(sign * m, 0), axis=1) for sign in (1, -1)]
    return np.all(np.array(margins) * [1, -1] > 0, axis=(0, 2))  # labels of mu, and of nu


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Formula (5.2) at every width, for the limit and for SGD."""
    return [
        checks.proportion(
            f"optimal end points of {how}, K = {width}",
            int(data["chances"].hits.sel(how=how, width=width)),
            p.runs,
            sl.theory.xor.success_probability(width),
        )
        for width in p.widths
        for how in ("SGD", "limit")
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Formula and fractions with their exact intervals over the width."""
    figure, panels = picture.panels(1, 1, width=5.6, height=3.8)
    panel, widths = panels[0, 0], np.array(p.widths)
    order = np.arange(min(4, widths.min()), widths.max() + 1)
    formula = [sl.theory.xor.success_probability(int(width)) for width in order]
    panel.plot(order, formula, "k", label="formula (5.2)")
    for how, color, shift in (
        ("SGD", sl.plot.style.SIMULATION, -0.07),
        ("limit", sl.plot.style.PATHS, 0.07),
    ):
        hits = data["chances"].hits.sel(how=how).values
        intervals = [
            stats.binomtest(int(count), p.runs).proportion_ci(0.95, method="exact")
            for count in hits
        ]
        share = hits / p.runs
        panel.errorbar(
            widths + shift,
            share,
            np.abs(np.transpose(intervals) - share),
            fmt="o",
            markersize=5,
            capsize=3,
            color=color,
            label=f"SGD, N = {p.dim}" if how == "SGD" else "limit N → ∞",
        )
    panel.set(xlabel="width $K$", ylabel="chance to end optimal", ylim=(0, 1))
    panel.set_xticks(order)
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="(5.2)",
    claim="XOR: the chance that SGD ends at a global minimum tends to 1 as the width grows.",
    parameters=Parameters,
    tiny={"widths": (6,), "runs": 128, "time": 20.0},
    quick={"widths": (4, 6, 8), "runs": 256, "time": 20.0},
    compute=compute,
    check=check,
    draw=draw,
)

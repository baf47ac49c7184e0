"""XOR with four neurons: three random starts in 32 lead SGD to an optimal network."""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

LONG = 1500.0  # until rest: the slowest rate is 1/8 - ridge
SMALL = 10**6  # dimension of starts of the limit, whose overlaps are 0+ or 0-
LIMIT, FOLLOWED = "limit", "SGD, λ = ∞,\nthen the limit"


class Parameters(Settings):
    """Noise levels of the data; no noise at all is always added."""

    precisions: tuple[float, ...] = setting(
        (10.0, 100.0, 1000.0, 10000.0), "precisions λ of the data", least=1
    )
    ridge: float = setting(0.1, "ridge α, below 1/8", above=0, most=0.11)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD, and starts of the limit", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", least=20)


def compute(p: Parameters, seed: int) -> Data:
    """Optimal networks by the signs of SGD, and by where the limit without noise comes to rest."""
    hits = {}
    for number, precision in enumerate([*p.precisions, math.inf]):
        task = sl.tasks.XorMixture(width=4, precision=precision, ridge=p.ridge)
        runs = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, points=2, seed=seed + number)
        word = f"{precision:g}" if math.isfinite(precision) else "∞"
        hits[f"SGD,\nλ = {word}"] = int(signs(runs).sum())
    ends = {name: runs[name].values[:, -1] for name in ("v", "M", "R")}
    starts = task.random_states(SMALL, seed=seed + 100, runs=range(p.runs))
    limit = sl.effective_dynamics(task)
    for name, sample in ((FOLLOWED, ends), (LIMIT, starts)):
        hits[name] = int(optimal(limit.solve(sample, time=LONG, points=2)).sum())
    return {"chances": xr.Dataset({"hits": ("how", [*hits.values()])}, {"how": [*hits]})}


def signs(runs: xr.Dataset) -> np.ndarray:
    """Whether v and the overlaps at the end have the signs of an optimal network (Fig. 10)."""
    v, m = runs.v.values[:, -1], runs.M.values[:, -1]
    sides = [(v > 0, m[..., 0]), (v < 0, m[..., 1])]
    return np.all(
        [np.any(chosen & (s * x > 0), axis=1) for chosen, x in sides for s in (1, -1)], axis=0
    )


def optimal(rest: xr.Dataset) -> np.ndarray:
    """Whether all four means are on their side of the boundary, where the limit is at rest."""
    v, m = rest.v.values[:, -1, :, None], rest.M.values[:, -1]
    margins = [np.sum(v * np.maximum(sign * m, 0), axis=1) for sign in (1, -1)]
    return np.min(np.array(margins) * [1, -1], axis=(0, 2)) > 1e-3


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """3/32 without noise, three ways; and at the largest precision."""
    hits = data["chances"].hits
    largest = f"SGD,\nλ = {max(p.precisions):g}"
    formula = sl.theory.xor.success_probability(4)
    return [
        checks.exact("formula (5.2) at K = 4", formula, 3 / 32, 1e-12),
        *(
            checks.proportion(
                f"optimal end points: {name.replace(chr(10), ' ')}",
                int(hits.sel(how=name)),
                p.runs,
                formula,
            )
            for name in (LIMIT, FOLLOWED, "SGD,\nλ = ∞", largest)
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Fractions with their exact intervals."""
    figure, panels = picture.panels(1, 1, width=7.2, height=3.8)
    panel, hits = panels[0, 0], data["chances"].hits
    share = hits.values / p.runs
    intervals = [
        stats.binomtest(int(count), p.runs).proportion_ci(0.95, method="exact")
        for count in hits.values
    ]
    panel.axhline(3 / 32, color="k", ls="--", label="3/32, predicted for λ → ∞")
    colors = [
        sl.plot.style.SIMULATION if str(name).startswith("SGD,\n") else sl.plot.style.PATHS
        for name in hits.how.values
    ]
    labels = {
        sl.plot.style.SIMULATION: "by the signs of v and m at the end",
        sl.plot.style.PATHS: "by the rest point that is reached",
    }
    for place, color in enumerate(colors):
        panel.errorbar(
            place,
            share[place],
            np.abs(np.array(intervals[place])[:, None] - share[place]),
            fmt="o",
            capsize=4,
            color=color,
            label=labels[color],
        )
    panel.set_xticks(range(len(share)), [str(name) for name in hits.how.values])
    panel.set(ylabel="optimal end points", ylim=(0, None))
    picture.legend(figure, panels, columns=2)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 10",
    claim="XOR, four neurons: 3 of 32 random starts lead to an optimal network, 29 do not.",
    parameters=Parameters,
    tiny={"precisions": (10000.0,), "runs": 128, "time": 20.0},
    quick={"precisions": (100.0, 1000.0, 10000.0), "time": 20.0},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)

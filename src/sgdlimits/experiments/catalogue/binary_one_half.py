"""Two classes: half of the random starts lead SGD to the optimal classifier."""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SETTLED = 30.0  # time after which no solution of the limit changes a sign any more
GOLDEN = (math.sqrt(5) - 1) / 2


class Parameters(Settings):
    """Noise levels of the data; no noise at all is always added."""

    precisions: tuple[float, ...] = setting(
        (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0), "precisions λ of the data", least=1
    )
    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", least=20)
    starts: int = setting(512, "starts of the limit at each precision", least=32)


def compute(p: Parameters, seed: int) -> Data:
    """Count the end points of SGD, and those of the limit from starts spread over their law."""
    hits, shares = [], []
    precisions = [*p.precisions, math.inf]
    for number, precision in enumerate(precisions):
        task = sl.tasks.BinaryMixture(precision=precision, ridge=p.ridge)
        runs = sl.simulate(task, dim=p.dim, runs=p.runs, time=p.time, points=2, seed=seed + number)
        hits.append(_apart(runs).sum())
        if math.isfinite(precision):
            limit = sl.effective_dynamics(task, nodes=64)
            shares.append(_apart(limit.solve(spread(p.starts), time=SETTLED, points=2)).mean())
    found = xr.Dataset(
        {"hits": ("precision", np.array(hits)), "limit": ("precision", [*shares, 0.5])},
        {"precision": precisions},
    )
    return {"fractions": found}


def spread(count: int) -> dict[str, np.ndarray]:
    """Starts v ~ N(0, I), m = 0, R = I on a lattice.

    Neurons may be exchanged, and all signs changed: angles of a quarter circle are enough.
    """
    place = np.arange(count) + 0.5
    angle = np.pi / 2 * (GOLDEN * place % 1 - 0.5)
    v = np.sqrt(-2 * np.log(place / count))[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return {"v": v, "M": np.zeros((count, 2, 1)), "R": np.tile(np.eye(2), (count, 1, 1))}


def _apart(ends: xr.Dataset) -> np.ndarray:
    return ends.M.values[:, -1].prod(axis=(1, 2)) < 0


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """One half without noise and with little; the limit's own number where there is much."""
    found = data["fractions"]
    least, largest = min(p.precisions), max(p.precisions)
    wanted = [
        (math.inf, 0.5, "each neuron keeps the sign of m + v, at any N"),
        (largest, 0.5, "predicted for λ → ∞"),
        (least, float(found.limit.sel(precision=least)), "predicted by the limit at this λ"),
    ]
    return [
        checks.proportion(
            f"end points with m₁m₂ < 0, λ = {_word(precision)}",
            int(found.hits.sel(precision=precision)),
            p.runs,
            expected,
            note=note,
        )
        for precision, expected, note in wanted
    ]


def _word(precision: float) -> str:
    return f"{precision:g}" if math.isfinite(precision) else "∞"


def draw(p: Parameters, data: Data) -> Figure:
    """Fractions with their exact intervals over the precision; no noise on the far right."""
    figure, panels = picture.panels(1, 1, width=6.4, height=3.6)
    panel, found = panels[0, 0], data["fractions"]
    place = np.arange(len(found.precision))
    share = found.hits.values / p.runs
    intervals = [
        stats.binomtest(int(hits), p.runs).proportion_ci(0.95, method="exact")
        for hits in found.hits.values
    ]
    panel.axhline(0.5, color="k", ls="--", label="1/2, predicted for λ → ∞")
    panel.plot(place, found.limit, "k_", ms=22, mew=2, label="limit N → ∞ at this λ")
    panel.errorbar(
        place,
        share,
        np.abs(np.transpose(intervals) - share),
        fmt="o",
        capsize=4,
        color=sl.plot.style.SIMULATION,
        label=f"SGD, {p.runs} runs, 95 % intervals",
    )
    panel.set_xticks(place, [_word(precision) for precision in found.precision.values])
    panel.set(xlabel="precision $\\lambda$", ylabel="fraction with $m_1 m_2 < 0$", ylim=(0.3, 0.8))
    picture.legend(figure, panels, columns=2)
    return figure


EXPERIMENT = Experiment(
    paper="000",
    figure="Fig. 7",
    claim="Binary mixture: half of the runs end at the optimal classifiers, half on the rings.",
    parameters=Parameters,
    tiny={"precisions": (1.0, 1000.0), "runs": 128, "time": 25.0, "starts": 64},
    quick={"precisions": (1.0, 10.0, 100.0, 1000.0), "time": 25.0, "starts": 128},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)

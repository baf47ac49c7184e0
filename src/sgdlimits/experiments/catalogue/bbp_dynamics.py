"""Matrix PCA at its saddle: √N·m diffuses, stably below and unstably above, while r² settles."""

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SIDES = ("below", "above")
SHOWN = 40  # runs drawn as lines
POINTS = 81


class Parameters(Settings):
    """Two signal-to-noise ratios, and a start on the equator m = 0 away from r² = 1."""

    below: float = setting(0.8, "signal-to-noise ratio below the transition", above=0, most=0.99)
    above: float = setting(1.2, "signal-to-noise ratio above the transition", least=1.01)
    radius: float = setting(0.2, "r² at the start", above=0)
    dim: int = setting(2000, "dimension N", least=200)
    runs: int = setting(1000, "independent runs of SGD", least=50)
    early: float = setting(0.4, "when laws are compared: √N·m is still far below √N", above=0)
    time: float = setting(1.6, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from (0, r²), and the standard deviations of the SDE of (√N·m, r²) from there."""
    start = {"m": 0.0, "r2": p.radius}
    data: Data = {}
    for number, side in enumerate(SIDES):
        task = sl.tasks.SpikedTensor(order=2, snr=getattr(p, side))
        limit = sl.effective_dynamics(task)
        data[f"sgd_{side}"] = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + number, init=start, points=POINTS
        )
        path = limit.solve(start, times=data[f"sgd_{side}"].time)
        data[f"spread_{side}"] = limit.fluctuations(path)
    return data


def radius(p: Parameters, times: np.ndarray, power: int = 1) -> np.ndarray:
    """r²(t) from dr² = −8 r² (r^(2·power) − 1) dt: power 1 is right, 2 is printed."""
    start = p.radius**power
    return (1 + (1 / start - 1) * np.exp(-8 * power * times)) ** (-1 / power)


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Law and variance of √N·m; r² on its way, with and without the misprint."""
    found = []
    for side in SIDES:
        overlaps = data[f"sgd_{side}"].m.sel(time=p.early, method="nearest")
        rescaled = np.sqrt(p.dim) * overlaps.values
        deviation = float(data[f"spread_{side}"].m.sel(time=p.early, method="nearest"))
        law = stats.norm(scale=deviation)  # the SDE is linear in √N·m, which starts at 0
        found += [
            checks.distribution(f"law of √N·m {side}, against the SDE", rescaled, law),
            checks.variance(f"variance of √N·m {side}", rescaled, deviation**2),
        ]
    sgd = data["sgd_below"]
    right, wrong = (radius(p, sgd.time.values, power) for power in (1, 2))
    at = int(np.argmax(np.abs(right - wrong)))
    return [
        *found,
        checks.mean(
            f"r² at time {float(sgd.time[at]):.2f}",
            sgd.r2.values[:, at],
            right[at],
            note="printed: −8ũ₂(ũ₂² − 1)",
            printed=float(wrong[at]),
            bias=4 / p.dim,  # the variance of r² at rest, by which −8r⁴ lowers the mean
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Rescaled overlaps below and above with two standard deviations, and r² over time."""
    figure, panels = picture.panels(1, 3, width=3.7, height=3.3)
    for panel, side in zip(panels[0], SIDES, strict=False):
        sgd = data[f"sgd_{side}"].isel(run=slice(SHOWN))
        colour = sl.plot.style.SIMULATION
        lines = panel.plot(sgd.time, np.sqrt(p.dim) * sgd.m.T, color=colour, lw=0.5, alpha=0.5)
        lines[0].set_label("SGD")
        spread = data[f"spread_{side}"].m
        for sign in (-2, 2):
            panel.plot(spread.time, sign * spread, "k--", lw=1.3, label="± 2 s.d. of the SDE")
        panel.set(title=f"$\\lambda = {getattr(p, side):g}$", ylabel="$\\sqrt{N}\\, m$")
    last, sgd = panels[0, 2], data["sgd_below"].isel(run=slice(SHOWN))
    last.plot(sgd.time, sgd.r2.T, color=sl.plot.style.SIMULATION, lw=0.5, alpha=0.5)
    last.plot(sgd.time, radius(p, sgd.time.values), "k", label="limit of $r^2$")
    printed = radius(p, sgd.time.values, 2)
    last.plot(sgd.time, printed, color=sl.plot.style.PATHS, ls=":", lw=2, label="as printed")
    last.set(title=f"$\\lambda = {p.below:g}$", ylabel="$r_\\perp^2$")
    for panel in panels[0]:
        panel.set_xlabel("time $t$ (= samples / $N$)")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="J24",
    figure="Fig. 4.2",
    claim="At the saddle √N·m is a diffusion, stable below λ = 1 and not above, while r² → 1.",
    parameters=Parameters,
    tiny={"runs": 400},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)

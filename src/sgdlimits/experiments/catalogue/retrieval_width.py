"""Phase retrieval by wide networks: many runs of SGD and the ODE from the same start."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.catalogue.retrieval_risk import with_risk
from sgdlimits.experiments.settings import Settings, setting

POINTS = 61
SMALL = 1e-5  # an overlap in the linear regime
STARTS = ("random", "informed")
SHOWN = 25  # runs drawn as lines


class Parameters(Settings):
    """The paper's γ is the step; its time is ours divided by the width p."""

    widths: tuple[int, ...] = setting((5, 20), "numbers of neurons p", least=1)
    rate: float = setting(0.12, "step over width, γ/p", above=0)
    noise: float = setting(0.0, "variance Δ of the label noise", least=0)
    overlap: float = setting(0.3, "overlaps at the informed start", above=0, most=0.9)
    dim: int = setting(5000, "dimension d", least=100)
    runs: int = setting(60, "independent runs of SGD from each start", least=10)
    time: float = setting(2.5, "duration over width, the paper's time", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """Risk of SGD and of the ODE for each width, from a random start and from an informed one."""
    data: Data = {}
    for width in p.widths:
        task = sl.tasks.PhaseRetrieval(width=width, noise=p.noise, spherical=True)
        limit = sl.effective_dynamics(task, step=p.rate * width)
        start = task.random_state(p.dim, seed=seed)
        informed = {
            "M": np.full((width, 1), p.overlap),
            "R": (1 - p.overlap**2) * np.eye(width),
        }
        pair = {name: np.stack([start[name], informed[name]]) for name in start}
        sgd = sl.simulate(
            task,
            dim=p.dim,
            step=p.rate * width,
            runs=2 * p.runs,
            time=p.time * width,
            seed=seed,
            init={name: np.repeat(x, p.runs, axis=0) for name, x in pair.items()},
            points=POINTS,
        )
        ode = limit.solve(pair, times=sgd.time)
        near_zero = {"M": np.full((width, 1), SMALL), "R": np.eye(width)}
        growth = limit.drift(near_zero)["M"][0, 0] / SMALL
        for number, name in enumerate(STARTS):
            own = sgd.isel(run=slice(number * p.runs, (number + 1) * p.runs))
            data[f"sgd_{name}_{width}"] = with_risk(own, p.noise)
            data[f"ode_{name}_{width}"] = with_risk(ode.isel(run=number, drop=True), p.noise)
        data[f"growth_{width}"] = xr.Dataset({"rate": growth})
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Mean risk against the ODE from the informed start; the rate (38) at which overlaps grow."""
    found = []
    for width in p.widths:
        # at a random start m is as small as its noise, and the ODE no limit of the mean
        runs, path = data[f"sgd_informed_{width}"], data[f"ode_informed_{width}"]
        rate = sl.theory.phase_retrieval.growth_rate(width, p.rate * width, p.noise)
        found += [
            checks.path(f"mean risk over time, p = {width}", runs, path, "risk"),
            checks.exact(
                f"growth rate of small overlaps, p = {width}",
                data[f"growth_{width}"].rate,
                rate,
                1e-6,
            ),
        ]
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """One panel for each width, both starts in each."""
    figure, panels = picture.panels(1, len(p.widths), height=3.5, sharey=True)
    colours = dict(zip(STARTS, (sl.plot.style.SIMULATION, sl.plot.style.PATHS), strict=True))
    for panel, width in zip(panels[0], p.widths, strict=True):
        for name, colour in colours.items():
            runs = data[f"sgd_{name}_{width}"].isel(run=slice(SHOWN))
            path = data[f"ode_{name}_{width}"]
            lines = panel.plot(runs.time / width, runs.risk.T, color=colour, lw=0.5, alpha=0.5)
            lines[0].set_label(f"SGD, {name} start")
            panel.plot(path.time / width, path.risk, "k", lw=1.8, label="ODE")
        panel.set(title=f"$p = {width}$", xlabel="time $t/p$ (= step × samples / ($p$ dim))")
    panels[0, 0].set_ylabel("population risk")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="AKLS23",
    figure="Fig. 2",
    claim="Wide networks: SGD scatters around the ODE from a random start and follows it later.",
    parameters=Parameters,
    tiny={"widths": (3,), "dim": 1000, "runs": 30},
    quick={"widths": (5, 10), "dim": 1000},
    compute=compute,
    check=check,
    draw=draw,
)

"""Phase retrieval on the sphere: risk over time by ODE, SDE and SGD, all from the same start."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

POINTS = 101
REFINED = 8  # steps of the SDE between two points: Euler's scheme grows too slowly by rate·step/2
SHOWN = 25  # runs drawn as lines


class Parameters(Settings):
    """One neuron; the paper's γ is the step, and for one neuron its time is ours."""

    width: int = setting(1, "number of neurons p", least=1)
    step: float = setting(0.05, "step γ", above=0)
    noise: float = setting(0.5, "variance Δ of the label noise", above=0)
    threshold: float = setting(0.5, "share T of the excess risk lost at exit", above=0, most=0.9)
    dim: int = setting(3000, "dimension d", least=100)
    runs: int = setting(200, "independent runs of SGD, and of the SDE", least=20)
    time: float = setting(6.0, "duration, in units of dim/step samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """Risk of SGD, of the SDE and of the ODE, from overlaps of the size 1/√d that is typical."""
    task = sl.tasks.PhaseRetrieval(width=p.width, noise=p.noise, spherical=True)
    # the diffusion has moments of degree 12 at most, which 7 nodes for each variable integrate
    limit = sl.effective_dynamics(task, step=p.step, nodes=7 ** (p.width + 1))
    overlaps = np.full((p.width, 1), p.dim**-0.5)
    start = {"M": overlaps, "R": np.eye(p.width) - overlaps @ overlaps.T}
    common: dict[str, Any] = {"dim": p.dim, "time": p.time, "runs": p.runs}
    sgd = sl.simulate(task, step=p.step, init=start, seed=seed, points=POINTS, **common)
    fine = limit.sample_paths(start, seed=seed + 1, points=REFINED * (POINTS - 1) + 1, **common)
    sde = fine.isel(time=slice(None, None, REFINED))
    ode = limit.solve(start, times=sgd.time)
    return {name: with_risk(x, p.noise) for name, x in {"sgd": sgd, "sde": sde, "ode": ode}.items()}


def with_risk(result: xr.Dataset, noise: float) -> xr.Dataset:
    """The overlap of the first neuron, and the population risk (6) with Q = R + M Mᵀ."""
    overlaps = result.M.isel(anchor=0).transpose(..., "neuron").values
    orthogonal = result.R.transpose(..., "neuron", "neuron_").values
    gram = orthogonal + overlaps[..., :, None] * overlaps[..., None, :]
    width = overlaps.shape[-1]
    norms = np.diagonal(gram, axis1=-2, axis2=-1)
    cross = (norms + 2 * overlaps**2).sum(axis=-1) / width
    network = norms.sum(axis=-1) ** 2 + 2 * (gram**2).sum(axis=(-2, -1))
    risk = (3 + noise) / 2 - cross + network / (2 * width**2)
    over = [dim for dim in ("run", "time") if dim in result.dims]
    return xr.Dataset(
        {"risk": (over, risk), "overlap": (over, overlaps[..., 0])},
        coords={name: result[name] for name in over},
        attrs=result.attrs,
    )


def exit_times(p: Parameters, result: xr.Dataset) -> np.ndarray:
    """First time, for each run, at which the excess risk has lost a share ``threshold``, (9)."""
    excess = np.atleast_2d(result.risk.values) - p.noise / 2
    below = excess <= (1 - p.threshold) * excess[:, :1]
    return np.where(below.any(axis=1), result.time.values[below.argmax(axis=1)], np.nan)


def comparisons(p: Parameters, data: Data) -> list[checks.Check]:
    """Law of the overlap when the ODE exits, and exit times: SGD against the SDE."""
    times = {kind: exit_times(p, data[kind]) for kind in ("sgd", "sde", "ode")}
    at = data["ode"].time.values.searchsorted(times["ode"][0])
    overlaps = [data[kind].overlap.values[:, at] for kind in ("sgd", "sde")]
    means = ", ".join(f"{kind.upper()} {np.nanmean(x):.3f}" for kind, x in times.items())
    return [
        checks.distribution("law of m at the exit of the ODE: SGD against SDE", *overlaps),
        checks.mean("mean exit time, SGD minus SDE", times["sgd"] - times["sde"], 0.0, note=means),
    ]


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """The comparisons of SGD and SDE, and the excess risk (8) that remains."""
    excess = data["sgd"].risk.values[:, -1] - p.noise / 2
    expected = sl.theory.phase_retrieval.excess_risk(p.step, p.noise)
    return [*comparisons(p, data), checks.mean("excess risk at the end, (8)", excess, expected)]


def draw(p: Parameters, data: Data) -> Figure:
    """Risk over time on the left, histograms of exit times on the right."""
    figure, panels = picture.panels(1, 2, height=3.6, width_ratios=(1.25, 1))
    left, right = panels[0]
    colours = {"sgd": sl.plot.style.SIMULATION, "sde": sl.plot.style.PATHS}
    ends = {kind: exit_times(p, data[kind]) for kind in ("sgd", "sde", "ode")}
    bins = np.linspace(0, np.nanmax([ends["sgd"], ends["sde"]]), 25)
    for kind, colour in colours.items():
        runs = data[kind].isel(run=slice(SHOWN))
        lines = left.plot(runs.time, runs.risk.T, color=colour, lw=0.6, alpha=0.5)
        lines[0].set_label(kind.upper())
        right.hist(ends[kind], bins, color=colour, alpha=0.3)
        right.hist(ends[kind], bins, color=colour, histtype="step", lw=1.4)
        right.axvline(np.nanmean(ends[kind]), color=colour, ls="--", label=f"mean, {kind.upper()}")
    left.plot(data["ode"].time, data["ode"].risk, "k", lw=2, label="ODE")
    left.axhline(p.noise / 2, color="k", ls=":", lw=1, label="Δ/2")
    right.axvline(ends["ode"][0], color="k", lw=2)
    left.set(xlabel=sl.plot.style.TIME_LABEL, ylabel="population risk")
    right.set(xlabel=f"exit time, threshold T = {p.threshold:g}", ylabel="runs")
    picture.legend(figure, panels, columns=6)
    return figure


EXPERIMENT = Experiment(
    paper="AKLS23",
    figure="Fig. 1 left",
    claim="Phase retrieval: the SDE has the spread of SGD that the ODE lacks; exit times agree.",
    parameters=Parameters,
    tiny={"dim": 200, "runs": 60},
    quick={"dim": 1000, "runs": 120},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)

"""Matrix PCA from random starts, seen at the scale 1/√n of the overlap, where it diffuses."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SHOWN = 40  # runs in a picture
EQUATOR = {"m": 0.0, "r2": 1.0}


class Parameters(Settings):
    """Signal-to-noise ratios on both sides of 1, and two dimensions."""

    snrs: tuple[float, ...] = setting((0.8, 0.9, 1.1, 1.2), "signal-to-noise ratios λ", above=0)
    dim: int = setting(2000, "dimension n of the runs that are shown", least=100)
    large: int = setting(100_000, "dimension n in which the law is measured", least=10_000)
    runs: int = setting(512, "independent runs of SGD for each λ", least=40)
    time: float = setting(1.5, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from random starts in both dimensions, and the covariance of the linear SDE."""
    data = {}
    times = np.linspace(0, p.time, 51)
    for number, snr in enumerate(p.snrs):
        task = sl.tasks.SpikedTensor(order=2, snr=snr)
        for kind, dim, runs in (("shown", p.dim, SHOWN), ("large", p.large, p.runs)):
            data[f"{kind}_{snr:g}"] = sl.simulate(
                task, dim=dim, runs=runs, time=p.time, seed=seed + number, points=101
            )
        sde: Any = sl.effective_dynamics(task).rescaled(at=EQUATOR)
        start = np.diag([1.0, 2.0])  # of √n·m and √n·(r² − 1) for x ~ N(0, I/n)
        variances = [sde.covariance(time, initial=start)[0, 0] for time in times]
        data[f"limit_{snr:g}"] = xr.Dataset({"variance": ("time", variances)}, {"time": times})
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Variance at the end for every λ; all end points together are Gaussian."""
    found, standard = [], []
    for snr in p.snrs:
        expected = float(data[f"limit_{snr:g}"].variance[-1])
        ends = np.sqrt(p.large) * data[f"large_{snr:g}"].m.values[:, -1]
        name = f"variance of √n·m at t = {p.time:g}, λ = {snr:g}"
        closed = float(sl.theory.spiked_tensor.equator_variance(p.time, snr=snr))
        found.append(checks.variance(name, ends, expected, note=f"closed form {closed:.6g}"))
        standard.append(ends / np.sqrt(expected))
    name = "law of √n·m at the end, all λ: Gaussian"
    return [*found, checks.distribution(name, np.concatenate(standard), stats.norm())]


def draw(p: Parameters, data: Data) -> Figure:
    """Single runs in the smaller dimension, their law in the larger one."""
    rows = 2 if len(p.snrs) > 3 and len(p.snrs) % 2 == 0 else 1
    figure, panels = picture.panels(rows, len(p.snrs) // rows, sharex=True, sharey=True)
    for panel, snr in zip(panels.ravel(), p.snrs, strict=True):
        shown, large = data[f"shown_{snr:g}"], data[f"large_{snr:g}"]
        scaled = np.sqrt(p.dim) * shown.m
        lines = panel.plot(shown.time, scaled.T, color=sl.plot.style.SIMULATION, alpha=0.35, lw=0.7)
        lines[0].set_label(f"SGD, n = {p.dim:,}")
        spread = np.sqrt(p.large) * large.m.isel(time=slice(None, None, 8)).std("run")
        limit = data[f"limit_{snr:g}"]
        for sign in (-2, 2):
            panel.plot(
                spread.time,
                sign * spread,
                "o",
                color=sl.plot.style.PALETTE["vermillion"],
                ms=4,
                label=f"± 2 s.d. of {p.runs} runs, n = {p.large:,}",
            )
            label = "± 2 s.d. of the Ornstein–Uhlenbeck process (3.2)"
            panel.plot(limit.time, sign * np.sqrt(limit.variance), "k", label=label)
        word = ["critical", "unstable", "stable"][int(np.sign(snr - 1))]
        panel.set(title=f"λ = {snr:g}: {word}", xlabel=sl.plot.style.TIME_LABEL)
        panel.set(ylabel=r"$\sqrt{n}\,m$")
        panel.label_outer()
    picture.legend(figure, panels, columns=2)
    return figure


EXPERIMENT = Experiment(
    paper="000",
    figure="Fig. 4",
    claim="Matrix PCA: √n·m is an Ornstein–Uhlenbeck process, stable if λ < 1, unstable if λ > 1.",
    parameters=Parameters,
    tiny={"snrs": (0.8, 1.2), "large": 20_000, "runs": 128},
    quick={"large": 30_000, "runs": 256},
    compute=compute,
    check=check,
    draw=draw,
)

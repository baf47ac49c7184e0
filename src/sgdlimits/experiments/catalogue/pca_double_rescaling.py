"""Spiked matrices and tensors at the equator: both statistics at scale 1/√n are independent."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

EQUATOR = {"m": 0.0, "r2": 1.0}


class Parameters(Settings):
    """Orders of the tensor, and a signal that keeps the equator stable."""

    orders: tuple[int, ...] = setting((2, 3), "orders k of the tensor", least=2, most=6)
    snr: float = setting(0.5, "signal-to-noise ratio λ", above=0, most=0.7)
    dim: int = setting(4000, "dimension n", least=1000)
    runs: int = setting(1024, "independent runs of SGD for each k", least=100)
    time: float = setting(3.0, "duration, in units of dim samples", least=2)


def compute(p: Parameters, seed: int) -> Data:
    """SGD that starts on the equator, and the stationary covariance of the linear SDE there."""
    data = {}
    for order in p.orders:
        task = sl.tasks.SpikedTensor(order=order, snr=p.snr)
        data[f"sgd_{order}"] = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + order, init=EQUATOR, points=41
        )
        sde: Any = sl.effective_dynamics(task).rescaled(at=EQUATOR)
        covariance = sde.stationary_covariance().covariance
        names = {"statistic": sde.coordinates, "statistic_": sde.coordinates}
        data[f"limit_{order}"] = xr.Dataset({"covariance": (list(names), covariance)}, names)
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Both variances for each k, against the printed radius; the mean; no correlation."""
    found, products = [], []
    for order in p.orders:
        overlap, radius = _scaled(p, data, order)
        expected = data[f"limit_{order}"].covariance.values
        name = f"stationary variance of √n·m, k = {order}"
        found.append(checks.variance(name, overlap, expected[0, 0]))
        name = f"stationary variance of √n·(r²−1), k = {order}"
        # drift −4k² r̃ and noise 2√(k(k−1)), as printed
        printed = (order - 1) / (2 * order)
        found.append(checks.variance(name, radius, expected[1, 1], printed=printed))
        products.append(overlap * radius / np.sqrt(expected[0, 0] * expected[1, 1]))
        if order > 2:
            # the printed drift is −2k, not −2k·m̃
            found.append(
                checks.mean(
                    f"mean of √n·m at the end, k = {order}",
                    overlap,
                    0.0,
                    printed=-2 * order * p.time,
                )
            )
    name = "correlation of √n·m and √n·(r²−1), all k"
    return [*found, checks.mean(name, np.concatenate(products), 0.0)]


def _scaled(p: Parameters, data: Data, order: int) -> tuple[np.ndarray, np.ndarray]:
    """√n·m and √n·(r²−1) at the end of the runs."""
    ends = data[f"sgd_{order}"].isel(time=-1)
    return np.sqrt(p.dim) * ends.m.values, np.sqrt(p.dim) * (ends.r2.values - 1)


def draw(p: Parameters, data: Data) -> Figure:
    """The cloud of end points for each k, and both densities."""
    figure, panels = picture.panels(len(p.orders), 3, width=3.8)
    for (plane, *densities), order in zip(panels, p.orders, strict=True):
        both = _scaled(p, data, order)
        covariance = data[f"limit_{order}"].covariance.values
        plane.plot(*both, ".", ms=3, color=sl.plot.style.SIMULATION, alpha=0.5)
        angle = np.linspace(0, 2 * np.pi, 101)
        circle = np.sqrt(-2 * np.log(0.05)) * np.stack([np.cos(angle), np.sin(angle)])
        label = "corrected (3.5): density, 95 % region"
        plane.plot(*np.linalg.cholesky(covariance) @ circle, "k", label=label)
        symbols = (r"$\sqrt{n}\,m$", r"$\sqrt{n}\,(r_\perp^2 - 1)$")
        plane.set(title=f"k = {order}", xlabel=symbols[0], ylabel=symbols[1])
        for panel, values, variance, symbol in zip(
            densities, both, np.diag(covariance), symbols, strict=True
        ):
            label = f"SGD, end points of {p.runs} runs"
            panel.hist(
                values, 21, density=True, color=sl.plot.style.SIMULATION, alpha=0.4, label=label
            )
            x = np.linspace(-4, 4, 201) * np.sqrt(variance)
            panel.plot(x, stats.norm(scale=np.sqrt(variance)).pdf(x), "k")
            panel.set(title=f"k = {order}", xlabel=symbol, ylabel="density")
        scale = np.sqrt((order - 1) / (2 * order))
        densities[1].plot(x, stats.norm(scale=scale).pdf(x), "k:", label="(3.5) as printed")
        densities[1].set_ylim(0, 2.5 * stats.norm(scale=np.sqrt(covariance[1, 1])).pdf(0))
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="(3.5)",
    claim="At the equator √n·m and √n·(r²−1) are independent Ornstein–Uhlenbeck processes.",
    parameters=Parameters,
    tiny={"dim": 1000, "runs": 128, "time": 2.0},
    quick={"dim": 2000, "runs": 512},
    compute=compute,
    check=check,
    draw=draw,
)

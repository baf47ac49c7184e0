"""The transition of matrix PCA: phase portraits on both sides, and the overlap over the signal."""

from typing import NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SIDES = ("below", "at", "above")


class Parameters(Settings):
    """Three portraits, and SGD at several signal-to-noise ratios up to ``highest``."""

    below: float = setting(0.7, "signal-to-noise ratio below the transition", above=0, most=0.9)
    at: float = setting(1.0, "signal-to-noise ratio at the transition", above=0)
    above: float = setting(2.0, "signal-to-noise ratio above the transition", least=1.1)
    highest: float = setting(2.5, "largest signal-to-noise ratio of the diagram", least=2.2)
    dim: int = setting(2000, "dimension N", least=100)
    runs: int = setting(50, "independent runs of SGD at each ratio", least=20)
    time: float = setting(5.0, "duration, in units of dim samples", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """Runs all around the portraits, end points over the signal, and branches of rest points."""
    angle = 2 * np.pi * (np.arange(20) + 0.5) / 20
    ring = {"m": 1.35 * np.cos(angle), "r2": 0.9 + 0.75 * np.sin(angle)}
    data = {}
    for number, side in enumerate(SIDES):
        task = sl.tasks.SpikedTensor(order=2, snr=getattr(p, side))
        data[f"portrait_{side}"] = sl.simulate(
            task, dim=p.dim, runs=20, time=1.5, init=ring, seed=seed + number, points=76
        )
    # away from 1, where relaxation takes a time of order 1/|λ − 1|
    snrs = np.concatenate([np.linspace(0.2, 0.7, 3), np.linspace(1.3, p.highest, 5)])
    ends = []
    for number, snr in enumerate(snrs):
        task = sl.tasks.SpikedTensor(order=2, snr=float(snr))
        sgd = sl.simulate(
            task,
            dim=p.dim,
            runs=p.runs,
            time=p.time,
            init={"m": 0.5, "r2": 1.0},
            seed=seed + 10 + number,
            points=2,
        )
        ends.append(sgd[["m", "r2"]].isel(time=-1, drop=True))
    data["ends"] = xr.concat(ends, dim=xr.DataArray(snrs, dims="snr", name="snr"))
    starts = {"m": [1.3, -1.3, 0.0], "r2": [1.0, 1.0, 1.0]}
    data["diagram"] = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2)).bifurcations(
        "snr", 0.1, p.highest, init=starts
    )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Where branches cross, m² = λ − 1 on the stable ones, and the end points of SGD."""
    diagram, ends = data["diagram"], data["ends"]
    stable = diagram.stability.values == "stable"
    snr, overlap = diagram.snr.values[stable], diagram.m.values[stable]
    squares = np.maximum(snr - 1, 0.0)
    last = ends.isel(snr=-1)
    return [
        checks.exact(
            "λ at which branches cross",
            diagram.snr.values[diagram.special.values == "branch"][0],
            1.0,
            1e-9,
        ),
        checks.exact(
            "largest |m² − max(λ − 1, 0)| of stable rest points",
            np.max(np.abs(overlap**2 - squares)),
            0.0,
            1e-8,
        ),
        checks.mean(
            f"m² of SGD at λ = {p.highest:g}",
            last.m**2,
            p.highest - 1,
            note="printed: rest point (1, 1)",
            printed=1.0,
        ),
        checks.mean(
            "r² of SGD at λ = 0.2",
            ends.isel(snr=0).r2,
            1.0,
            note="printed: rest point (1, 0)",
            printed=0.0,
        ),
    ]


def draw(p: Parameters, data: Data) -> Figure:
    """Three portraits, and the diagram of m with the end points of SGD."""
    figure, panels = picture.panels(2, 2, width=4.6, height=3.5)
    for panel, side in zip(panels.ravel(), SIDES, strict=False):
        _draw_portrait(panel, getattr(p, side), data[f"portrait_{side}"])
    last = panels[1, 1]
    sl.plot.bifurcation(data["diagram"], "m", axes=last)
    for line in last.get_lines():
        if line.get_label() in ("stable", "unstable"):
            line.set_label(f"branch, {line.get_label()}")
    ends = data["ends"].m
    last.errorbar(
        ends.snr,
        ends.mean("run"),
        ends.std("run"),
        fmt="o",
        ms=4.5,
        capsize=2.5,
        color=sl.plot.style.SIMULATION,
        zorder=5,
        label="SGD, mean ± s.d. at the end",
    )
    last.set(xlabel="signal-to-noise ratio $\\lambda$", ylabel="$m$", title="rest points")
    last.set_xlim(0, p.highest + 0.1)
    picture.legend(figure, panels, columns=3)
    return figure


class Mark(NamedTuple):
    """A rest point as a portrait wants it."""

    state: dict[str, float]
    stability: str
    representatives: tuple[dict[str, float], ...] = ()


def _mark(point: sl.theory.spiked_tensor.FixedPoint, snr: float) -> Mark:
    state = {"m": point.overlap, "r2": point.radius_squared}
    neutral = snr == 1.0 and point.radius_squared > 0
    return Mark(state, "marginal" if neutral else "stable" if point.stable else "unstable")


def _draw_portrait(axes: Axes, snr: float, runs: xr.Dataset) -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=snr))
    sl.plot.portrait(
        limit,
        "m",
        "r2",
        x_range=(-1.6, 1.6),
        y_range=(0.0, 1.8),
        fixed_points=[_mark(point, snr) for point in sl.theory.spiked_tensor.fixed_points(2, snr)],
        runs=runs,
        axes=axes,
        points=81,
    )
    axes.set(title=f"$\\lambda = {snr:g}$")


EXPERIMENT = Experiment(
    paper="J24",
    figure="Fig. 4.1",
    claim="BBP transition: at λ = 1 the equator loses stability to two points with m² = λ − 1.",
    parameters=Parameters,
    tiny={"dim": 1000, "runs": 30, "time": 4.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
    headline=True,
)

"""Matrix PCA from random starts: the squared radius fluctuates around 1, whatever the signal."""

from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SHOWN = 10  # runs in a picture
MARKERS = "os^vD"
LAG = 0.1
RATE, VARIANCE = 8.0, sl.theory.spiked_tensor.radius_variance(order=2)
# (3.5) as printed: drift −4k² r̃, noise 2√(k(k−1)), at k = 2
PRINTED_RATE, PRINTED_VARIANCE = 16.0, 0.25


class Parameters(Settings):
    """Signal-to-noise ratios on both sides of 1, and when to look."""

    snrs: tuple[float, ...] = setting((0.8, 0.9, 1.1, 1.2), "signal-to-noise ratios λ", above=0)
    dim: int = setting(2000, "dimension n", least=200)
    runs: int = setting(512, "independent runs of SGD for each λ", least=40)
    time: float = setting(10.0, "duration, in units of dim samples", least=1)
    early: float = setting(0.8, "time at which r² has relaxed and m is still small", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from random starts."""
    return {
        f"sgd_{snr:g}": sl.simulate(
            sl.tasks.SpikedTensor(order=2, snr=snr),
            dim=p.dim,
            runs=p.runs,
            time=p.time,
            seed=seed + number,
        )
        for number, snr in enumerate(p.snrs)
    }


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Variance at the early time, the same for every λ, and covariance with a later time."""
    found, products = [], []
    for snr in p.snrs:
        scaled = np.sqrt(p.dim) * (data[f"sgd_{snr:g}"].r2 - 1)
        early = scaled.sel(time=p.early, method="nearest")
        later = scaled.sel(time=float(early.time) + LAG, method="nearest")
        found.append(
            checks.variance(
                f"variance of √n·(r²−1) at t = {float(early.time):g}, λ = {snr:g}",
                early.values,
                VARIANCE + (2 - VARIANCE) * np.exp(-2 * RATE * float(early.time)),
                printed=PRINTED_VARIANCE,
            )
        )
        products.append(early.values * later.values)
    lag = float(later.time - early.time)
    found.append(
        checks.mean(
            f"covariance of √n·(r²−1) at times {lag:.2g} apart, all λ",
            np.concatenate(products),
            VARIANCE * np.exp(-RATE * lag),
            printed=PRINTED_VARIANCE * np.exp(-PRINTED_RATE * lag),
        )
    )
    return found


def draw(p: Parameters, data: Data) -> Figure:
    """r²(t) for each λ; below, the variance over time and the autocorrelation."""
    rows = -(-len(p.snrs) // 2)
    figure, panels = picture.panels(rows + 1, 2, height=2.6)
    radii = panels[:-1].ravel()
    spread = 2 * np.sqrt(VARIANCE / p.dim)
    for panel, snr in zip(radii, p.snrs, strict=False):
        runs = data[f"sgd_{snr:g}"].isel(run=slice(SHOWN))
        lines = panel.plot(runs.time, runs.r2.T, color=sl.plot.style.SIMULATION, alpha=0.4, lw=0.6)
        lines[0].set_label(f"SGD, {SHOWN} runs")
        for level in (1 - spread, 1 + spread):
            label = "± 2 s.d., variance 2k/n"
            panel.axhline(level, color="k", ls="--", lw=1.2, label=label, zorder=3)
        panel.set(title=f"λ = {snr:g}", ylabel=sl.plot.symbol("r2"))
        panel.set_ylim(1 - 2.2 * spread, 1 + 2.2 * spread)
    for panel in radii[-2:]:
        panel.set_xlabel(sl.plot.style.TIME_LABEL)
    for panel in radii[len(p.snrs) :]:
        panel.remove()
    _draw_variance(panels[-1, 0], p, data)
    _draw_correlation(panels[-1, 1], p, data)
    picture.legend(figure, panels, columns=5)
    return figure


def _draw_variance(panel: Axes, p: Parameters, data: Data) -> None:
    for marker, snr in zip(cycle(MARKERS), p.snrs, strict=False):
        runs = data[f"sgd_{snr:g}"]
        variance = p.dim * runs.r2.var("run")
        panel.plot(runs.time[::8], variance[::8], marker, ms=4, label=f"λ = {snr:g}")
    times = np.linspace(0, p.time, 501)
    relaxed = VARIANCE + (2 - VARIANCE) * np.exp(-2 * RATE * times)
    panel.plot(times, relaxed, "k", label="corrected (3.5)")
    panel.axhline(PRINTED_VARIANCE, color="k", ls=":", label="(3.5) as printed")
    panel.set(ylim=(0, 6), xlabel=sl.plot.style.TIME_LABEL, ylabel=r"$n$ · variance of $r_\perp^2$")


def _draw_correlation(panel: Axes, p: Parameters, data: Data) -> None:
    lags = np.arange(13)
    for marker, snr in zip(cycle(MARKERS), p.snrs, strict=False):
        runs = data[f"sgd_{snr:g}"]
        r2 = runs.r2.where(runs.time > 0.5, drop=True).values
        r2 = r2 - r2.mean()
        size = r2.shape[1] - lags[-1]
        shifted = [np.mean(r2[:, :size] * r2[:, lag : lag + size]) for lag in lags]
        panel.plot(runs.time[lags], np.array(shifted) / shifted[0], marker, ms=4)
    times = np.linspace(0, float(runs.time[lags[-1]]), 201)
    panel.plot(times, np.exp(-RATE * times), "k")
    panel.plot(times, np.exp(-PRINTED_RATE * times), "k:")
    panel.set(xlabel="lag", ylabel="autocorrelation")


EXPERIMENT = Experiment(
    paper="000",
    figure="Fig. 5",
    claim="Matrix PCA: √n·(r²−1) is one stable Ornstein–Uhlenbeck process for all λ near 1.",
    parameters=Parameters,
    tiny={"snrs": (0.8, 1.2), "runs": 128, "time": 2.0},
    quick={"runs": 256},
    compute=compute,
    check=check,
    draw=draw,
)

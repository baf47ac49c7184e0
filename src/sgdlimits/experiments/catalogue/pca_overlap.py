"""Matrix PCA around its transition: the overlap over time, and how fast it grows or decays."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

SHOWN = 25  # runs in a picture


class Parameters(Settings):
    """Signal-to-noise ratios on both sides of 1, and two times to look at."""

    snrs: tuple[float, ...] = setting((0.8, 0.9, 1.1, 1.2), "signal-to-noise ratios λ", above=0)
    dim: int = setting(2000, "dimension n", least=100)
    runs: int = setting(256, "independent runs of SGD for each λ", least=20)
    time: float = setting(10.0, "duration, in units of dim samples", above=0)
    early: float = setting(0.6, "time at which m is still of order 1/√n", above=0)


def compute(p: Parameters, seed: int) -> Data:
    """SGD from random starts, and the diffusion at the largest λ."""
    data = {}
    for number, snr in enumerate(p.snrs):
        task = sl.tasks.SpikedTensor(order=2, snr=snr)
        data[f"sgd_{snr:g}"] = sl.simulate(
            task, dim=p.dim, runs=p.runs, time=p.time, seed=seed + number, points=101
        )
    task = sl.tasks.SpikedTensor(order=2, snr=max(p.snrs))
    start = task.random_states(p.dim, seed=seed + 100, runs=range(4 * p.runs))
    data["sde"] = sl.effective_dynamics(task).sample_paths(
        start, dim=p.dim, time=p.time, runs=4 * p.runs, seed=seed, points=6
    )
    return data


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Second moment at the early time, by rate 4(λ−1) from variance 1; the overlap at the end."""
    found = []
    for snr in p.snrs:
        early = data[f"sgd_{snr:g}"].sel(time=p.early, method="nearest")
        time = float(early.time)
        found.append(
            checks.mean(
                f"E[n m²] at t = {time:g}, λ = {snr:g}: growth at rate 4(λ−1)",
                p.dim * early.m.values**2,
                _second_moment(time, snr),
                bias=_saturation(time, snr, p.dim),
            )
        )
    ends = [abs(data[name].m.values[:, -1]) for name in (f"sgd_{max(p.snrs):g}", "sde")]
    name = f"law of |m| at the end, λ = {max(p.snrs):g}: SGD against SDE"
    return [*found, checks.distribution(name, *ends)]


def _second_moment(time: float | np.ndarray, snr: float) -> np.ndarray:
    return np.asarray(sl.theory.spiked_tensor.equator_variance(time, snr=snr))


def _saturation(time: float, snr: float, dim: int) -> float:
    """What the term −4m³ of the drift, no part of the limit, takes from E[n m²] at first order."""
    times = np.linspace(0, time, 201)
    loss = 24 * _second_moment(times, snr) ** 2 / dim * np.exp(8 * (snr - 1) * (time - times))
    return float(np.trapezoid(loss, times))


def draw(p: Parameters, data: Data) -> Figure:
    """m(t) for each λ; below, its second moment and its size at the end."""
    rows = -(-len(p.snrs) // 2)
    figure, panels = picture.panels(rows + 1, 2, height=2.6)
    overlaps = panels[:-1].ravel()
    reach = max(float(abs(data[f"sgd_{snr:g}"].m[:SHOWN]).max()) for snr in p.snrs)
    for panel, snr in zip(overlaps, p.snrs, strict=False):
        runs = data[f"sgd_{snr:g}"].isel(run=slice(SHOWN))
        lines = panel.plot(runs.time, runs.m.T, color=sl.plot.style.SIMULATION, alpha=0.4, lw=0.7)
        lines[0].set_label(f"SGD, {SHOWN} runs")
        for point in sl.theory.spiked_tensor.fixed_points(2, snr):
            if point.radius_squared > 0:
                kind = "stable" if point.stable else "unstable"
                style = {"ls": "-" if point.stable else ":", "label": f"{kind} rest point"}
                panel.axhline(point.overlap, color="k", lw=1.2, **style)
        spread = 2 * np.sqrt(_second_moment(runs.time.values, snr) / p.dim)
        for sign in (-1, 1):
            label = "± 2 s.d. of the Ornstein–Uhlenbeck process"
            panel.plot(runs.time, sign * spread, color="k", ls="--", lw=1.2, label=label)
        panel.set(title=f"λ = {snr:g}", ylabel="$m$", ylim=(-1.05 * reach, 1.05 * reach))
    for panel in overlaps[-2:]:
        panel.set_xlabel(sl.plot.style.TIME_LABEL)
    for panel in overlaps[len(p.snrs) :]:
        panel.remove()
    _draw_growth(panels[-1, 0], p, data)
    _draw_ends(panels[-1, 1], p, data)
    picture.legend(figure, panels, columns=3)
    return figure


def _draw_growth(panel: Axes, p: Parameters, data: Data) -> None:
    colours = list(sl.plot.style.PALETTE.values())[1:]
    for number, snr in enumerate(p.snrs):
        runs, colour = data[f"sgd_{snr:g}"], colours[(4, 1, 2, 5, 0, 6)[number % 6]]
        squares = p.dim * (runs.m**2).mean("run")
        panel.plot(runs.time, _second_moment(runs.time.values, snr), color="k", lw=1.2, ls="--")
        panel.plot(runs.time[::4], squares[::4], "o", ms=3.5, color=colour)
        panel.text(1.03 * p.time, float(squares[-1]), f"λ = {snr:g}", color=colour, va="center")
    panel.set(yscale="log", ylim=(0.7, 2 * p.dim * max(max(p.snrs) - 1, 10 / p.dim)))
    panel.set(xlabel=sl.plot.style.TIME_LABEL, ylabel=r"mean of $n\,m^2$")


def _draw_ends(panel: Axes, p: Parameters, data: Data) -> None:
    for snr in p.snrs:
        ends = abs(data[f"sgd_{snr:g}"].m.values[:, -1])
        spread = 0.04 * (0.618 * np.arange(len(ends)) % 1 - 0.5)
        panel.plot(snr + spread, ends, ".", color=sl.plot.style.SIMULATION, alpha=0.4, ms=4)
    snrs = np.linspace(min(p.snrs) - 0.05, max(p.snrs) + 0.05, 301)
    panel.plot(snrs, np.sqrt(np.maximum(snrs - 1, 0)), "k", lw=1.2)
    panel.set(xlabel="signal-to-noise ratio λ", ylabel="$|m|$ at the end")


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="Fig. 3",
    claim="Matrix PCA from random starts: √n·m grows or decays at rate 4(λ−1); |m| ends at √(λ−1).",
    parameters=Parameters,
    tiny={"snrs": (0.7, 1.3), "time": 5.0},
    quick={},
    compute=compute,
    check=check,
    draw=draw,
)

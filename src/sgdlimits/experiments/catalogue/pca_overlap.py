"""Matrix PCA around its transition: the overlap over time, and how fast it grows or decays."""

from functools import partial

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import MatrixPca, draw_overlaps_at_rest, variance


@experiment(
    paper="BGJ22",
    figure="Fig. 3",
    claim="Matrix PCA from random starts: √n·m grows or decays at rate 4(λ−1); |m| ends at √(λ−1).",
    tiny={"snrs": (0.7, 1.3), "time": 5.0},
    quick={},
)
class PcaOverlap(MatrixPca):
    """Signal-to-noise ratios on both sides of 1, and two times to look at."""

    early: float = setting(0.6, "time at which m is still of order 1/√n", above=0)

    def compute(self, seed: int) -> Data:
        """SGD from random starts, and the diffusion at the largest λ."""
        sde = self.diffusion(max(self.snrs), seed, start=100, more=4, points=6)
        return {"sgd": self.sgd(seed, points=101), "sde": sde}

    def check(self, data: Data) -> list[Check]:
        """Second moment at the early time, by rate 4(λ−1) from 1; the overlap at the end."""
        early = data["sgd"].m.sel(time=self.early, method="nearest")
        time, largest = float(early.time), max(self.snrs)
        moments = checks.each(
            "snr",
            checks.mean,
            f"E[n m²] at t = {time:g}, λ = {{:g}}: growth at rate 4(λ−1)",
            self.dim * early**2,
            partial(variance, time),
            bias=partial(self.saturation, time),
        )
        ends = [abs(data["sgd"].m.sel(snr=largest)[:, -1]), abs(data["sde"].m[:, -1])]
        name = f"law of |m| at the end, λ = {largest:g}: SGD against SDE"
        return [*moments, checks.distribution(name, *ends)]

    def saturation(self, time: float, snr: float) -> float:
        """What the term −4m³ of the drift, not in the limit, takes from E[n m²] at first order."""
        times = np.linspace(0, time, 201)
        loss = 24 * variance(times, snr) ** 2 / self.dim * np.exp(8 * (snr - 1) * (time - times))
        return float(np.trapezoid(loss, times))

    def draw(self, data: Data) -> Figure:
        """m(t) for each λ; below, its second moment and its size at the end."""
        reach = 1.05 * float(abs(data["sgd"].m.isel(run=slice(25))).max())

        def one(panel: Axes, sgd: xr.Dataset) -> None:
            snr = float(sgd.snr)
            sl.plot.runs(sgd.m, axes=panel)
            draw_overlaps_at_rest(panel, snr)
            spread = 2 * np.sqrt(variance(sgd.time.values, snr) / self.dim)
            label = "± 2 s.d. of the Ornstein–Uhlenbeck process"
            picture.envelope(panel, sgd.time, spread, label, lw=1.2)
            panel.set(ylabel="$m$", ylim=(-reach, reach))

        return self.draw_rows(data["sgd"], one, (self.draw_growth, self.draw_ends), legend=3)

    def draw_growth(self, panel: Axes, sgd: xr.Dataset) -> None:
        """The mean of n·m² over time, on a logarithmic axis."""
        squares = self.dim * (sgd.m**2).mean("run").isel(time=slice(None, None, 4))
        for snr in self.snrs:
            panel.plot(sgd.time, variance(sgd.time.values, snr), "k--", lw=1.2)
        picture.points_of_each(panel, squares, "snr", "λ", aside=True)
        top = 2 * self.dim * max(max(self.snrs) - 1, 10 / self.dim)
        panel.set(yscale="log", ylim=(0.7, top), ylabel=r"mean of $n\,m^2$")

    def draw_ends(self, panel: Axes, sgd: xr.Dataset) -> None:
        """|m| of every run at the end, over λ; points of one λ are side by side."""
        ends = abs(sgd.m.isel(time=-1)).transpose("run", "snr")
        beside = 0.04 * (0.618 * np.arange(self.runs) % 1 - 0.5)
        panel.plot(sgd.snr.values + beside[:, None], ends, "C0.", alpha=0.4, ms=4)
        snrs = np.linspace(min(self.snrs) - 0.05, max(self.snrs) + 0.05, 301)
        panel.plot(snrs, np.sqrt(np.maximum(snrs - 1, 0)), "k", lw=1.2)
        panel.set(xlabel="signal-to-noise ratio λ", ylabel="$|m|$ at the end")

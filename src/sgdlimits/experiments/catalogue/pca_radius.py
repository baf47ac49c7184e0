"""Matrix PCA from random starts: the squared radius fluctuates around 1, whatever the signal."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import MatrixPca, envelope
from sgdlimits.experiments.scalar_sde import linear_variance

LAG = 0.1
RATE, VARIANCE = 8.0, sl.theory.spiked_tensor.radius_variance(order=2)
# (3.5) as printed: drift −4k² r̃, noise 2√(k(k−1)), at k = 2
PRINTED_RATE, PRINTED_VARIANCE = 16.0, 0.25


@experiment(
    paper="BGJ22",
    figure="Fig. 5",
    claim="Matrix PCA: √n·(r²−1) is one stable Ornstein–Uhlenbeck process for all λ near 1.",
    tiny={"snrs": (0.8, 1.2), "runs": 128, "time": 2.0},
    quick={"runs": 256},
)
class PcaRadius(MatrixPca):
    """Signal-to-noise ratios on both sides of 1, and when to look."""

    dim: int = setting(2000, "dimension n", least=200)
    runs: int = setting(512, "independent runs of SGD for each λ", least=40)
    time: float = setting(10.0, "duration, in units of dim samples", least=1)
    early: float = setting(0.8, "time at which r² has relaxed and m is still small", above=0)

    def compute(self, seed: int) -> Data:
        """SGD from random starts."""
        return {"sgd": self.sgd(seed)}

    def check(self, data: Data) -> list[Check]:
        """Variance at the early time, the same for every λ, and covariance with a later time."""
        scaled = np.sqrt(self.dim) * (data["sgd"].r2 - 1)
        early = scaled.sel(time=self.early, method="nearest")
        later = scaled.sel(time=float(early.time) + LAG, method="nearest")
        lag = float(later.time - early.time)
        return [
            checks.variance(
                f"variance of √n·(r²−1) at t = {float(early.time):g}, λ = {snr:g}",
                early.sel(snr=snr),
                relaxed(float(early.time)),
                printed=PRINTED_VARIANCE,
            )
            for snr in self.snrs
        ] + [
            checks.mean(
                f"covariance of √n·(r²−1) at times {lag:.2g} apart, all λ",
                early.values * later.values,
                VARIANCE * np.exp(-RATE * lag),
                printed=PRINTED_VARIANCE * np.exp(-PRINTED_RATE * lag),
            )
        ]

    def draw(self, data: Data) -> Figure:
        """r²(t) for each λ; below, the variance over time and the autocorrelation."""
        below = self.draw_variance, self.draw_correlation
        return self.draw_rows(data["sgd"], self.draw_runs, below, legend=5)

    def draw_runs(self, panel: Axes, sgd: xr.Dataset) -> None:
        """r² − 1 of a few runs over time."""
        spread = 2 * np.sqrt(VARIANCE / self.dim)
        sl.plot.runs(sgd.r2 - 1, most=10, axes=panel)
        envelope(panel, sgd.time, spread, "± 2 s.d., variance 2k/n")
        panel.set(ylabel=r"$r_\perp^2 - 1$", ylim=(-2.2 * spread, 2.2 * spread))

    def draw_variance(self, panel: Axes, sgd: xr.Dataset) -> None:
        """The variance of r² over runs times n, over time."""
        for marker, snr in zip("os^vD" * len(self.snrs), self.snrs, strict=False):
            variance = self.dim * sgd.r2.sel(snr=snr).var("run")[::8]
            panel.plot(variance.time, variance, marker, ms=4, label=f"λ = {snr:g}")
        panel.plot(sgd.time, relaxed(sgd.time.values), "k", label="corrected (3.5)")
        panel.axhline(PRINTED_VARIANCE, color="k", ls=":", label="(3.5) as printed")
        panel.set(ylim=(0, 6), xlabel=sl.plot.style.TIME_LABEL)
        panel.set_ylabel(r"$n$ · variance of $r_\perp^2$")

    def draw_correlation(self, panel: Axes, sgd: xr.Dataset) -> None:
        """Correlation of r² with itself at a lag, at rest."""
        lags = np.arange(13)
        for marker, snr in zip("os^vD" * len(self.snrs), self.snrs, strict=False):
            r2 = sgd.r2.sel(snr=snr).where(sgd.time > 0.5, drop=True).values
            r2 = r2 - r2.mean()
            size = r2.shape[1] - lags[-1]
            shifted = [np.mean(r2[:, :size] * r2[:, lag : lag + size]) for lag in lags]
            panel.plot(sgd.time[lags], np.array(shifted) / shifted[0], marker, ms=4)
        times = np.linspace(0, float(sgd.time[lags[-1]]), 201)
        panel.plot(times, np.exp(-RATE * times), "k", times, np.exp(-PRINTED_RATE * times), "k:")
        panel.set(xlabel="lag", ylabel="autocorrelation")


def relaxed(time: float | np.ndarray) -> np.ndarray:
    """Variance of √n·(r²−1) from random starts, where it is 2."""
    return linear_variance(time, -RATE, start=2.0, noise=2 * RATE * VARIANCE)

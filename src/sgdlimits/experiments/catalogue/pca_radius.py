"""Matrix PCA from random starts: the squared radius fluctuates around 1, whatever the signal."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import MatrixPca, printed_radius_variance

LAG = 0.1
RATE, VARIANCE = 8.0, sl.theory.spiked_tensor.radius_variance(order=2)
PRINTED_RATE, PRINTED_VARIANCE = 16.0, printed_radius_variance(2)  # by (3.5) as printed


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
        time, lag = float(early.time), float(later.time - early.time)
        expected = sl.theory.spiked_tensor.transient_radius_variance(time, order=2)
        name, printed = f"variance of √n·(r²−1) at t = {time:g}, λ = {{:g}}", PRINTED_VARIANCE
        return [
            *checks.each("snr", checks.variance, name, early, expected, printed=printed),
            checks.mean(
                f"covariance of √n·(r²−1) at times {lag:.2g} apart, all λ",
                early.values * later.values,
                VARIANCE * np.exp(-RATE * lag),
                printed=PRINTED_VARIANCE * np.exp(-PRINTED_RATE * lag),
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """r²(t) for each λ; below, the variance over time and the autocorrelation."""
        below = self.draw_variance, self.draw_correlation
        return self.draw_rows(data["sgd"], self.draw_runs, below, legend=5)

    def draw_runs(self, panel: Axes, sgd: xr.Dataset) -> None:
        """r² − 1 of a few runs over time."""
        spread = 2 * np.sqrt(VARIANCE / self.dim)
        sl.plot.runs(sgd.r2 - 1, most=10, axes=panel)
        picture.envelope(panel, sgd.time, spread, "± 2 s.d., variance 2k/n")
        panel.set(ylabel=r"$r_\perp^2 - 1$", ylim=(-2.2 * spread, 2.2 * spread))

    def draw_variance(self, panel: Axes, sgd: xr.Dataset) -> None:
        """The variance of r² over runs times n, over time."""
        variances = self.dim * sgd.r2.var("run").isel(time=slice(None, None, 8))
        picture.points_of_each(panel, variances, "snr", "λ")
        expected = sl.theory.spiked_tensor.transient_radius_variance(sgd.time.values, order=2)
        panel.plot(sgd.time, expected, "k", label="corrected (3.5)")
        panel.axhline(PRINTED_VARIANCE, color="k", ls=":", label="(3.5) as printed")
        panel.set(ylim=(0, 6), ylabel=r"$n$ · variance of $r_\perp^2$")

    def draw_correlation(self, panel: Axes, sgd: xr.Dataset) -> None:
        """Correlation of r² with itself at a lag, at rest."""
        lags, rest = sgd.time[:13], sgd.r2.where(sgd.time > 0.5, drop=True)
        rest = rest - rest.mean(("run", "time"))
        early = rest.isel(time=slice(1 - len(lags)))
        later = (rest.shift(time=-lag) for lag in range(len(lags)))
        shifted = xr.concat([(early * x).mean(("run", "time")) for x in later], lags)
        picture.points_of_each(panel, shifted / shifted.isel(time=0), "snr", "λ")
        times = np.linspace(0, float(lags[-1]), 201)
        panel.plot(times, np.exp(-RATE * times), "k", times, np.exp(-PRINTED_RATE * times), "k:")
        panel.set(xlabel="lag", ylabel="autocorrelation")

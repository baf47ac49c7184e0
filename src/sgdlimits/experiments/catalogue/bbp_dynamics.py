"""Matrix PCA at its saddle: √N·m diffuses, stably below and unstably above, while r² settles."""

import numpy as np
import xarray as xr
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import TwoSides, matrix

SHOWN = 40  # runs drawn as lines


@experiment(
    paper="J24",
    figure="Fig. 4.2",
    claim="At the saddle √N·m is a diffusion, stable below λ = 1 and not above, while r² → 1.",
    tiny={"runs": 400},
    quick={},
)
class BbpDynamics(TwoSides):
    """Two signal-to-noise ratios, and a start on the equator m = 0 away from r² = 1."""

    radius: float = setting(0.2, "r² at the start", above=0)
    dim: int = setting(2000, "dimension N", least=200)
    runs: int = setting(1000, "independent runs of SGD", least=50)
    early: float = setting(0.4, "when laws are compared: √N·m is still far below √N", above=0)
    time: float = setting(1.6, "duration, in units of dim samples", above=0)

    def compute(self, seed: int) -> Data:
        """SGD from (0, r²), and the standard deviations of the SDE of (√N·m, r²) from there."""
        start = {"m": 0.0, "r2": self.radius}

        def spread(snr: float) -> xr.Dataset:
            return self.fluctuations(matrix(snr), start, points=81)

        return {
            "sgd": self.sgd(seed, init=start, points=81),
            "spread": sl.results.over("snr", self.snrs, spread),
        }

    def check(self, data: Data) -> list[Check]:
        """Law and variance of √N·m; r² on its way, with and without the misprint."""
        m, spread = (
            data[name].m.sel(time=self.early, method="nearest").assign_coords(snr=[*self.sides])
            for name in ("sgd", "spread")
        )
        scaled, law = np.sqrt(self.dim) * m, "law of √N·m {}, against the SDE"
        normal = stats.norm()  # the SDE is linear in √N·m, which starts at 0
        r2 = data["sgd"].r2.sel(snr=self.below)
        right, wrong = (self.radii(r2.time, power) for power in (1, 2))
        worst = int(np.argmax(np.abs((right - wrong).values)))
        return [
            *checks.each("snr", checks.distribution, law, scaled / spread, normal),
            *checks.each("snr", checks.variance, "variance of √N·m {}", scaled, spread**2),
            checks.mean(
                f"r² at time {float(r2.time[worst]):.2f}",
                r2.isel(time=worst),
                right[worst],
                note="printed: −8ũ₂(ũ₂² − 1)",
                printed=float(wrong[worst]),
                bias=4 / self.dim,  # the variance of r² at rest, by which −8r⁴ lowers the mean
            ),
        ]

    def radii(self, times: xr.DataArray, power: int = 1) -> xr.DataArray:
        """r²(t) from dr² = −8 r² (r^(2·power) − 1) dt: power 1 is right, 2 is printed."""
        start, decay = self.radius**power, np.exp(-8 * power * times)
        return xr.DataArray((1 + (1 / start - 1) * decay) ** (-1 / power))

    def draw(self, data: Data) -> Figure:
        """Rescaled overlaps below and above with two standard deviations, and r² over time."""
        figure, ((*overlaps, last),) = sl.plot.panels(1, 3, width=3.7, height=3.3)
        for panel, snr in zip(overlaps, self.snrs, strict=True):
            sgd, spread = (data[name].m.sel(snr=snr) for name in ("sgd", "spread"))
            sl.plot.runs(np.sqrt(self.dim) * sgd, most=SHOWN, axes=panel)
            picture.envelope(panel, spread.time, 2 * spread, "± 2 s.d. of the SDE", lw=1.3)
            panel.set(title=f"$\\lambda = {snr:g}$", ylabel="$\\sqrt{N}\\, m$")
        r2 = data["sgd"].r2.sel(snr=self.below)
        sl.plot.runs(r2, most=SHOWN, limit=self.radii(r2.time), axes=last)
        last.plot(r2.time, self.radii(r2.time, 2), "C1:", lw=2, label="as printed")
        last.set(title=f"$\\lambda = {self.below:g}$", ylabel="$r_\\perp^2$")
        return sl.plot.legend_below(figure)

"""Matrix PCA from random starts, seen at the scale 1/√n of the overlap, where it diffuses."""

import numpy as np
import xarray as xr
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import EQUATOR, MatrixPca, matrix, variance

SHOWN = 40  # runs in a picture


@experiment(
    paper="BGJ22",
    figure="Fig. 4",
    claim="Matrix PCA: √n·m is an Ornstein–Uhlenbeck process, stable if λ < 1, unstable if λ > 1.",
    tiny={"snrs": (0.8, 1.2), "large": 20_000, "runs": 128},
    quick={"large": 30_000, "runs": 256},
)
class PcaEquator(MatrixPca):
    """Signal-to-noise ratios on both sides of 1, and two dimensions."""

    dim: int = setting(2000, "dimension n of the runs that are shown", least=100)
    large: int = setting(100_000, "dimension n in which the law is measured", least=10_000)
    runs: int = setting(512, "independent runs of SGD for each λ", least=40)
    time: float = 1.5

    def compute(self, seed: int) -> Data:
        """SGD from random starts in both dimensions, and the covariance of the linear SDE."""

        def limit(snr: float) -> xr.Dataset:
            times = np.linspace(0, self.time, 51)
            sde = sl.effective_dynamics(matrix(snr)).rescaled(at=EQUATOR)
            start = np.diag([1.0, 2.0])  # of √n·m and √n·(r² − 1) for x ~ N(0, I/n)
            variances = [sde.covariance(time, init=start)[0, 0] for time in times]
            return xr.Dataset({"variance": ("time", variances)}, {"time": times})

        return {
            "shown": self.sgd(seed, runs=SHOWN, points=101),
            "large": self.sgd(seed, dim=self.large, points=101),
            "limit": sl.results.over("snr", self.snrs, limit),
        }

    def check(self, data: Data) -> list[Check]:
        """Variance at the end for every λ; all end points together are Gaussian."""
        ends = np.sqrt(self.large) * data["large"].m.isel(time=-1)
        expected = data["limit"].variance.isel(time=-1)

        def note(snr: float) -> str:
            return f"closed form {variance(self.time, snr):.6g}"

        name = f"variance of √n·m at t = {self.time:g}, λ = {{:g}}"
        variances = checks.each("snr", checks.variance, name, ends, expected, note=note)
        name = "law of √n·m at the end, all λ: Gaussian"
        return [*variances, checks.distribution(name, ends / np.sqrt(expected), stats.norm())]

    def draw(self, data: Data) -> Figure:
        """Single runs in the smaller dimension, their law in the larger one."""

        def one(panel: Axes, shown: xr.Dataset, large: xr.Dataset, limit: xr.Dataset) -> None:
            label = f"SGD, n = {self.dim:,}"
            sl.plot.runs(np.sqrt(self.dim) * shown.m, most=SHOWN, label=label, axes=panel)
            spread = 2 * np.sqrt(self.large) * large.m.std("run")[::8]
            label = f"± 2 s.d. of {self.runs} runs, n = {self.large:,}"
            picture.envelope(panel, spread.time, spread, label, "C1o", ms=4)
            label = "± 2 s.d. of the Ornstein–Uhlenbeck process (3.2)"
            picture.envelope(panel, limit.time, 2 * np.sqrt(limit.variance), label, "k")
            word = ["critical", "unstable", "stable"][int(np.sign(shown.snr - 1))]
            panel.set(title=f"λ = {shown.snr:g}: {word}", ylabel=r"$\sqrt{n}\,m$")

        shown, *others = (data[name] for name in ("shown", "large", "limit"))
        return sl.plot.facets(shown, "snr", one, *others, legend=2)

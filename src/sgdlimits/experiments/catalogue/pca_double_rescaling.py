"""Spiked matrices and tensors at the equator: both statistics at scale 1/√n are independent."""

import numpy as np
import xarray as xr
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import EQUATOR, Tensors, printed_radius_variance

SYMBOLS = {"m": r"$\sqrt{n}\,m$", "r2": r"$\sqrt{n}\,(r_\perp^2 - 1)$"}


@experiment(
    paper="BGJ22",
    figure="(3.5)",
    claim="At the equator √n·m and √n·(r²−1) are independent Ornstein–Uhlenbeck processes.",
    tiny={"dim": 1000, "runs": 128, "time": 2.0},
    quick={"dim": 2000, "runs": 512},
)
class PcaDoubleRescaling(Tensors):
    """Orders of the tensor, and a signal that keeps the equator stable."""

    snr: float = setting(0.5, "signal-to-noise ratio λ", above=0, most=0.7)
    dim: int = setting(4000, "dimension n", least=1000)
    runs: int = setting(1024, "independent runs of SGD for each k", least=100)
    time: float = setting(3.0, "duration, in units of dim samples", least=2)

    def compute(self, seed: int) -> Data:
        """SGD that starts on the equator, and the stationary covariance of the linear SDE there."""

        def one(order: int) -> xr.Dataset:
            sgd = self.simulate(self.task(order), seed + order, init=EQUATOR, points=41)
            sde = sl.effective_dynamics(self.task(order)).rescaled(at=EQUATOR)
            covariance = sde.stationary_covariance().covariance
            names = {"statistic": sde.coordinates, "statistic_": sde.coordinates}
            return sgd.assign_coords(names).assign(covariance=(list(names), covariance))

        return {"sgd": sl.results.over("order", self.orders, one)}

    def scaled(self, data: Data) -> xr.Dataset:
        """√n·m and √n·(r²−1) at the end of the runs, with their predicted covariance."""
        ends, root = data["sgd"].isel(time=-1), np.sqrt(self.dim)
        return ends.assign(m=root * ends.m, r2=root * (ends.r2 - 1))

    def check(self, data: Data) -> list[Check]:
        """Both variances for each k, against the printed radius; the mean; no correlation."""
        ends = self.scaled(data)
        overlap, radius = (ends.covariance[:, i, i] for i in (0, 1))
        names = [f"stationary variance of √n·{x}, k = {{}}" for x in ("m", "(r²−1)")]
        names.append("mean of √n·m at the end, k = {}")
        printed, tensors = printed_radius_variance, ends.m[ends.order > 2]
        products = ends.m * ends.r2 / np.sqrt(overlap * radius)
        return [
            *checks.each("order", checks.variance, names[0], ends.m, overlap),
            *checks.each("order", checks.variance, names[1], ends.r2, radius, printed=printed),
            *checks.each("order", checks.mean, names[2], tensors, 0.0, printed=self.printed_mean),
            checks.mean("correlation of √n·m and √n·(r²−1), all k", products, 0.0),
        ]

    def printed_mean(self, order: int) -> float:
        """Of √n·m at the end: the printed drift is −2k, not −2k·m̃."""
        return -2 * order * self.time

    def draw(self, data: Data) -> Figure:
        """The cloud of end points for each k, and both densities."""
        figure, panels = sl.plot.panels(len(self.orders), 3, width=3.8)
        labels = f"SGD, end points of {self.runs} runs", "corrected (3.5): density, 95 % region"
        for (plane, *densities), order in zip(panels, self.orders, strict=True):
            ends = self.scaled(data).sel(order=order)
            picture.cloud(plane, np.stack([ends.m, ends.r2]), ends.covariance.values, labels)
            plane.set(title=f"k = {order}", xlabel=SYMBOLS["m"], ylabel=SYMBOLS["r2"])
            deviations = np.sqrt(np.diag(ends.covariance))
            for panel, name, deviation in zip(densities, SYMBOLS, deviations, strict=True):
                panel.hist(ends[name], 21, density=True, color="C0", alpha=0.4)
                x = np.linspace(-4, 4, 201) * deviation
                panel.plot(x, stats.norm.pdf(x, scale=deviation), "k")
                panel.set(title=f"k = {order}", xlabel=SYMBOLS[name], ylabel="density")
            printed = stats.norm.pdf(x, scale=np.sqrt(printed_radius_variance(order)))
            panel.plot(x, printed, "k:", label="(3.5) as printed")
            panel.set_ylim(0, 2.5 * stats.norm.pdf(0, scale=deviation))
        return sl.plot.legend_below(figure)

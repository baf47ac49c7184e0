"""Spiked matrices and tensors at the equator: both statistics at scale 1/√n are independent."""

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import EQUATOR
from sgdlimits.experiments.shared import Sgd

SYMBOLS = (r"$\sqrt{n}\,m$", r"$\sqrt{n}\,(r_\perp^2 - 1)$")


@experiment(
    paper="BGJ22",
    figure="(3.5)",
    claim="At the equator √n·m and √n·(r²−1) are independent Ornstein–Uhlenbeck processes.",
    tiny={"dim": 1000, "runs": 128, "time": 2.0},
    quick={"dim": 2000, "runs": 512},
)
class PcaDoubleRescaling(Sgd):
    """Orders of the tensor, and a signal that keeps the equator stable."""

    orders: tuple[int, ...] = setting((2, 3), "orders k of the tensor", least=2, most=6)
    snr: float = setting(0.5, "signal-to-noise ratio λ", above=0, most=0.7)
    dim: int = setting(4000, "dimension n", least=1000)
    runs: int = setting(1024, "independent runs of SGD for each k", least=100)
    time: float = setting(3.0, "duration, in units of dim samples", least=2)

    def compute(self, seed: int) -> Data:
        """SGD that starts on the equator, and the stationary covariance of the linear SDE there."""

        def one(order: int) -> xr.Dataset:
            task = sl.tasks.SpikedTensor(order=order, snr=self.snr)
            sgd = self.simulate(task, seed + order, init=EQUATOR, points=41)
            sde: Any = sl.effective_dynamics(task).rescaled(at=EQUATOR)
            covariance = sde.stationary_covariance().covariance
            names = {"statistic": sde.coordinates, "statistic_": sde.coordinates}
            return sgd.assign_coords(names).assign(covariance=(list(names), covariance))

        return {"sgd": sl.results.over("order", self.orders, one)}

    def scaled(self, data: Data, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """√n·m and √n·(r²−1) at the end of the runs, and their predicted covariance."""
        ends = data["sgd"].sel(order=order).isel(time=-1)
        root = np.sqrt(self.dim)
        return root * ends.m.values, root * (ends.r2.values - 1), ends.covariance.values

    def check(self, data: Data) -> list[Check]:
        """Both variances for each k, against the printed radius; the mean; no correlation."""
        told, products = [], []
        for order in self.orders:
            overlap, radius, covariance = self.scaled(data, order)
            name = f"stationary variance of √n·m, k = {order}"
            told.append(checks.variance(name, overlap, covariance[0, 0]))
            name = f"stationary variance of √n·(r²−1), k = {order}"
            told.append(
                checks.variance(name, radius, covariance[1, 1], printed=printed_variance(order))
            )
            if order > 2:  # the printed drift is −2k, not −2k·m̃
                name, printed = f"mean of √n·m at the end, k = {order}", -2 * order * self.time
                told.append(checks.mean(name, overlap, 0.0, printed=printed))
            products.append(overlap * radius / np.sqrt(covariance[0, 0] * covariance[1, 1]))
        name = "correlation of √n·m and √n·(r²−1), all k"
        return [*told, checks.mean(name, np.concatenate(products), 0.0)]

    def draw(self, data: Data) -> Figure:
        """The cloud of end points for each k, and both densities."""
        figure, panels = sl.plot.panels(len(self.orders), 3, width=3.8)
        for (plane, *densities), order in zip(panels, self.orders, strict=True):
            *both, covariance = self.scaled(data, order)
            plane.plot(*both, "C0.", ms=3, alpha=0.5)
            label = "corrected (3.5): density, 95 % region"
            plane.plot(*picture.region(covariance), "k", label=label)
            plane.set(title=f"k = {order}", xlabel=SYMBOLS[0], ylabel=SYMBOLS[1])
            for panel, values, variance, symbol in zip(
                densities, both, np.diag(covariance), SYMBOLS, strict=True
            ):
                label = f"SGD, end points of {self.runs} runs"
                panel.hist(values, 21, density=True, color="C0", alpha=0.4, label=label)
                x = np.linspace(-4, 4, 201) * np.sqrt(variance)
                panel.plot(x, density(x, variance), "k")
                panel.set(title=f"k = {order}", xlabel=symbol, ylabel="density")
            printed = density(x, printed_variance(order))
            densities[1].plot(x, printed, "k:", label="(3.5) as printed")
            densities[1].set_ylim(0, 2.5 * density(0, covariance[1, 1]))
        return sl.plot.legend_below(figure)


def printed_variance(order: int) -> float:
    """Of √n·(r²−1) at rest with the drift −4k² r̃ and the noise 2√(k(k−1)), as printed."""
    return (order - 1) / (2 * order)


def density(x: Any, variance: float) -> Any:
    """Of a normal law with mean zero."""
    return stats.norm(scale=np.sqrt(variance)).pdf(x)

"""Matrix PCA around its transition, in the plane of overlap and radius."""

from functools import partial
from itertools import count

import numpy as np
import xarray as xr
from scipy.linalg import solve_continuous_lyapunov

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import MatrixPca, rest_points, variance


@experiment(
    paper="BGJ22",
    figure="Fig. 2",
    claim="Matrix PCA: SGD stays around (m, r²) = (0, 1) below λ = 1, goes to (±√(λ−1), 1) above.",
    tiny={"snrs": (0.7, 1.3), "dim": 500, "runs": 40, "time": 6.0},
    quick={},
)
class PcaPlanes(MatrixPca):
    """Signal-to-noise ratios on both sides of 1, and how long SGD runs."""

    runs: int = setting(150, "independent runs of SGD for each λ", least=20)

    def compute(self, seed: int) -> Data:
        """SGD from random starts, and the diffusion that it should look like."""
        paths = partial(self.diffusion, start=100, more=4, points=6)
        sde = sl.results.over("snr", self.snrs, paths, count(seed))
        return {"sgd": self.sgd(seed, points=101), "sde": sde}

    def check(self, data: Data) -> list[Check]:
        """Law of the end points at every λ; radius; spread deepest below the transition."""
        sgd, sde = (data[name].isel(time=-1) for name in ("sgd", "sde"))
        name = "law of m at the end, λ = {:g}: SGD against SDE"
        laws = checks.each("snr", checks.distribution, name, sgd.m, sde.m)
        # the runs of one λ only: with four times as many, the gap of order 1/n would show
        snr = min(self.snrs)
        deepest = sgd.sel(snr=snr)
        radius = checks.mean(f"r² at the end, λ = {snr:g}", deepest.r2, 1.0)
        if snr >= 1:
            return [*laws, radius]
        # the term −4m³ of the drift, no part of the limit, lowers the variance by this much
        bias = 3 / (self.dim * (1 - snr) ** 3)
        name, scaled = f"variance of √n·m at the end, λ = {snr:g}", np.sqrt(self.dim) * deepest.m
        return [*laws, radius, checks.variance(name, scaled, variance(self.time, snr), bias=bias)]

    def draw(self, data: Data) -> Figure:
        """One plane for each λ, with the predicted spread around stable rest points."""
        return sl.plot.facets(data["sgd"], "snr", self.draw_plane, title="λ = {:g}", legend=3)

    def draw_plane(self, panel: Axes, sgd: xr.Dataset) -> None:
        """A few runs, all end points, and the rest points with their 95 % regions."""
        few, ends = sgd.isel(run=slice(8)), sgd.isel(time=-1)
        light = sl.plot.style.PALETTE["sky blue"]
        panel.plot(few.m.T, few.r2.T, color=light, alpha=0.6, lw=0.6, label="SGD, 8 runs")
        panel.plot(ends.m, ends.r2, "C0.", ms=5, label=f"end points of {self.runs} runs")
        for point in rest_points(float(sgd.snr)):
            picture.rest_point(panel, point.overlap, point.radius_squared, stable=point.stable)
            if point.stable:
                label = "95 % region of the stationary diffusion"
                ellipse = self.region(point.overlap, float(sgd.snr))
                panel.plot(*ellipse, color="k", lw=1.2, label=label)
        panel.set(xlabel=sl.plot.symbol("m"), ylabel=sl.plot.symbol("r2"))

    def region(self, overlap: float, snr: float) -> np.ndarray:
        """The ellipse that holds 95 % of the stationary Gaussian law around (overlap, 1)."""
        drift = sl.theory.spiked_tensor.jacobian(overlap, 1.0, order=2, snr=snr)
        noise = sl.theory.spiked_tensor.diffusion(overlap, 1.0, order=2)
        return picture.region(solve_continuous_lyapunov(drift, -noise) / self.dim, (overlap, 1.0))

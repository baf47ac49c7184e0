"""Matrix PCA below and above its transition: over time, and in the plane of its two statistics."""

from functools import partial
from itertools import count

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import (
    TwoSides,
    draw_overlaps_at_rest,
    rest_points,
    variance,
)


@experiment(
    paper="BGJ22",
    figure="Fig. 1",
    claim="Matrix PCA: √n·m is a stable Ornstein–Uhlenbeck process below λ = 1, unstable above.",
    tiny={"dim": 200, "runs": 50},
    quick={},
    headline=True,
)
class PcaOverview(TwoSides):
    """Two signal-to-noise ratios, one on either side of 1."""

    dim: int = setting(1500, "dimension n", least=100)
    runs: int = setting(200, "independent runs of SGD", least=20)
    time: float = setting(10.0, "duration, in units of dim samples", above=0)

    def compute(self, seed: int) -> Data:
        """SGD from random starts, and the diffusion that it should look like."""
        paths = partial(self.diffusion, start=10)
        sde = sl.results.over("snr", self.snrs, paths, count(seed))
        return {"sgd": self.sgd(seed), "sde": sde}

    def check(self, data: Data) -> list[Check]:
        """Variance of the stable process, end points above, and the law of the end points."""
        ends, paths = (data[name].isel(time=-1) for name in ("sgd", "sde"))
        above = ends.sel(snr=self.above)
        return [
            checks.variance(
                "variance of √n·m below, Ornstein–Uhlenbeck",
                np.sqrt(self.dim) * ends.m.sel(snr=self.below),
                variance(self.time, self.below),
            ),
            checks.distribution(
                "law of m at the end above: SGD against SDE", above.m, paths.m.sel(snr=self.above)
            ),
            checks.mean("r² at the end above", above.r2, 1.0),
        ]

    def draw(self, data: Data) -> Figure:
        """Time series on the left, planes on the right."""
        figure, panels = sl.plot.panels(2, 2)
        for (left, right), snr in zip(panels, self.snrs, strict=True):
            sgd = data["sgd"].sel(snr=snr)
            sl.plot.runs(sgd.m, most=30, axes=left)
            sl.plot.plane(sgd.isel(run=slice(10)), None, "m", "r2", axes=right)
            draw_overlaps_at_rest(left, snr)
            for point in rest_points(snr):
                picture.rest_point(right, point.overlap, point.radius_squared, stable=point.stable)
            left.set(title=f"λ = {snr:g}", ylabel="$m$")
            right.set(title=f"λ = {snr:g}", ylim=(0.7, 1.3))
        spread = 2 / np.sqrt((1 - self.below) * self.dim)
        label = "± 2 s.d. of the OU process"
        picture.envelope(panels[0, 0], (0, self.time), spread, label, lw=1)
        return sl.plot.legend_below(figure)

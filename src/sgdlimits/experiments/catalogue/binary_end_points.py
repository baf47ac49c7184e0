"""Two classes: where SGD ends at several noise levels, and the rest points without noise."""

import math
from itertools import count

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._binary import Binary, ring_point
from sgdlimits.experiments.catalogue._rings import draw_end_points, draw_rings


@experiment(
    paper="BGJ22",
    figure="Fig. 6",
    claim="Binary mixture: SGD ends on quarter rings or at optimal points, explicit as λ → ∞.",
    tiny={"precisions": (10.0, 1000.0), "runs": 64},
    quick={"runs": 250},
)
class BinaryEndPoints(Binary):
    """Noise levels of the data, from strong to weak."""

    precisions: tuple[float, ...] = setting(
        (1.0, 10.0, 100.0, 1000.0), "precisions λ of the data", least=1
    )
    time: float = setting(100.0, "duration, until all runs rest; in units of dim samples", least=80)

    def compute(self, seed: int) -> Data:
        """End points of SGD from random starts, and rest points of the limit at that precision."""

        def one(precision: float, seed: int) -> xr.Dataset:
            sgd = self.simulate(self.task(precision), seed, points=2).isel(time=-1, drop=True)
            ring = np.sum(ring_point(np.pi / 4, precision, self.ridge)["M"] ** 2)
            optimal = sl.theory.binary_mixture.noisy_optimal_point(
                precision=precision, ridge=self.ridge
            )
            return xr.Dataset({"m": sgd.M[..., 0], "ring": ring, "point": optimal.overlaps[0]})

        return {"ends": sl.results.over("precision", self.precisions, one, count(seed))}

    def check(self, data: Data) -> list[Check]:
        """Squared radius of the ring at every precision; the points at the largest."""
        ends, largest = data["ends"], max(self.precisions)
        same = ends.m.prod("neuron") > 0
        radii, sizes = (ends.m**2).sum("neuron"), abs(ends.m.isel(neuron=0))
        rings = [
            checks.mean(
                f"|m|² of end points with m₁m₂ > 0, λ = {precision:g}",
                radii.sel(precision=precision)[same.sel(precision=precision)],
                ends.ring.sel(precision=precision),
                note=f"{self.radius_squared:.4f} at λ = ∞",
            )
            for precision in self.precisions
        ]
        points = checks.mean(
            f"|m₁| of the others, λ = {largest:g}",
            sizes.sel(precision=largest)[~same.sel(precision=largest)],
            ends.point.sel(precision=largest),
            note=f"{math.sqrt(self.radius_squared):.4f} at λ = ∞",
        )
        return [*rings, points]

    def draw(self, data: Data) -> Figure:
        """One panel for each precision, with the rest points at that precision and at λ = ∞."""
        radius = math.sqrt(self.radius_squared)

        def one(panel: Axes, ends: xr.Dataset) -> None:
            panel.plot(*ends.m.values.T, "C0.", ms=5, alpha=0.35, label="end points of SGD")
            size, label = float(ends.point), "rest points at this λ"
            panel.plot([size, -size], [-size, size], "C1+", ms=10, zorder=5, label=label)
            draw_rings(panel, radius, "unstable rest points, λ = ∞", lw=1.4)
            draw_rings(panel, math.sqrt(ends.ring), label, "C1", lw=1.2)
            stable = "stable rest points, λ = ∞"
            panel.plot([radius, -radius], [-radius, radius], "kx", ms=9, label=stable)

        return draw_end_points(data["ends"], one, ("$m_1$", "$m_2$"))

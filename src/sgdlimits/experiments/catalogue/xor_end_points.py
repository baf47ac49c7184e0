"""XOR: where SGD ends at several noise levels, and the rest points without noise.

At the paper's ridge of 0.1, close to the threshold 1/8, neurons grow at rate 1/8 − 0.1 only: after
time 100 many runs are still on their way, and the noise of λ = 10 keeps them all near zero.
"""

import math

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment
from sgdlimits.experiments.catalogue._rings import draw_end_points, draw_rings
from sgdlimits.experiments.catalogue._xor import NO_NOISE, NoisyXor, aligned, optimal_signs

REST_POINTS = [[1, -1], [-1, 1], [1, 0], [-1, 0], [0, 1], [0, -1], [0, 0]]  # off the rings, over √C


@experiment(
    paper="BGJ22",
    figure="Fig. 9",
    claim="XOR: the end points of SGD approach the rest points of the limit λ = ∞ as λ grows.",
    tiny={"precisions": (100.0,), "runs": 64, "time": 20.0, "ridge": 0.05},
    quick={"runs": 128},
)
class XorEndPoints(NoisyXor):
    """Noise levels of the data, from strong to weak; no noise at all is always added."""

    def compute(self, seed: int) -> Data:
        """End points of SGD; without noise also of the limit from the same starts, and at rest."""
        sgd = self.sgd(seed)
        noiseless = sgd.sel(precision=NO_NOISE)
        start, end = (sl.results.state(noiseless, time=time) for time in (0.0, self.time))
        return {
            "ends": sgd[["v", "M"]].isel(time=-1),
            "limit": self.solve(self.task(), start, points=2)[["M"]].isel(time=-1),
            "rest": self.at_rest(end)[["v", "M"]],
        }

    def check(self, data: Data) -> list[Check]:
        """Without noise: each run against the limit from its own start, and the rest points."""
        sgd, limit = (
            np.abs(ends.M.sel(anchor="mu", neuron=0).values)
            for ends in (data["ends"].sel(precision=NO_NOISE), data["limit"])
        )
        rest = sl.results.state(data["rest"])
        sums = np.sum(aligned(rest) * rest["v"][..., None] ** 2, axis=1)
        filled = sums > self.radius_squared / 2
        furthest = np.max(np.abs(sums[filled] - self.radius_squared))
        return [
            checks.mean(
                "|m₁^μ| of SGD minus that of the limit from the same start, λ = ∞",
                sgd - limit,
                0.0,
                note=f"{np.mean(limit):.4f} on average",
            ),
            checks.exact(
                "Σ v² over each set of aligned neurons, once at rest: furthest from C",
                self.radius_squared + furthest,
                self.radius_squared,
                1e-6,
            ),
            checks.exact("furthest from 0, over empty sets", np.max(sums[~filled]), 0.0, 1e-6),
        ]

    def draw(self, data: Data) -> Figure:
        """One panel for each precision in the plane of two neurons; optimal end points apart."""
        radius = math.sqrt(self.radius_squared)

        def one(panel: Axes, ends: xr.Dataset) -> None:
            optimal = optimal_signs(sl.results.state(ends))
            pairs = ends.M.sel(anchor="mu").values[:, :2]
            for chosen, color, label in (
                (~optimal, sl.plot.style.SIMULATION, "end points of SGD"),
                (optimal, sl.plot.style.PALETTE["orange"], "with the signs of an optimal network"),
            ):
                panel.plot(*pairs[chosen].T, ".", color=color, ms=5, alpha=0.5, label=label)
            draw_rings(panel, radius, "rings, λ = ∞", lw=1.4)
            points = radius * np.transpose(REST_POINTS)
            panel.plot(*points, "kx", ms=8, label="stable rest points, λ = ∞")

        return draw_end_points(data["ends"], one, (r"$m_1^\mu$", r"$m_2^\mu$"), height=3.6)

"""Two classes: the fluctuations of SGD about a point of the quarter ring have rank one."""

import math
from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._binary import Binary, ring_point
from sgdlimits.experiments.catalogue._rings import common_checks, engine_covariance, radial_variance

STATISTICS = ["v[0]", "v[1]", "M[0,mu]", "M[1,mu]"]


@experiment(
    paper="BGJ22",
    figure="Fig. 8",
    claim="Binary mixture: near a quarter ring √N(v - a, m - a) is a stable diffusion of rank one.",
    tiny={"runs": 128, "time": 10.0},
    quick={},
)
class BinaryRingDiffusion(Binary):
    """A point of the ring, with little noise in the data and with none."""

    precision: float = setting(100.0, "precision λ of the data", least=10)
    angle: float = setting(30.0, "angle of the point on the ring, in degrees", above=0, most=89)
    dim: int = 250
    runs: int = setting(500, "independent runs of SGD", least=64)
    time: float = setting(20.0, "duration, in units of dim samples", least=2)

    @property
    def direction(self) -> np.ndarray:
        """The unit vector towards the point."""
        angle = math.radians(self.angle)
        return np.array([math.cos(angle), math.sin(angle)])

    def compute(self, seed: int) -> Data:
        """√N (u − u*) of runs that start at the point u* of the ring, and its SDE without noise."""

        def start(precision: float) -> dict[str, np.ndarray]:
            return ring_point(self.direction, precision, self.ridge)

        def sgd(precision: float, seed: int) -> xr.Dataset:
            at, task = start(precision), self.task(precision)
            runs = self.simulate(task, seed, init=at, points=41)
            apart = xr.Dataset({"v": runs.v - at["v"], "m": (runs.M - at["M"])[..., 0]})
            return math.sqrt(self.dim) * apart

        noiseless = self.task(math.inf), start(math.inf)
        return {
            "sgd": sl.results.over("precision", (self.precision, math.inf), sgd, count(seed)),
            "sde": engine_covariance(*noiseless, self.time, STATISTICS),
        }

    def covariance(self, time: Any, sign: float = -1.0) -> np.ndarray:
        """Of √N(v − a, m − a) at some time or times, by Prop. 4.3; with ``sign=1.0`` as printed."""
        point = math.sqrt(self.radius_squared) * self.direction
        noise = sl.theory.binary_mixture.ring_diffusion(point, ridge=self.ridge)
        return np.multiply.outer(radial_variance(self, time, 2, sign), noise)

    def check(self, data: Data) -> list[Check]:
        """Variance with the sign that restores, covariance along the radius, and rank one."""
        expected = self.covariance(self.time)
        noisy, exact = (data["sgd"].isel(time=-1, precision=number) for number in (0, 1))
        return [
            checks.variance(
                "variance of √N(m₁ - a₁), λ = ∞",
                exact.m[:, 0],
                expected[2, 2],
                printed=float(self.covariance(self.time, sign=1.0)[2, 2]),
                note="drift across the ring in Prop. 4.3",
            ),
            checks.mean(
                "covariance of √N m₁ and √N m₂, λ = ∞", exact.m.prod("neuron"), expected[2, 3]
            ),
            checks.variance(
                f"variance of √N(m₁ - a₁), λ = {self.precision:g}", noisy.m[:, 0], expected[2, 2]
            ),
            *common_checks(exact, 1, data["sde"], expected),
        ]

    def draw(self, data: Data) -> Figure:
        """√N(m₁ − a₁) over time, and the planes of overlaps and of readouts."""
        figure, panels = sl.plot.panels(1, 3, width=3.6, height=3.3)
        (left, *planes), runs = panels[0], data["sgd"].isel(precision=0)
        sl.plot.runs(runs.m.isel(neuron=0), label="_", axes=left)
        spread = 2 * np.sqrt(self.covariance(runs.time.values)[:, 2, 2])
        left.plot(runs.time, spread, "k", runs.time, -spread, "k", lw=1.6)
        left.set_ylabel(r"$\sqrt{N}\,(m_1-a_1)$")
        for panel, name in zip(planes, ("m", "v"), strict=True):
            ends, label = runs[name].isel(time=-1), f"SGD, λ = {self.precision:g}"
            panel.plot(*ends.values.T, "C0.", alpha=0.4, label=label)
            line = picture.region(self.covariance(self.time)[:2, :2], deviations=2.0)
            panel.plot(*line, "k", lw=1.6, label="± 2 s.d. of the SDE at λ = ∞")
            panel.set(aspect="equal", title=f"$t$ = {self.time:g}")
            panel.set_xlabel(rf"$\sqrt{{N}}\,({name}_1-a_1)$")
            panel.set_ylabel(rf"$\sqrt{{N}}\,({name}_2-a_2)$")
        return sl.plot.legend_below(figure)

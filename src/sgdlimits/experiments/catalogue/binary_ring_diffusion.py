"""Two classes: the fluctuations of SGD about a point of the quarter ring have rank one."""

import math
from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue import _rings
from sgdlimits.experiments.catalogue._binary import NO_NOISE, Binary, ring_point


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

    def start(self, precision: float) -> dict[str, np.ndarray]:
        """The point u* of the ring at some precision."""
        return ring_point(math.radians(self.angle), precision, self.ridge)

    def compute(self, seed: int) -> Data:
        """√N (u − u*) of runs that start at the point u* of the ring, and its SDE without noise."""

        def sgd(precision: float, seed: int) -> xr.Dataset:
            start = self.start(precision)
            runs = self.simulate(self.task(precision), seed, init=start, points=41)
            return _rings.deviations(runs, start, self.dim)

        return {
            "sgd": sl.results.over("precision", (self.precision, NO_NOISE), sgd, count(seed)),
            "sde": _rings.engine_covariance(self.task(), self.start(NO_NOISE), self.time),
        }

    def covariance(self, time: Any, sign: float = -1.0) -> np.ndarray:
        """Of √N(v − a, m − a) at some time or times, by Prop. 4.3; with ``sign=1.0`` as printed."""
        point = self.start(NO_NOISE)["v"]
        noise = sl.theory.binary_mixture.ring_diffusion(point, ridge=self.ridge)
        return np.multiply.outer(_rings.radial_variance(self, time, 2, sign), noise)

    def check(self, data: Data) -> list[Check]:
        """Variance with the sign that restores, covariance along the radius, and rank one."""
        expected, printed = (self.covariance(self.time, sign) for sign in (-1.0, 1.0))
        noisy, exact = (data["sgd"].isel(time=-1, precision=number) for number in (0, 1))
        name, words = "covariance of √N m₁ and √N m₂, λ = ∞", ("m₁ - a₁", "ring in Prop. 4.3")
        return [
            *_rings.common_checks(exact, data["sde"], expected, printed, 1, words),
            checks.mean(name, exact.m.prod("neuron"), expected[2, 3]),
            checks.variance(
                f"variance of √N(m₁ - a₁), λ = {self.precision:g}", noisy.m[:, 0], expected[2, 2]
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """√N(m₁ − a₁) over time, and the planes of overlaps and of readouts."""
        figure, panels = sl.plot.panels(1, 3, width=3.6, height=3.3)
        (left, *planes), runs = panels[0], data["sgd"].isel(precision=0)
        sl.plot.runs(runs.m.isel(neuron=0), label="_", axes=left)
        spread = 2 * np.sqrt(self.covariance(runs.time.values)[:, 2, 2])
        labels = f"SGD, λ = {self.precision:g}", "± 2 s.d. of the SDE at λ = ∞"
        picture.envelope(left, runs.time, spread, labels[1], "k")
        left.set_ylabel(r"$\sqrt{N}\,(m_1-a_1)$")
        for panel, name in zip(planes, ("m", "v"), strict=True):
            ends = runs[name].isel(time=-1).values.T
            picture.cloud(panel, ends, self.covariance(self.time)[:2, :2], labels, deviations=2.0)
            panel.set(aspect="equal", title=f"$t$ = {self.time:g}")
            panel.set_xlabel(rf"$\sqrt{{N}}\,({name}_1-a_1)$")
            panel.set_ylabel(rf"$\sqrt{{N}}\,({name}_2-a_2)$")
        return sl.plot.legend_below(figure)

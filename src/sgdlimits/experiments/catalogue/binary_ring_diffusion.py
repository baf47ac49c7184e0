"""Two classes: the fluctuations of SGD about a point of the quarter ring have rank one."""

import math
from itertools import count
from typing import Any

import numpy as np
import xarray as xr
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._binary import Binary


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

    def compute(self, seed: int) -> Data:
        """√N (u − u*) of runs that start at the point u* of the ring, and its SDE without noise."""

        def sgd(precision: float, seed: int) -> xr.Dataset:
            start, root = self.start(precision), math.sqrt(self.dim)
            runs = self.simulate(self.task(precision), seed, init=start, points=41)
            return xr.Dataset(
                {"v": root * (runs.v - start["v"]), "m": root * (runs.M - start["M"])[..., 0]}
            )

        sde: Any = sl.effective_dynamics(self.task(math.inf)).rescaled(self.start(math.inf))
        covariance = sde.covariance(self.time)[:4, :4]  # of v and M
        return {
            "sgd": sl.results.over("precision", (self.precision, math.inf), sgd, count(seed)),
            "sde": xr.Dataset({"covariance": (("statistic", "statistic_"), covariance)}),
        }

    @property
    def direction(self) -> np.ndarray:
        """The unit vector towards the point."""
        angle = math.radians(self.angle)
        return np.array([math.cos(angle), math.sin(angle)])

    @property
    def point(self) -> np.ndarray:
        """The point (a₁, a₂) of the ring without noise."""
        return math.sqrt(self.radius_squared) * self.direction

    def start(self, precision: float) -> dict[str, np.ndarray]:
        """The point of the ring at some precision, by Prop. 4.1."""
        e, size = self.direction, math.sqrt(self.radius_squared)

        def velocity(x: np.ndarray) -> list[float]:
            drift = sl.theory.binary_mixture.drift(
                x[0] * e, x[1] * e, x[2] * np.outer(e, e), precision=precision, ridge=self.ridge
            )
            return [e @ drift.readout, e @ drift.overlaps, e @ drift.orthogonal @ e]

        v, m, r = size, size, 0.0
        if math.isfinite(precision):
            v, m, r = optimize.root(velocity, [v, m, size**2 / precision]).x
        return {"v": v * e, "M": m * e[:, None], "R": r * np.outer(e, e)}

    def variance(self, time: Any, sign: float = -1.0) -> np.ndarray:
        """Of √N (m₁ − a₁): noise α² a₁² and drift −ρ along the radius.

        (a, a) is an eigenvector of both matrices of Prop. 4.3, ρ = 2 C (α − 2 α²); as printed, +ρ.
        """
        rate = sign * 2 * self.radius_squared * (self.ridge - 2 * self.ridge**2)
        noise = (self.ridge * self.point[0]) ** 2
        return np.asarray(noise * np.expm1(2 * rate * time) / (2 * rate))

    def check(self, data: Data) -> list[Check]:
        """Variance with the sign that restores, covariance along the radius, and rank one."""
        a, expected = self.point, float(self.variance(self.time))
        noisy, exact = (data["sgd"].isel(time=-1, precision=number) for number in (0, 1))
        spectrum = np.linalg.eigvalsh(np.cov(np.concatenate([exact.v, exact.m], axis=1).T))
        closed = np.outer(np.tile(a, 2), np.tile(a, 2)) * expected / a[0] ** 2
        gap = np.max(np.abs(data["sde"].covariance.values - closed))
        return [
            checks.variance(
                "variance of √N(m₁ - a₁), λ = ∞",
                exact.m[:, 0],
                expected,
                printed=float(self.variance(self.time, sign=1.0)),
                note="drift across the ring in Prop. 4.3",
            ),
            checks.mean(
                "covariance of √N m₁ and √N m₂, λ = ∞", exact.m.prod("neuron"), closed[0, 1]
            ),
            checks.variance(
                f"variance of √N(m₁ - a₁), λ = {self.precision:g}", noisy.m[:, 0], expected
            ),
            checks.exact(
                "second eigenvalue of the covariance / first", spectrum[-2] / spectrum[-1], 0, 1e-9
            ),
            checks.exact("largest gap, covariance of engine and closed form", gap, 0.0, 1e-9),
        ]

    def draw(self, data: Data) -> Figure:
        """√N(m₁ − a₁) over time, and the planes of overlaps and of readouts."""
        figure, panels = sl.plot.panels(1, 3, width=3.6, height=3.3)
        (left, *planes), runs = panels[0], data["sgd"].isel(precision=0)
        sl.plot.runs(runs.m.isel(neuron=0), label="_", axes=left)
        spread = 2 * np.sqrt(self.variance(runs.time.values))
        left.plot(runs.time, spread, "k", runs.time, -spread, "k", lw=1.6)
        left.set_ylabel(r"$\sqrt{N}\,(m_1-a_1)$")
        radius = np.outer(self.direction / self.direction[0], [-spread[-1], spread[-1]])
        for panel, name in zip(planes, ("m", "v"), strict=True):
            ends, label = runs[name].isel(time=-1), f"SGD, λ = {self.precision:g}"
            panel.plot(*ends.values.T, "C0.", alpha=0.4, label=label)
            panel.plot(*radius, "k", lw=1.6, label="± 2 s.d. of the SDE at λ = ∞")
            panel.set(aspect="equal", title=f"$t$ = {self.time:g}")
            panel.set_xlabel(rf"$\sqrt{{N}}\,({name}_1-a_1)$")
            panel.set_ylabel(rf"$\sqrt{{N}}\,({name}_2-a_2)$")
        sl.plot.legend_below(figure)
        return figure

"""XOR: the fluctuations of SGD about a point of two rings have rank two.

Noise moves the rings by O(1/√λ), so that runs at finite λ are shown about their mean. The caption
of Fig. 11 calls the rings independent; by Prop. 5.1 the correlation of their radii is −1/3.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue import _rings
from sgdlimits.experiments.catalogue._xor import NO_NOISE, NoisyXor


@experiment(
    paper="BGJ22",
    figure="Fig. 11",
    claim="XOR: near two rings √N(v - a, m - a) is a stable diffusion of rank two.",
    tiny={"precisions": (1000.0,), "runs": 128},
    quick={},
)
class XorRingsDiffusion(NoisyXor):
    """A point of two rings, with little noise in the data and with none."""

    precisions: tuple[float, ...] = setting((100.0, 1000.0), "precisions λ of the data", least=10)
    angles: tuple[float, ...] = setting(
        (30.0, 45.0), "angles of the point on the rings of μ and of ν, in degrees", above=0, most=89
    )
    dim: int = 250
    runs: int = setting(500, "independent runs of SGD", least=128)
    time: float = setting(20.0, "duration, in units of dim samples", least=2)

    @property
    def point(self) -> np.ndarray:
        """(a₁, a₂) on the ring of μ, and (a₃, a₄) on the ring of ν."""
        mu, nu = math.radians(self.angles[0]), math.radians(self.angles[-1])
        directions = [math.cos(mu), math.sin(mu), -math.cos(nu), -math.sin(nu)]
        return math.sqrt(self.radius_squared) * np.array(directions)

    def compute(self, seed: int) -> Data:
        """√N(v − a, m − a) of runs that start at the point a of the rings at λ = ∞; its SDE."""
        a = self.point
        start = {"v": a, "M": np.diag(a) @ np.repeat(np.eye(2), 2, axis=0), "R": np.zeros((4, 4))}
        ends = self.sgd(seed, init=start).isel(time=-1)
        return {
            "ends": _rings.deviations(ends, start, self.dim),
            "sde": _rings.engine_covariance(self.task(), start, self.time),
        }

    def covariance(self, sign: float = -1.0) -> np.ndarray:
        """Of √N(v − a, m − a) at the end, by Prop. 5.1; with ``sign=1.0`` as printed."""
        noise = sl.theory.xor.rings_diffusion(self.point, ridge=self.ridge)
        return noise * _rings.radial_variance(self, self.time, 4, sign)

    def check(self, data: Data) -> list[Check]:
        """Variance with the sign that restores, rings that are anticorrelated, and rank two."""
        ends = data["ends"].sel(precision=NO_NOISE)
        expected, printed = (self.covariance(sign) for sign in (-1.0, 1.0))
        words, m = ("m₁^μ - a₁", "rings in Prop. 5.1"), ends.m.transpose("run", "neuron").values
        return [
            *_rings.common_checks(ends, data["sde"], expected, printed, 2, words),
            *(
                checks.mean(
                    f"covariance of √N m₁^μ and √N m{'₁₂₃₄'[j]}^{'μμνν'[j]}, λ = ∞",
                    m[:, 0] * m[:, j],
                    expected[4, 4 + j],
                )
                for j in (1, 2)
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """Two neurons of one ring above, of two rings below; columns for the precisions."""
        ends = data["ends"]
        size: Any = {"width": 3.1, "height": 2.7, "sharex": True, "sharey": "row"}
        figure, panels = sl.plot.panels(2, len(ends.precision), xlabel=deviation(0), **size)
        for row, other, title in zip(panels, (1, 2), ("λ = {:g}", ""), strict=True):
            draw = partial(self.draw_pair, other=other)
            sl.plot.facets(ends, "precision", draw, title=title, axes=row)
        return sl.plot.legend_below(figure)

    def draw_pair(self, panel: Axes, ends: xr.Dataset, other: int) -> None:
        """Overlaps of the first neuron and of another about their means, and their covariance."""
        cloud = (ends.m - ends.m.mean("run")).transpose("neuron", "run").values[[0, other]]
        pair = np.ix_([4, 4 + other], [4, 4 + other])
        labels = "SGD", "2 s.d. of the SDE at λ = ∞"  # the region is a line on one ring
        picture.cloud(panel, cloud, self.covariance()[pair], labels, deviations=2.0)
        panel.set_ylabel(deviation(other))


def deviation(neuron: int) -> str:
    """The label of an axis: √N times the overlap of a neuron with its ring, about its mean."""
    index = rf"_{neuron + 1}^\{'mu' if neuron < 2 else 'nu'}"
    return rf"$\sqrt{{N}}\,(m{index}-\overline{{m}}{index})$"

"""What the experiments on spiked matrices and tensors share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import picture
from sgdlimits.experiments.base import Axes, Figure, setting
from sgdlimits.experiments.shared import Sgd

Draw = Callable[[Axes, xr.Dataset], None]
EQUATOR = {"m": 0.0, "r2": 1.0}


class Matrices(Sgd):
    """Spiked matrices with several signal-to-noise ratios ``snrs``."""

    @property
    def snrs(self) -> tuple[float, ...]:
        """A setting, or what follows from settings."""
        raise NotImplementedError

    def sgd(self, seed: int, **options: Any) -> xr.Dataset:
        """SGD for every λ, each with its own seed; options are those of ``sgdlimits.simulate``."""
        return self.simulate_over("snr", self.snrs, matrix, seed, **options)

    def diffusion(
        self, snr: float, seed: int, *, start: int, more: int = 1, points: int = 201
    ) -> xr.Dataset:
        """The SDE that SGD of this size should look like, ``more`` times as many paths.

        The random starts have the seed plus ``start``.
        """
        runs = more * self.runs
        starts = matrix(snr).random_state(self.dim, seed + start, runs=runs)
        return sl.effective_dynamics(matrix(snr)).sample_paths(
            starts, dim=self.dim, time=self.time, runs=runs, seed=seed, points=points
        )


class MatrixPca(Matrices):
    """Signal-to-noise ratios on both sides of 1, and how long SGD runs."""

    snrs: tuple[float, ...] = setting((0.8, 0.9, 1.1, 1.2), "signal-to-noise ratios λ", above=0)
    dim: int = setting(2000, "dimension n", least=100)
    runs: int = setting(256, "independent runs of SGD for each λ", least=20)
    time: float = setting(10.0, "duration, in units of dim samples", above=0)

    def draw_rows(
        self, sgd: xr.Dataset, runs: Draw, below: tuple[Draw, Draw], legend: int
    ) -> Figure:
        """A panel of runs for each λ, two in a row; below, two panels that show all λ."""
        figure, panels = sl.plot.panels(-(-len(self.snrs) // 2) + 1, 2, height=2.6)
        sl.plot.facets(sgd, "snr", runs, title="λ = {:g}", axes=panels[:-1])
        for panel, draw in zip(panels[-1], below, strict=True):
            draw(panel, sgd)
        return sl.plot.legend_below(figure, legend)


class TwoSides(Matrices):
    """Two signal-to-noise ratios, one on either side of 1."""

    below: float = setting(0.8, "signal-to-noise ratio below the transition", above=0, most=0.99)
    above: float = setting(1.2, "signal-to-noise ratio above the transition", least=1.01)

    @property
    def sides(self) -> dict[str, float]:
        """Both of them, by a word."""
        return {"below": self.below, "above": self.above}

    @property
    def snrs(self) -> tuple[float, ...]:
        """Of all sides."""
        return tuple(self.sides.values())


class Tensors(Sgd):
    """Tensors of several orders with the same signal."""

    orders: tuple[int, ...] = setting((2, 3), "orders k of the tensor", least=2, most=6)
    snr: float = setting(1.0, "signal-to-noise ratio λ", above=0)

    def task(self, order: int) -> sl.tasks.SpikedTensor:
        """Of one order."""
        return sl.tasks.SpikedTensor(order=order, snr=self.snr)


def matrix(snr: float) -> sl.tasks.SpikedTensor:
    """A matrix with a spike."""
    return sl.tasks.SpikedTensor(order=2, snr=snr)


def variance(time: Any, snr: float) -> np.ndarray:
    """Of √n·m from random starts, by (3.2): an Ornstein–Uhlenbeck process of rate 4(λ − 1)."""
    return np.asarray(sl.theory.spiked_tensor.equator_variance(time, snr=snr))


def printed_radius_variance(order: int) -> float:
    """Of √n·(r²−1) at rest, by (3.5) as printed: drift −4k² r̃, noise 2√(k(k−1))."""
    return (order - 1) / (2 * order)


def rest_points(snr: float) -> list[sl.theory.spiked_tensor.RestPoint]:
    """Those with r² > 0."""
    return [p for p in sl.theory.spiked_tensor.fixed_points(2, snr) if p.radius_squared > 0]


def draw_overlaps_at_rest(panel: Axes, snr: float) -> None:
    """Lines at the overlaps of rest points: full if they are stable, dotted if not."""
    for point in rest_points(snr):
        word, line = ("stable", "-") if point.stable else ("unstable", ":")
        panel.axhline(point.overlap, color="k", ls=line, lw=1.2, label=f"$m$ at rest, {word}")


def marks(order: int, snr: float) -> list[picture.RestPoint]:
    """All rest points in closed form, for a portrait; at λ = 1 that of a matrix is marginal."""
    words = {True: "stable", False: "unstable"}
    return [
        picture.RestPoint(
            {"m": point.overlap, "r2": point.radius_squared},
            "marginal" if order == 2 and snr == 1 and point.radius_squared else words[point.stable],
        )
        for point in sl.theory.spiked_tensor.fixed_points(order, snr)
    ]

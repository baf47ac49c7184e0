"""The transition of matrix PCA: phase portraits on both sides, and the overlap over the signal."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import TwoSides, marks, matrix

WARM = {"m": 0.5, "r2": 1.0}  # where SGD starts for the diagram


@experiment(
    paper="J24",
    figure="Fig. 4.1",
    claim="BBP transition: at λ = 1 the equator loses stability to two points with m² = λ − 1.",
    tiny={"dim": 1000, "runs": 30, "time": 4.0},
    quick={},
    headline=True,
)
class BbpPhases(TwoSides):
    """Three portraits, and SGD at several signal-to-noise ratios up to ``highest``."""

    below: float = setting(0.7, "signal-to-noise ratio below the transition", above=0, most=0.9)
    at: float = setting(1.0, "signal-to-noise ratio at the transition", above=0)
    above: float = setting(2.0, "signal-to-noise ratio above the transition", least=1.1)
    highest: float = setting(2.5, "largest signal-to-noise ratio of the diagram", least=2.2)
    dim: int = setting(2000, "dimension N", least=100)
    runs: int = setting(50, "independent runs of SGD at each ratio", least=20)
    time: float = setting(5.0, "duration, in units of dim samples", above=0)

    def compute(self, seed: int) -> Data:
        """Runs all around the portraits, end points over the signal, branches of rest points."""
        angle = 2 * np.pi * (np.arange(20) + 0.5) / 20
        ring = {"m": 1.35 * np.cos(angle), "r2": 0.9 + 0.75 * np.sin(angle)}

        # away from 1, where relaxation takes a time of order 1/|λ − 1|
        snrs = np.concatenate([np.linspace(0.2, 0.7, 3), np.linspace(1.3, self.highest, 5)])
        ends = self.simulate_over("snr", snrs, matrix, seed + 10, init=WARM, points=2)
        limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2))
        starts = {"m": [1.3, -1.3, 0.0], "r2": [1.0, 1.0, 1.0]}
        return {
            "portraits": self.sgd(seed, runs=20, time=1.5, init=ring, points=76),
            "ends": ends.isel(time=-1, drop=True),
            "diagram": limit.bifurcations("snr", 0.1, self.highest, init=starts),
        }

    @property
    def sides(self) -> dict[str, float]:
        """The transition itself too."""
        return {"below": self.below, "at": self.at, "above": self.above}

    def check(self, data: Data) -> list[Check]:
        """Where branches cross, m² = λ − 1 on the stable ones, and the end points of SGD."""
        diagram, ends = data["diagram"], data["ends"]
        crossing = diagram.snr.values[diagram.special.values == "branch"][0]
        stable = diagram.stability == "stable"
        gaps = abs(diagram.m**2 - np.maximum(diagram.snr - 1, 0.0)).where(stable)
        return [
            checks.exact("λ at which branches cross", crossing, 1.0, 1e-9),
            checks.exact(
                "largest |m² − max(λ − 1, 0)| of stable rest points", gaps.max(), 0.0, 1e-8
            ),
            checks.mean(
                f"m² of SGD at λ = {self.highest:g}",
                ends.m.isel(snr=-1) ** 2,
                self.highest - 1,
                note="printed: rest point (1, 1)",
                printed=1.0,
            ),
            checks.mean(
                "r² of SGD at λ = 0.2",
                ends.r2.isel(snr=0),
                1.0,
                note="printed: rest point (1, 0)",
                printed=0.0,
            ),
        ]

    def draw(self, data: Data) -> Figure:
        """Three portraits, and the diagram of m with the end points of SGD."""
        figure, panels = sl.plot.panels(2, 2, width=4.6, height=3.5)
        *portraits, last = panels.ravel()
        for number, panel in enumerate(portraits):
            draw_portrait(panel, data["portraits"].isel(snr=number))
        sl.plot.bifurcation(data["diagram"], "m", axes=last)
        for line in last.get_lines():
            if line.get_label() in ("stable", "unstable"):
                line.set_label(f"branch, {line.get_label()}")
        label = "SGD, mean ± s.d. at the end"
        sl.plot.band(data["ends"].m, spread="deviation", bars=True, label=label, axes=last)
        last.set(xlabel="signal-to-noise ratio $\\lambda$", ylabel="$m$", title="rest points")
        last.set_xlim(0, self.highest + 0.1)
        return sl.plot.legend_below(figure, 3)


def draw_portrait(axes: Axes, runs: xr.Dataset) -> None:
    """The drift, its rest points in closed form, and runs from all around."""
    snr = float(runs.snr)
    area: Any = {"x_range": (-1.6, 1.6), "y_range": (0.0, 1.8), "points": 81}
    limit = sl.effective_dynamics(matrix(snr))
    sl.plot.portrait(limit, "m", "r2", fixed_points=marks(2, snr), runs=runs, axes=axes, **area)
    axes.set_title(f"$\\lambda = {snr:g}$")

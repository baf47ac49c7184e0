"""How noise in the data moves the rest points: by O(1/λ) for two classes, O(1/√λ) for XOR.

Neurons of one class of XOR see the other at the kink of their ReLU, where the mean of relu(noise)
is of first order in its size:

    C(λ) = C + √(2 / (π λ)) (C − 1 / (1 − 4 α)) + O(1/λ)
"""

import math
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting
from sgdlimits.experiments.catalogue._binary import ring_point
from sgdlimits.experiments.catalogue._xor import ROLES

FIRST = 0.0  # angle at which of two neurons the first is aligned, the other is at zero
LONG = 300.0  # until rest: the slowest rate is about 0.1
# with 2**10 nodes quadrature moves √λ (C(λ) − C) of XOR by about 1 %: the change to 2**12 says so
COARSE, FINE = 2**10, 2**12


@experiment(
    paper="BGJ22",
    figure="footnote 4",
    claim="Noise moves the rest points by O(1/λ) for two classes, by O(1/√λ) for XOR.",
    tiny={"points": 7, "xor": False},
    quick={"xor": False},
)
class MixturePrecision(Settings):
    """Range of the precision, and the two ridges."""

    low: float = setting(5.0, "least precision λ", least=1)
    high: float = setting(10000.0, "largest precision λ", least=1000)
    points: int = setting(25, "precisions, evenly spaced in log λ", least=5)
    binary_ridge: float = setting(0.1, "ridge α for two classes", above=0, most=0.2)
    xor: bool = setting(True, "whether XOR is computed too")
    xor_ridge: float = setting(0.03, "ridge α for XOR", above=0, most=0.06)

    @property
    def slope(self) -> float:
        """The coefficient of 1/√λ in C(λ) of XOR."""
        square = sl.theory.xor.ring_radius_squared(self.xor_ridge)
        return math.sqrt(2 / math.pi) * (square - 1 / (1 - 4 * self.xor_ridge))

    def compute(self, seed: int) -> Data:
        """C(λ) − C: one neuron for two classes by closed forms, four for XOR by the engine."""
        precisions = np.geomspace(self.low, self.high, self.points)
        data = {
            "binary": sl.results.over("precision", precisions, self.binary_gap),
            "engine": self.engine_drift(),
        }
        if self.xor:
            data["xor"] = sl.results.over("nodes", [COARSE, FINE], self.xor_gaps)
        return data

    def binary_gap(self, precision: float) -> xr.Dataset:
        """C(λ) − C, where C is v² of a single aligned neuron at rest; the other is at zero."""
        square = sl.theory.binary_mixture.ring_radius_squared(self.binary_ridge)
        readout = ring_point(FIRST, precision, self.binary_ridge)["v"][0]
        return xr.Dataset({"gap": readout**2 - square})

    def engine_drift(self) -> xr.Dataset:
        """What the engine says of the drift of this neuron, at the least precision."""
        task = sl.tasks.BinaryMixture(width=1, precision=self.low, ridge=self.binary_ridge)
        rest = ring_point(FIRST, self.low, self.binary_ridge)
        alone = {"v": rest["v"][:1], "M": rest["M"][:1], "R": rest["R"][:1, :1]}
        drift = sl.effective_dynamics(task, nodes=COARSE).drift(alone)
        return xr.Dataset({name: float(np.ravel(x)[0]) for name, x in drift.items()})

    def xor_gaps(self, nodes: int) -> xr.Dataset:
        """C(λ) − C, where C is v² of four neurons in four roles, once the limit is at rest."""
        square = sl.theory.xor.ring_radius_squared(self.xor_ridge)

        def gap(precision: float) -> xr.Dataset:
            task = sl.tasks.XorMixture(width=4, precision=precision, ridge=self.xor_ridge)
            rows = math.sqrt(square) * ROLES
            start = {"v": rows[:, 0], "M": rows[:, 1:], "R": np.eye(4) / precision}
            end = sl.effective_dynamics(task, nodes=nodes).solve(start, time=LONG, points=2)
            return xr.Dataset({"gap": (end.v[-1] ** 2).mean() - square})

        return sl.results.over("precision", np.geomspace(100, self.high, 5), gap)

    def check(self, data: Data) -> list[Check]:
        """Exponent for two classes, coefficient for XOR, and the engine at the closed form."""
        exponent = checks.exponent(data["binary"].gap.isel(precision=[-2, -1]), "precision")
        drift = max(abs(float(x)) for x in data["engine"].values())
        name = "two classes: exponent of λ in C(λ) - C"
        at_rest = f"two classes: drift of the engine at rest, λ = {self.low:g}"
        results = [
            # the next order of C(λ) − C is 1/λ²
            checks.exact(name, exponent, -1.0, 10 / self.high),
            checks.exact(at_rest, drift, 0.0, 1e-9),
        ]
        if self.xor:
            small = 1 / np.sqrt(data["xor"].precision.values)
            coarse, fine = (
                np.polynomial.Polynomial.fit(small, gap / small, 3).convert().coef[0]
                for gap in data["xor"].gap.values
            )
            note = f"tolerance: its change from {COARSE} to {FINE} quadrature nodes"
            name = "XOR: coefficient of 1/√λ in C(λ)"
            results.append(checks.exact(name, fine, self.slope, abs(fine - coarse), note=note))
        return results

    def draw(self, data: Data) -> Figure:
        """The distance to C, times that power of λ that makes it tend to a constant."""
        figure, panels = sl.plot.panels(1, 1 + self.xor, width=4.6, height=3.6)
        first, last = panels[0, 0], panels[0, -1]
        gaps = data["binary"].gap
        first.plot(gaps.precision, gaps.precision * gaps, "k", label="rest point at precision λ")
        title = f"two classes, α = {self.binary_ridge:g}"
        first.set(title=title, ylabel=r"$\lambda\;(C(\lambda)-C)$")
        if self.xor:
            gaps = data["xor"].gap.sel(nodes=FINE)
            last.plot(gaps.precision, np.sqrt(gaps.precision) * gaps, "ko-")
            look: Any = {"color": sl.plot.style.PATHS, "ls": "--"}
            last.axhline(self.slope, label="predicted coefficient of 1/√λ", **look)
            last.set_title(f"XOR, α = {self.xor_ridge:g}")
            last.set_ylabel(r"$\sqrt{\lambda}\;(C(\lambda)-C)$")
        for panel in panels[0]:
            panel.set(xscale="log", xlabel=r"precision $\lambda$")
        return sl.plot.legend_below(figure)

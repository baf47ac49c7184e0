"""How noise in the data moves the rest points: by O(1/λ) for two classes, O(1/√λ) for XOR.

Neurons of one class of XOR see the other at the kink of their ReLU, where the mean of relu(noise)
is of first order in its size:

    C(λ) = C + √(2 / (π λ)) (C − 1 / (1 − 4 α)) + O(1/λ)
"""

import math
from typing import Any

import numpy as np
import xarray as xr
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting

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
    def binary_square(self) -> float:
        """C, which is v² of the neuron for two classes at rest without noise."""
        return sl.theory.binary_mixture.ring_radius_squared(self.binary_ridge)

    @property
    def xor_square(self) -> float:
        """C, which is v² of each of the four neurons for XOR at rest without noise."""
        return sl.theory.xor.ring_radius_squared(self.xor_ridge)

    @property
    def slope(self) -> float:
        """The coefficient of 1/√λ in C(λ) of XOR."""
        return math.sqrt(2 / math.pi) * (self.xor_square - 1 / (1 - 4 * self.xor_ridge))

    def compute(self, seed: int) -> Data:
        """One neuron for two classes by closed forms; four neurons for XOR by the engine."""
        precisions = np.geomspace(self.low, self.high, self.points)
        data = {"binary": sl.results.over("precision", precisions, self.binary_rest)}
        task = sl.tasks.BinaryMixture(width=1, precision=precisions[0], ridge=self.binary_ridge)
        rest = {name: float(x) for name, x in data["binary"].isel(precision=0).items()}
        drift = sl.effective_dynamics(task, nodes=COARSE).drift(
            {"v": [rest["v"]], "M": [[rest["m"]]], "R": [[rest["r"]]]}
        )
        data["engine"] = xr.Dataset({name: float(np.ravel(x)[0]) for name, x in drift.items()})
        if self.xor:
            few = np.geomspace(100, self.high, 5)
            data["xor"] = sl.results.over(
                "nodes",
                [COARSE, FINE],
                lambda nodes: sl.results.over("precision", few, lambda x: self.xor_rest(x, nodes)),
            )
        return data

    def binary_rest(self, precision: float) -> xr.Dataset:
        """A single aligned neuron at rest, by Prop. 4.1; the other neuron is at zero."""
        one, both = np.eye(2)[0], np.diag([1.0, 0.0])
        noise: Any = {"precision": precision, "ridge": self.binary_ridge}

        def velocity(x: np.ndarray) -> list[float]:
            v, m, r = x
            drift = sl.theory.binary_mixture.drift(v * one, m * one, r * both, **noise)
            return [drift.readout[0], drift.overlaps[0], drift.orthogonal[0, 0]]

        size = math.sqrt(self.binary_square)
        guess = [size, size, self.binary_square / precision]
        v, m, r = optimize.root(velocity, guess, tol=1e-12).x
        return xr.Dataset({"v": v, "m": m, "r": r})

    def xor_rest(self, precision: float, nodes: int) -> xr.Dataset:
        """Mean v² of four neurons in four roles, once the limit is at rest."""
        task = sl.tasks.XorMixture(width=4, precision=precision, ridge=self.xor_ridge)
        size = math.sqrt(self.xor_square)
        start = {
            "v": size * np.array([1, 1, -1, -1]),
            "M": size * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]),
            "R": np.eye(4) / precision,
        }
        end = sl.effective_dynamics(task, nodes=nodes).solve(start, time=LONG, points=2)
        return xr.Dataset({"square": (end.v[-1] ** 2).mean()})

    def check(self, data: Data) -> list[Check]:
        """Exponent for two classes, coefficient for XOR, and the engine at the closed form."""
        last = data["binary"].isel(precision=[-2, -1])
        gaps = np.abs(last.v**2 - self.binary_square)
        exponent = np.diff(np.log(gaps)) / np.diff(np.log(last.precision))
        drift = max(abs(float(x)) for x in data["engine"].values())
        name = "two classes: exponent of λ in C(λ) - C"
        at_rest = f"two classes: drift of the engine at rest, λ = {self.low:g}"
        results = [
            # the next order of C(λ) − C is 1/λ²
            checks.exact(name, exponent[0], -1.0, 10 / self.high),
            checks.exact(at_rest, drift, 0.0, 1e-9),
        ]
        if self.xor:
            small = 1 / np.sqrt(data["xor"].precision.values)
            coarse, fine = (
                np.polynomial.Polynomial.fit(small, gap / small, 3).convert().coef[0]
                for gap in data["xor"].square.values - self.xor_square
            )
            note = f"tolerance: its change from {COARSE} to {FINE} quadrature nodes"
            name = "XOR: coefficient of 1/√λ in C(λ)"
            results.append(checks.exact(name, fine, self.slope, abs(fine - coarse), note=note))
        return results

    def draw(self, data: Data) -> Figure:
        """The distance to C, times that power of λ that makes it tend to a constant."""
        figure, panels = sl.plot.panels(1, 1 + self.xor, width=4.6, height=3.6)
        first, last = panels[0, 0], panels[0, -1]
        gaps = data["binary"].v ** 2 - self.binary_square
        first.plot(gaps.precision, gaps.precision * gaps, "k", label="rest point at precision λ")
        first.set_title(f"two classes, α = {self.binary_ridge:g}")
        first.set_ylabel(r"$\lambda\;(C(\lambda)-C)$")
        if self.xor:
            gaps = data["xor"].square.sel(nodes=FINE) - self.xor_square
            last.plot(gaps.precision, np.sqrt(gaps.precision) * gaps, "ko-")
            look: Any = {"color": sl.plot.style.PATHS, "ls": "--"}
            last.axhline(self.slope, label="predicted coefficient of 1/√λ", **look)
            last.set_title(f"XOR, α = {self.xor_ridge:g}")
            last.set_ylabel(r"$\sqrt{\lambda}\;(C(\lambda)-C)$")
        for panel in panels[0]:
            panel.set(xscale="log", xlabel=r"precision $\lambda$")
        sl.plot.legend_below(figure)
        return figure

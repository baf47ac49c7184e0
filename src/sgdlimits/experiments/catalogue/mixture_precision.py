"""How noise in the data moves the rest points: by O(1/λ) for two classes, O(1/√λ) for XOR.

Neurons of one class of XOR see the other at the kink of their ReLU, where the mean of relu(noise)
is of first order in its size:

    C(λ) = C + √(2 / (π λ)) (C - 1 / (1 - 4 α)) + O(1/λ)
"""

import math

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Data, Experiment
from sgdlimits.experiments.settings import Settings, setting

LONG = 300.0  # until rest: the slowest rate is about 0.1
# with 2**10 nodes quadrature moves √λ (C(λ) - C) of XOR by about 1 %: the change to 2**12 says so
COARSE, FINE = 2**10, 2**12


class Parameters(Settings):
    """Range of the precision, and the two ridges."""

    low: float = setting(5.0, "least precision λ", least=1)
    high: float = setting(10000.0, "largest precision λ", least=1000)
    points: int = setting(25, "precisions, evenly spaced in log λ", least=5)
    binary_ridge: float = setting(0.1, "ridge α for two classes", above=0, most=0.2)
    xor: bool = setting(True, "whether XOR is computed too")
    xor_ridge: float = setting(0.03, "ridge α for XOR", above=0, most=0.06)


def compute(p: Parameters, seed: int) -> Data:
    """|v|² of one neuron for two classes by closed forms, and of four for XOR by the engine."""
    del seed  # nothing is random
    precisions = np.geomspace(p.low, p.high, p.points)
    rest = np.array([binary(p, precision) for precision in precisions])
    data = {
        "binary": xr.Dataset(
            {"rest": (("precision", "statistic"), rest)},
            {"precision": precisions, "statistic": ["v", "m", "r"]},
        )
    }
    task = sl.tasks.BinaryMixture(width=1, precision=precisions[0], ridge=p.binary_ridge)
    v, m, r = rest[0]
    drift = sl.effective_dynamics(task, nodes=COARSE).drift({"v": [v], "M": [[m]], "R": [[r]]})
    data["engine"] = xr.Dataset({name: float(np.ravel(x)[0]) for name, x in drift.items()})
    if p.xor:
        precisions = np.geomspace(100, p.high, 5)
        squares = [[xor(p, x, nodes) for x in precisions] for nodes in (COARSE, FINE)]
        data["xor"] = xr.Dataset(
            {"square": (("nodes", "precision"), squares)},
            {"nodes": [COARSE, FINE], "precision": precisions},
        )
    return data


def binary(p: Parameters, precision: float) -> np.ndarray:
    """v, m and R of a single aligned neuron at rest, by Prop. 4.1; the other neuron is at zero."""
    first = np.array([1.0, 0.0])

    def velocity(x: np.ndarray) -> list[float]:
        found = sl.theory.binary_mixture.drift(
            x[0] * first,
            x[1] * first,
            x[2] * np.outer(first, first),
            precision=precision,
            ridge=p.binary_ridge,
        )
        return [found.readout[0], found.overlaps[0], found.orthogonal[0, 0]]

    square = sl.theory.binary_mixture.ring_radius_squared(p.binary_ridge)
    guess = [math.sqrt(square), math.sqrt(square), square / precision]
    return np.asarray(optimize.root(velocity, guess, tol=1e-12).x)


def xor(p: Parameters, precision: float, nodes: int) -> float:
    """v² of each neuron where all four roles are filled, once the limit is at rest."""
    task = sl.tasks.XorMixture(width=4, precision=precision, ridge=p.xor_ridge)
    size = math.sqrt(sl.theory.xor.ring_radius_squared(p.xor_ridge))
    start = {
        "v": size * np.array([1, 1, -1, -1]),
        "M": size * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]),
        "R": np.eye(4) / precision,
    }
    end = sl.effective_dynamics(task, nodes=nodes).solve(start, time=LONG, points=2)
    return float(np.mean(end.v.values[-1] ** 2))


def slope(p: Parameters) -> float:
    """The coefficient of 1/√λ in C(λ) of XOR."""
    square = sl.theory.xor.ring_radius_squared(p.xor_ridge)
    return math.sqrt(2 / math.pi) * (square - 1 / (1 - 4 * p.xor_ridge))


def check(p: Parameters, data: Data) -> list[checks.Check]:
    """Exponent for two classes, coefficient for XOR, and the engine at the closed-form point."""
    found = data["binary"].rest
    square = sl.theory.binary_mixture.ring_radius_squared(p.binary_ridge)
    last = found.isel(precision=[-2, -1])
    gaps = np.abs(last.sel(statistic="v").values ** 2 - square)
    exponent = np.diff(np.log(gaps)) / np.diff(np.log(last.precision.values))
    result = [
        # the next order of C(λ) - C is 1/λ²
        checks.exact("two classes: exponent of λ in C(λ) - C", exponent[0], -1.0, 10 / p.high),
        checks.exact(
            f"two classes: drift of the engine at rest, λ = {p.low:g}",
            max(abs(float(x)) for x in data["engine"].values()),
            0.0,
            1e-9,
        ),
    ]
    if p.xor:
        small = 1 / np.sqrt(data["xor"].precision.values)
        gaps = data["xor"].square.values - sl.theory.xor.ring_radius_squared(p.xor_ridge)
        coarse, fine = (
            np.polynomial.Polynomial.fit(small, gap / small, 3).convert().coef[0] for gap in gaps
        )
        result.append(
            checks.exact(
                "XOR: coefficient of 1/√λ in C(λ)",
                fine,
                slope(p),
                abs(fine - coarse),
                note=f"tolerance: its change from {COARSE} to {FINE} quadrature nodes",
            )
        )
    return result


def draw(p: Parameters, data: Data) -> Figure:
    """The distance to C, times that power of λ that makes it tend to a constant."""
    figure, panels = picture.panels(1, 1 + p.xor, width=4.6, height=3.6)
    found = data["binary"].rest.sel(statistic="v") ** 2
    gaps = found - sl.theory.binary_mixture.ring_radius_squared(p.binary_ridge)
    panels[0, 0].plot(gaps.precision, gaps.precision * gaps, "k", label="rest point at precision λ")
    panels[0, 0].set_title(f"two classes, α = {p.binary_ridge:g}")
    panels[0, 0].set_ylabel(r"$\lambda\;(C(\lambda)-C)$")
    if p.xor:
        found = data["xor"].square.sel(nodes=FINE)
        gaps = found - sl.theory.xor.ring_radius_squared(p.xor_ridge)
        panels[0, 1].plot(gaps.precision, np.sqrt(gaps.precision) * gaps, "ko-")
        panels[0, 1].axhline(
            slope(p), color=sl.plot.style.PATHS, ls="--", label="predicted coefficient of 1/√λ"
        )
        panels[0, 1].set_title(f"XOR, α = {p.xor_ridge:g}")
        panels[0, 1].set_ylabel(r"$\sqrt{\lambda}\;(C(\lambda)-C)$")
    for panel in panels.ravel():
        panel.set(xscale="log", xlabel=r"precision $\lambda$")
    picture.legend(figure, panels)
    return figure


EXPERIMENT = Experiment(
    paper="BGJ22",
    figure="footnote 4",
    claim="Noise moves the rest points by O(1/λ) for two classes, by O(1/√λ) for XOR.",
    parameters=Parameters,
    tiny={"points": 7, "xor": False},
    quick={"xor": False},
    compute=compute,
    check=check,
    draw=draw,
)

"""How noise in the data moves the rest points: by O(1/λ) for two classes, O(1/√λ) for XOR.

Neurons of one class of XOR see the other at the kink of their ReLU, where the mean of relu(noise) is
of first order in its size:

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


class Parameters(Settings):
    """Range of the precision, and the two ridges."""

    low: float = setting(5.0, "least precision λ", least=1)
    high: float = setting(10000.0, "largest precision λ", least=1000)
    points: int = setting(25, "precisions, evenly spaced in log λ", least=5)
    binary_ridge: float = setting(0.1, "ridge α for two classes", above=0, most=0.2)
    xor: bool = setting(True, "whether XOR is computed too")
    xor_ridge: float = setting(0.05, "ridge α for XOR", above=0, most=0.06)
    xor_points: int = setting(7, "precisions for XOR, down from the largest by factors of √10")


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
    drift = sl.effective_dynamics(task, nodes=2**10).drift({"v": [v], "M": [[m]], "R": [[r]]})
    data["engine"] = xr.Dataset({name: float(np.ravel(x)[0]) for name, x in drift.items()})
    if p.xor:
        noises = p.high * 10.0 ** (-np.arange(p.xor_points) / 2)
        squares = [xor(p, precision) for precision in noises]
        data["xor"] = xr.Dataset({"square": ("precision", squares)}, {"precision": noises})
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


def xor(p: Parameters, precision: float) -> float:
    """v² of each neuron where all four roles are filled, once the limit is at rest."""
    task = sl.tasks.XorMixture(width=4, precision=precision, ridge=p.xor_ridge)
    size = math.sqrt(sl.theory.xor.ring_radius_squared(p.xor_ridge))
    start = {
        "v": size * np.array([1, 1, -1, -1]),
        "M": size * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]),
        "R": size**2 / precision * np.eye(4),
    }
    end = sl.effective_dynamics(task, nodes=2**10).solve(start, time=LONG, points=2)
    return float(np.mean(end.v.values[-1] ** 2))

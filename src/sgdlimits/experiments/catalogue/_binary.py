"""What the experiments on two Gaussian classes share."""

import math

import numpy as np
from scipy import optimize

import sgdlimits as sl
from sgdlimits.experiments.base import setting
from sgdlimits.experiments.shared import Sgd


class Binary(Sgd):
    """Two classes and a network of two ReLU neurons; noise in the data has the variance 1/λ."""

    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", least=20)

    def task(self, precision: float) -> sl.tasks.BinaryMixture:
        """At one noise level; ``math.inf`` is no noise."""
        return sl.tasks.BinaryMixture(precision=precision, ridge=self.ridge)

    @property
    def radius_squared(self) -> float:
        """C of Prop. 4.2: the squared radius of the rings of rest points without noise."""
        return sl.theory.binary_mixture.ring_radius_squared(self.ridge)


def ring_point(direction: np.ndarray, precision: float, ridge: float) -> dict[str, np.ndarray]:
    """The rest point of Prop. 4.1 at which v, m and all weights are parallel.

    Args:
        direction: of v and m, a unit vector over both neurons: amid the quarter ring, or at an end
            of it, where a neuron is at zero.
        precision: of the data; ``math.inf`` is no noise.
        ridge: α.

    >>> noisy, clean = (ring_point(np.array([0.6, 0.8]), x, 0.1) for x in (1e6, math.inf))
    >>> [bool(np.max(np.abs(noisy[name] - clean[name])) < 1e-5) for name in clean]
    [True, True, True]
    """
    e, square = direction, sl.theory.binary_mixture.ring_radius_squared(ridge)
    v, m, r = math.sqrt(square), math.sqrt(square), 0.0

    def velocity(x: np.ndarray) -> list[float]:
        drift = sl.theory.binary_mixture.drift(
            x[0] * e, x[1] * e, x[2] * np.outer(e, e), precision=precision, ridge=ridge
        )
        return [e @ drift.readout, e @ drift.overlaps, e @ drift.orthogonal @ e]

    if math.isfinite(precision):
        v, m, r = optimize.root(velocity, [v, m, square / precision], tol=1e-12).x
    return {"v": v * e, "M": m * e[:, None], "R": r * np.outer(e, e)}


def word(precision: float) -> str:
    """As it is written in a picture."""
    return f"{precision:g}" if math.isfinite(precision) else "∞"

"""What the experiments on two Gaussian classes share."""

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments.base import setting
from sgdlimits.experiments.catalogue._noise_levels import NO_NOISE, NoiseLevels
from sgdlimits.experiments.shared import Sgd


class Binary(Sgd):
    """Two classes and a network of two ReLU neurons; noise in the data has the variance 1/λ."""

    ridge: float = setting(0.1, "ridge α, below 1/4", above=0, most=0.2)
    dim: int = setting(500, "dimension N", least=100)
    runs: int = setting(500, "independent runs of SGD", least=20)
    time: float = setting(100.0, "duration, in units of dim samples", least=20)

    def task(self, precision: float = NO_NOISE) -> sl.tasks.BinaryMixture:
        """At one noise level."""
        return sl.tasks.BinaryMixture(precision=precision, ridge=self.ridge)

    @property
    def radius_squared(self) -> float:
        """C of Prop. 4.2: the squared radius of the rings of rest points without noise."""
        return sl.theory.binary_mixture.ring_radius_squared(self.ridge)


class NoisyBinary(Binary, NoiseLevels):
    """Two classes at several noise levels, and without noise."""


def ring_point(angle: float, precision: float, ridge: float) -> dict[str, np.ndarray]:
    """The state of the rest point of Prop. 4.1 at which v, m and all weights are parallel.

    Args:
        angle: along the quarter ring, from 0 to π/2: at its ends a neuron is at zero.
        precision: of the data; ``math.inf`` is no noise.
        ridge: α.
    """
    v, m, R = sl.theory.binary_mixture.noisy_ring_point(angle, precision=precision, ridge=ridge)
    return {"v": v, "M": m[:, None], "R": R}

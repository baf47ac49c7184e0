"""What the experiments on two Gaussian classes share."""

import math

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


def word(precision: float) -> str:
    """As it is written in a picture."""
    return f"{precision:g}" if math.isfinite(precision) else "∞"

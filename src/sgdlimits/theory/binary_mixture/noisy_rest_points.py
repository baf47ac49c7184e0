"""Rest points of the binary mixture at finite precision: where the drift of Prop. 4.1 vanishes.

Noise of variance 1/λ moves the rest points of Prop. 4.2 by O(1/λ). Each keeps its symmetry, which
leaves few unknowns, and is found from its position without noise.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import optimize

from sgdlimits import _checks
from sgdlimits._types import Number
from sgdlimits.theory.binary_mixture.noisy import drift
from sgdlimits.theory.binary_mixture.rest_points import ring_radius_squared


class NoisyPoint(NamedTuple):
    """A rest point: readout, overlaps and orthogonal Gram matrix."""

    readout: np.ndarray
    overlaps: np.ndarray
    orthogonal: np.ndarray


def noisy_ring_point(angle: Number, *, precision: Number, ridge: Number) -> NoisyPoint:
    """A point of a ring: readout, overlaps and all weights are parallel.

        v = a e,   m = b e,   R = r eeᵀ,   e = (cos φ, sin φ)

    The ``angle`` φ lies in [0, π/2]; at the ends of the ring a neuron is at zero. For λ =
    ``precision`` = ``math.inf`` it is the point of Prop. 4.2, ``QuarterRing.at(φ)``, where
    a = b = √C and r = 0.

    Source: BGJ22 Prop. 4.1.

    >>> point = noisy_ring_point(0.5, precision=100.0, ridge=0.1)
    >>> bool(max(np.max(np.abs(x)) for x in drift(*point, precision=100.0, ridge=0.1)) < 1e-9)
    True
    """
    square, phi = ring_radius_squared(ridge), _checks.nonnegative("angle", angle)
    e = np.array([math.cos(phi), math.sin(phi)])
    lam = _checks.positive("precision", precision, allow_infinite=True)

    def point(x: np.ndarray) -> NoisyPoint:
        return NoisyPoint(x[0] * e, x[1] * e, x[2] * np.outer(e, e))

    def velocity(x: np.ndarray) -> list[float]:
        rates = drift(*point(x), precision=lam, ridge=ridge)
        return [e @ rates.readout, e @ rates.overlaps, e @ rates.orthogonal @ e]

    noiseless = np.array([math.sqrt(square), math.sqrt(square), square / lam])
    if math.isinf(lam):
        return point(noiseless)
    return point(optimize.root(velocity, noiseless, tol=1e-12).x)


def noisy_optimal_point(*, precision: Number, ridge: Number) -> NoisyPoint:
    """The stable point of the optimal classifier, where the two neurons are opposite.

        v = (a, −a),   m = (b, −b),   R₁₁ = R₂₂

    The other one has all signs of v and m changed. For λ = ``precision`` = ``math.inf`` it is that
    of Prop. 4.2, where a = b = √C and R = 0.

    Source: BGJ22 Prop. 4.1.

    >>> point = noisy_optimal_point(precision=100.0, ridge=0.1)
    >>> bool(max(np.max(np.abs(x)) for x in drift(*point, precision=100.0, ridge=0.1)) < 1e-9)
    True
    """
    square, pair = ring_radius_squared(ridge), np.array([1.0, -1.0])
    lam = _checks.positive("precision", precision, allow_infinite=True)

    def point(x: np.ndarray) -> NoisyPoint:
        return NoisyPoint(x[0] * pair, x[1] * pair, np.array([x[2:], x[:1:-1]]))

    def velocity(x: np.ndarray) -> list[float]:
        rates = drift(*point(x), precision=lam, ridge=ridge)
        return [rates.readout[0], rates.overlaps[0], *rates.orthogonal[0]]

    noiseless = np.array([math.sqrt(square), math.sqrt(square), square / lam, 0.0])
    if math.isinf(lam):
        return point(noiseless)
    return point(optimize.root(velocity, noiseless).x)

"""Fixed points of the binary mixture at infinite precision, their losses and their diffusions."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric
from sgdlimits.theory._inputs import below
from sgdlimits.theory._rings import fluctuation_matrix

THRESHOLD = 0.25
"""Ridge at and above which the origin is the only fixed point."""


class Losses(NamedTuple):
    """Population loss at the origin, on the quarter rings and at the two optimal classifiers."""

    zero: float
    ring: float
    optimal: float


@dataclass(frozen=True)
class Point:
    """An isolated fixed point, where readout and overlaps agree: v = m."""

    readout: tuple[float, float]
    stable: bool


@dataclass(frozen=True)
class QuarterRing:
    """An unstable arc of fixed points v = m = ±√C (cos φ, sin φ), 0 < φ < π/2, ± = ``sign``."""

    sign: int
    radius_squared: float
    stable: bool = False

    def at(self, angle: float) -> Point:
        """Give the fixed point at ``angle`` φ in [0, π/2] along the arc."""
        size = self.sign * math.sqrt(self.radius_squared)
        return Point((size * math.cos(angle), size * math.sin(angle)), self.stable)


def ring_radius_squared(ridge: Number) -> float:
    """Squared radius of the rings of fixed points.

        C = −logit(2α) = log(1 − 2α) − log(2α),   0 < α < 1/4,   α = ``ridge``

    Source: BGJ22 Prop. 4.2.

    >>> round(ring_radius_squared(0.1), 6)
    1.386294
    """
    alpha = below("ridge", ridge, THRESHOLD, "where the rings exist")
    return math.log1p(-2 * alpha) - math.log(2 * alpha)


def fixed_points(ridge: Number) -> tuple[Point | QuarterRing, ...]:
    """All fixed points (v = m, R = 0) for two neurons.

    They are the origin and, for ridge < 1/4, two unstable quarter rings v₁v₂ > 0, ‖v‖² = C, and two
    stable points ±(√C, −√C), which classify optimally; C is ``ring_radius_squared``.

    Source: BGJ22 Prop. 4.2.

    >>> [type(point).__name__ for point in fixed_points(0.1)]
    ['Point', 'QuarterRing', 'QuarterRing', 'Point', 'Point']
    """
    alpha = _checks.positive("ridge", ridge)
    origin = Point((0.0, 0.0), stable=alpha > THRESHOLD)
    if alpha >= THRESHOLD:
        return (origin,)
    square = ring_radius_squared(alpha)
    size = math.sqrt(square)
    rings = (QuarterRing(1, square), QuarterRing(-1, square))
    return (origin, *rings, Point((size, -size), True), Point((-size, size), True))


def critical_losses(ridge: Number) -> Losses:
    """Population loss at the three kinds of fixed points.

        Φ₀ = log 2,   Φ₊ = ½(log 2 + log(1 + e^(−C)) + 2αC),   Φ₋ = log(1 + e^(−C)) + 2αC

    at the origin, on the rings and at the optimal classifiers, with α = ``ridge`` and C =
    ``ring_radius_squared(α)``.

    Source: BGJ22 sec. 8.2; Φ₊ corrected.

    >>> [round(value, 4) for value in critical_losses(0.1)]
    [0.6931, 0.5968, 0.5004]
    """
    square = ring_radius_squared(ridge)
    optimal = math.log1p(math.exp(-square)) + 2 * ridge * square
    return Losses(math.log(2), (math.log(2) + optimal) / 2, optimal)


def ring_jacobian(point: Numeric, *, ridge: Number) -> np.ndarray:
    """Drift matrix of the fluctuations about a point v = m = a of a ring.

    In the order (ṽ₁, ṽ₂, m̃₁, m̃₂), ṽ = √dim (v − a) and m̃ = √dim (m − a),

        dṽᵢ = [α(m̃ᵢ − ṽᵢ) − aᵢ(α − 2α²) Σₖ aₖ(ṽₖ + m̃ₖ)] dt + noise,

    and the same with ṽ and m̃ swapped: neutral along the ring, restoring across it.

    Source: BGJ22 Prop. 4.3; the sign of the sum corrected.

    >>> matrix = ring_jacobian(fixed_points(0.1)[1].at(0.5).readout, ridge=0.1)
    >>> bool(np.max(np.linalg.eigvals(matrix).real) < 1e-12)
    True
    """
    a = _on_ring(point, ridge)
    return fluctuation_matrix((ridge - 2 * ridge**2) * np.outer(a, a), ridge)


def ring_diffusion(point: Numeric, *, ridge: Number, step: Number = 1.0) -> np.ndarray:
    """Diffusion matrix of the same fluctuations, of rank one.

        Σ = cα²bbᵀ,   b = (a₁, a₂, a₁, a₂),   c = ``step``,   α = ``ridge``

    Source: BGJ22 Prop. 4.3.

    >>> int(np.linalg.matrix_rank(ring_diffusion(fixed_points(0.1)[1].at(0.5).readout, ridge=0.1)))
    1
    """
    a = _on_ring(point, ridge)
    both = np.concatenate([a, a])
    return _checks.positive("step", step) * ridge**2 * np.outer(both, both)


def _on_ring(point: Numeric, ridge: Number) -> np.ndarray:
    square = ring_radius_squared(ridge)
    a = _checks.array("point", point, (2,))
    if abs(a @ a - square) > 1e-9 * square or a[0] * a[1] < 0:
        raise _checks.InputError(
            f"point={a.tolist()} is not allowed: point must have coordinates of one sign and "
            f"squared norm {square:.12g}"
        )
    return a

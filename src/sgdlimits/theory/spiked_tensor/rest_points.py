"""Fixed points of the ballistic limit of spiked tensors, and thresholds at which they appear."""

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


@dataclass(frozen=True)
class RestPoint:
    """A rest point (m, r²) of the drift; ``stable`` when both eigenvalues are negative."""

    overlap: float
    radius_squared: float
    stable: bool


def critical_snr(order: WholeNumber, step: Number = 1.0) -> float:
    """Smallest signal-to-noise ratio with a fixed point of non-zero overlap.

        λ_c = min over ρ > c of ρᵏ⁻¹/(ρ − c)^((k−2)/2)
            = (c/k)^(k/2) (2k − 2)ᵏ⁻¹/(k − 2)^((k−2)/2),   0⁰ = 1

    Source: BGJ22 (7.4).

    >>> critical_snr(2), critical_snr(4)
    (1.0, 6.75)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return (c / k) ** (k / 2) * (2 * k - 2) ** (k - 1) / float(k - 2) ** ((k - 2) / 2)


def overlaps(order: WholeNumber, snr: Number, step: Number = 1.0) -> tuple[float, float]:
    """Overlaps (m†, m⋆) of the saddle and of the stable informative fixed point.

        m = √(ρ − c),   ρ ≥ c the two roots of λ(ρ − c)^((k−2)/2) = ρᵏ⁻¹

    For k = 2 both are √(λ − c).

    Source: BGJ22 (7.5); the range of ρ corrected from ρ ≥ 1.

    >>> dagger, star = overlaps(3, 4.0)
    >>> round(dagger, 6), round(star, 6)
    (0.295598, 1.0)
    """
    k, lam = _checks.integer("order", order, least=2), _checks.positive("snr", snr)
    c, threshold = _checks.positive("step", step), critical_snr(order, step)
    if lam < threshold * (1 - 1e-14):
        raise _checks.InputError(
            f"snr={snr!r} is not allowed: snr must be at least {threshold:.12g}, "
            f"the critical value for order={k} and step={c:g}"
        )
    if k == 2:
        return math.sqrt(max(lam - c, 0.0)), math.sqrt(max(lam - c, 0.0))

    def height(log_square: float) -> float:
        # logarithm of λmᵏ⁻²/ρᵏ⁻¹: concave in log m², positive between the two roots
        square = math.exp(log_square)
        return math.log(lam) + (k - 2) / 2 * log_square - (k - 1) * math.log(square + c)

    top = math.log(c * (k - 2) / k)
    if height(top) <= 1e-15:
        return math.exp(top / 2), math.exp(top / 2)
    low = 2 / (k - 2) * ((k - 1) * math.log(c) - math.log(lam)) - 1e-9  # ρ ≥ c
    high = 2 / k * math.log(lam) + 1e-9  # ρ ≥ m²
    dagger, star = (
        brentq(height, a, b, xtol=1e-15, rtol=1e-15) for a, b in [(low, top), (top, high)]
    )
    return math.exp(dagger / 2), math.exp(star / 2)


def critical_ridge(order: WholeNumber, step: Number = 1.0) -> float:
    """Largest ridge with a rest point of non-zero radius on the equator m = 0.

        α_c = 2k cᵏ⁻¹(k − 2)ᵏ⁻²/(k − 1)ᵏ⁻¹,   0⁰ = 1

    Source: BGJ22 sec. 7.1; its value at k = 2 corrected to 4c.

    >>> critical_ridge(2), critical_ridge(3)
    (4.0, 1.5)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return 2 * c ** (k - 1) * k * (k - 2) ** (k - 2) / (k - 1) ** (k - 1)


def fixed_points(order: WholeNumber, snr: Number, step: Number = 1.0) -> tuple[RestPoint, ...]:
    """All fixed points (m, r²) without ridge.

    - (0, 0), unstable;
    - (0, c), stable for k > 2 and, for k = 2, where λ < c;
    - (m†, c), unstable, for k > 2 and λ > λ_c;
    - (m⋆, c), stable, for λ > λ_c.

    Mirror images (−m, c) exist for even k only: for odd k, λmᵏ⁻² = ρᵏ⁻¹ > 0 has no root m < 0.

    Source: BGJ22 Prop. 3.2; corrected for odd k.

    >>> [(p.overlap, p.stable) for p in fixed_points(2, 2.0)]
    [(0.0, False), (0.0, False), (1.0, True), (-1.0, True)]
    """
    k, lam = _checks.integer("order", order, least=2), _checks.nonnegative("snr", snr)
    c = _checks.positive("step", step)
    points = [RestPoint(0.0, 0.0, False), RestPoint(0.0, c, k > 2 or lam < c)]
    if lam > critical_snr(k, c):
        dagger, star = overlaps(k, lam, c)
        signs = (1.0, -1.0) if k % 2 == 0 else (1.0,)
        if k > 2:
            points += [RestPoint(sign * dagger, c, False) for sign in signs]
        points += [RestPoint(sign * star, c, True) for sign in signs]
    return tuple(points)

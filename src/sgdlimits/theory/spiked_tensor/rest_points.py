"""Fixed points of the ballistic limit of spiked tensors and the thresholds at which they appear."""

import math
from dataclasses import dataclass

from scipy.optimize import brentq

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


@dataclass(frozen=True)
class FixedPoint:
    """A rest point (m, r2) of the drift; ``stable`` when both eigenvalues are negative."""

    overlap: float
    radius_squared: float
    stable: bool


def critical_snr(order: WholeNumber, step: Number = 1.0) -> float:
    """Smallest signal-to-noise ratio with a fixed point of non-zero overlap.

        lambda_c = (step / k)^(k/2) (2k - 2)^(k-1) / (k - 2)^((k-2)/2),   0^0 = 1
                 = min over rho > step of rho^(k-1) / (rho - step)^((k-2)/2)

    Source: 000 (7.4).

    >>> critical_snr(2), critical_snr(4)
    (1.0, 6.75)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return (c / k) ** (k / 2) * (2 * k - 2) ** (k - 1) / float(k - 2) ** ((k - 2) / 2)


def overlaps(order: WholeNumber, snr: Number, step: Number = 1.0) -> tuple[float, float]:
    """Overlaps (m_dagger, m_star) of the saddle and of the stable informative fixed point.

        m = sqrt(rho - step),   rho >= step the two roots of snr (rho - step)^((k-2)/2) = rho^(k-1)

    For k = 2 both are sqrt(snr - step).

    Source: 000 (7.5); the range of rho corrected from rho >= 1.

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
        # logarithm of snr m^(k-2) / R^(2k-2): concave in log m^2, positive between the two roots
        square = math.exp(log_square)
        return math.log(lam) + (k - 2) / 2 * log_square - (k - 1) * math.log(square + c)

    top = math.log(c * (k - 2) / k)
    if height(top) <= 1e-15:
        return math.exp(top / 2), math.exp(top / 2)
    low = 2 / (k - 2) * ((k - 1) * math.log(c) - math.log(lam)) - 1e-9  # R^2 >= step
    high = 2 / k * math.log(lam) + 1e-9  # R^2 >= m^2
    dagger, star = (
        brentq(height, a, b, xtol=1e-15, rtol=1e-15) for a, b in [(low, top), (top, high)]
    )
    return math.exp(dagger / 2), math.exp(star / 2)


def critical_ridge(order: WholeNumber, step: Number = 1.0) -> float:
    """Largest ridge with a rest point of non-zero radius on the equator m = 0.

        alpha_c = 2 step^(k-1) k (k-1)^(-(k-1)) (k-2)^(k-2),   0^0 = 1

    Source: 000 sec. 7.1; its k = 2 value corrected to 4 step.

    >>> critical_ridge(2), critical_ridge(3)
    (4.0, 1.5)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return 2 * c ** (k - 1) * k * (k - 2) ** (k - 2) / (k - 1) ** (k - 1)


def fixed_points(order: WholeNumber, snr: Number, step: Number = 1.0) -> tuple[FixedPoint, ...]:
    """All fixed points for ridge = 0: the origin, the equator, and the informative ones.

        (0, 0) unstable; (0, step) stable for k > 2 and, for k = 2, when snr < step;
        (m_dagger, step) unstable for k > 2; (m_star, step) stable

    Mirror images -m exist for even k only: snr m^(k-2) = R^(2k-2) > 0 has no negative root m for
    odd k.

    Source: 000 Prop. 3.2; corrected for odd k.

    >>> [(p.overlap, p.stable) for p in fixed_points(2, 2.0)]
    [(0.0, False), (0.0, False), (1.0, True), (-1.0, True)]
    """
    k, lam = _checks.integer("order", order, least=2), _checks.nonnegative("snr", snr)
    c = _checks.positive("step", step)
    points = [FixedPoint(0.0, 0.0, False), FixedPoint(0.0, c, k > 2 or lam < c)]
    if lam > critical_snr(k, c):
        dagger, star = overlaps(k, lam, c)
        signs = (1.0, -1.0) if k % 2 == 0 else (1.0,)
        if k > 2:
            points += [FixedPoint(sign * dagger, c, False) for sign in signs]
        points += [FixedPoint(sign * star, c, True) for sign in signs]
    return tuple(points)

"""Diffusive limits of spiked tensors at the equator m = 0, where random starts live.

The overlap is seen as m̃ = √dim m, the squared radius either as r² itself or as r̃ = √dim (r² − c).
"""

import math
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, Values, WholeNumber
from sgdlimits.theory._inputs import numbers


class EquatorSde(NamedTuple):
    """Coefficients of d(m̃, r²) = drift dt + noise dB; the last axis is (m̃, r²)."""

    drift: np.ndarray
    noise: np.ndarray


def equator_sde(
    scaled_overlap: Numeric,
    radius_squared: Numeric,
    *,
    order: WholeNumber,
    scaled_snr: Number,
    step: Number = 1.0,
) -> EquatorSde:
    """Limit of (m̃, r²) = (√dim m, r²) for a signal that grows as λ = Λ dim^((k−2)/2).

        dm̃  = (2kΛm̃ᵏ⁻¹ − 2k(r²)ᵏ⁻¹m̃) dt + 2√(ck(r²)ᵏ⁻¹) dB
        dr² = −4k(r²)ᵏ⁻¹(r² − c) dt

    with Λ = ``scaled_snr``. For k = 2, Λ is λ itself; for k ≥ 3, any λ that does not grow has
    Λ = 0. For k ≥ 3 the origin is locally stable whatever Λ: escape is driven by noise.

    Source: BGJ22 (3.2), (3.3), sec. 7.3; (3.3) corrected, its drift is not linear in m̃.

    >>> sde = equator_sde(1.5, 1.0, order=3, scaled_snr=2.0)
    >>> sde.drift.tolist()
    [18.0, -0.0]
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    lam = _checks.nonnegative("scaled_snr", scaled_snr)
    m, r2 = np.broadcast_arrays(
        numbers("scaled_overlap", scaled_overlap), numbers("radius_squared", radius_squared)
    )
    power = r2 ** (k - 1)
    dm = 2 * k * (lam * m ** (k - 1) - power * m)
    dr2 = -4 * k * power * (r2 - c)
    noise = 2 * np.sqrt(c * k * np.maximum(power, 0.0))
    return EquatorSde(np.stack([dm, dr2], -1), np.stack([noise, np.zeros_like(noise)], -1))


def equator_variance(
    time: Numeric, *, snr: Number, order: WholeNumber = 2, step: Number = 1.0, initial: Number = 1.0
) -> Values:
    """Second moment of m̃ = √dim m at ``time`` t, with r² at its rest value c.

        E m̃(t)² = e^(2at) E m̃(0)² + s²(e^(2at) − 1)/(2a),
        a = 2k(λ·1(k = 2) − cᵏ⁻¹),   s² = 4kcᵏ

    Here m̃ is an Ornstein–Uhlenbeck process, unstable for k = 2 and λ > c, and E m̃(0)² = ``initial``
    is 1 for random starts.

    Source: BGJ22 (3.2) and the display after it.

    >>> round(float(equator_variance(1.0, snr=1.2)), 6)
    24.718195
    """
    rate, noise = _equator_rates(order, snr, step)
    t, start = numbers("time", time), _checks.nonnegative("initial", initial)
    # expm1(x)/x → 1 at x = 0: Brownian motion at the critical snr
    growth = t if rate == 0 else np.expm1(2 * rate * t) / (2 * rate)
    return np.exp(2 * rate * t) * start + noise * growth


def equator_stationary_variance(
    *, snr: Number, order: WholeNumber = 2, step: Number = 1.0
) -> float:
    """Stationary variance of √dim m at the equator, infinite if the equator is unstable.

        s²/(2|a|) = cᵏ/(cᵏ⁻¹ − λ·1(k = 2))

    Source: BGJ22 (3.2).

    >>> equator_stationary_variance(snr=0.5)
    2.0
    """
    rate, noise = _equator_rates(order, snr, step)
    return math.inf if rate >= 0 else noise / (-2 * rate)


def radius_variance(*, order: WholeNumber, step: Number = 1.0) -> float:
    """Stationary variance of r̃ = √dim (r² − c) at the equator.

        dr̃ = −4kcᵏ⁻¹r̃ dt + 4kc^((k+1)/2) dB,   which has the variance 2kc²

    Source: BGJ22 (3.5), (7.8); drift and noise corrected (the corrector depends on r̃ too).

    >>> radius_variance(order=2), radius_variance(order=3)
    (4.0, 6.0)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return 2 * k * c**2


def transient_radius_variance(
    time: Numeric, *, order: WholeNumber, step: Number = 1.0, initial: Number = 2.0
) -> Values:
    """Second moment of r̃ = √dim (r² − c) at the equator, at ``time`` t.

        E r̃(t)² = e^(−2at) E r̃(0)² + 2kc²(1 − e^(−2at)),   a = 4kcᵏ⁻¹

    Here E r̃(0)² = ``initial`` is 2 for random starts, whose r² is near 1, if c = 1.

    Source: BGJ22 (3.5), corrected as in ``radius_variance``.

    >>> [round(float(transient_radius_variance(time, order=2)), 6) for time in (0.0, 0.1, 9.0)]
    [2.0, 3.596207, 4.0]
    """
    rest, start = radius_variance(order=order, step=step), _checks.nonnegative("initial", initial)
    return rest + (start - rest) * np.exp(-8 * order * step ** (order - 1) * numbers("time", time))


def _equator_rates(order: WholeNumber, snr: Number, step: Number) -> tuple[float, float]:
    """The growth rate a and the squared noise s² of m̃."""
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    lam = _checks.nonnegative("snr", snr)
    return 2 * k * ((lam if k == 2 else 0.0) - c ** (k - 1)), 4 * k * c**k

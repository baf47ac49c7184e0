"""Diffusive limits of spiked tensors at the equator m = 0, where random starts live.

The overlap is seen at scale m~ = sqrt(dim) m, the radius either on its own scale or as
r~ = sqrt(dim) (r2 - step).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Values, WholeNumber
from sgdlimits.theory._inputs import numbers


class EquatorSde(NamedTuple):
    """Coefficients of d(m~, r2) = drift dt + noise dB; the last axis is (m~, r2)."""

    drift: np.ndarray
    noise: np.ndarray


def equator_sde(
    scaled_overlap: Any,
    radius_squared: Any,
    *,
    order: WholeNumber,
    scaled_snr: Number,
    step: Number = 1.0,
) -> EquatorSde:
    """Limit of (sqrt(dim) m, r2) for snr = Lambda dim^((k-2)/2).

        dm~ = (2k Lambda m~^(k-1) - 2k r2^(k-1) m~) dt + 2 sqrt(step k r2^(k-1)) dB
        dr2 = -4k r2^(k-1) (r2 - step) dt

    Lambda = ``scaled_snr``; for k = 2 it is the snr itself, and Lambda = 0 is any fixed snr at
    k >= 3. For k >= 3 the origin is locally stable whatever Lambda: escape is driven by noise.

    Source: 000 (3.2), (3.3), sec. 7.3; (3.3) corrected, its drift is not linear in m~.

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
    time: Any, *, snr: Number, order: WholeNumber = 2, step: Number = 1.0, initial: Number = 1.0
) -> Values:
    """Second moment of the overlap sqrt(dim) m at time t, for r2 at its rest value ``step``.

        E m~(t)^2 = e^(2 a t) E m~(0)^2 + s^2 (e^(2 a t) - 1) / (2 a),
        a = 2k (snr 1_{k=2} - step^(k-1)),   s^2 = 4k step^k

    an Ornstein-Uhlenbeck process that is unstable for k = 2 and snr > step.

    Source: 000 (3.2) and the display after it.

    >>> round(float(equator_variance(1.0, snr=1.2)), 6)
    24.718195
    """
    rate, noise = _equator_rates(order, snr, step)
    t, start = numbers("time", time), _checks.nonnegative("initial", initial)
    # expm1(x) / x -> 1 at x = 0: Brownian motion at the critical snr
    growth = t if rate == 0 else np.expm1(2 * rate * t) / (2 * rate)
    return np.exp(2 * rate * t) * start + noise * growth


def equator_stationary_variance(
    *, snr: Number, order: WholeNumber = 2, step: Number = 1.0
) -> float:
    """Stationary variance of sqrt(dim) m at the equator, infinite if the equator is unstable.

        s^2 / (2 |a|) = step^k / (step^(k-1) - snr 1_{k=2})

    Source: 000 (3.2).

    >>> equator_stationary_variance(snr=0.5)
    2.0
    """
    rate, noise = _equator_rates(order, snr, step)
    return math.inf if rate >= 0 else noise / (-2 * rate)


def radius_variance(*, order: WholeNumber, step: Number = 1.0) -> float:
    """Stationary variance of sqrt(dim) (r2 - step) at the equator.

        dr~ = -4k step^(k-1) r~ dt + 4k step^((k+1)/2) dB,   variance 2k step^2

    Source: 000 (3.5), (7.8); drift and noise corrected (the corrector depends on r~ too).

    >>> radius_variance(order=2), radius_variance(order=3)
    (4.0, 6.0)
    """
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    return 2 * k * c**2


def _equator_rates(order: WholeNumber, snr: Number, step: Number) -> tuple[float, float]:
    k, c = _checks.integer("order", order, least=2), _checks.positive("step", step)
    lam = _checks.nonnegative("snr", snr)
    return 2 * k * ((lam if k == 2 else 0.0) - c ** (k - 1)), 4 * k * c**k

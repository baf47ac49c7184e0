"""How long matrix PCA takes to leave the equator: logarithmic in n above λ = c, exponential below.

Near the equator √n·m is an Ornstein–Uhlenbeck process, while r² goes from its random value 1 to its
rest value c. A random start counts as √n·m(0) ~ N(0, 1); units are those of the package.
"""

import math

import numpy as np
from scipy.integrate import quad
from scipy.special import erf, erfinv

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, Numeric, Values, WholeNumber
from sgdlimits.theory._inputs import numbers

EULER = 0.5772156649015329
OVERSHOOT = 0.5825971579390106  # −ζ(½)/√(2π): a walk looks at a boundary that is this much farther
TALLEST = 600.0  # barriers in the exponent; beyond it times are infinite for all purposes


def escape_time(overlap: Number, dim: WholeNumber, *, snr: Number, step: Number = 1.0) -> float:
    """Mean time at which |m| first reaches η = ``overlap`` from random starts, for λ > c.

        τ = [½ log n − log|G| + ½ log(η²/(1 − η²/(λ − c)))]/(4(λ − c)),   G ~ N(0, cλ/(λ − c)),
        Eτ = [½ log n + ½(γ_E + log 2) − ½ log(cλ/(λ − c)) + ½ log(…)]/(4(λ − c))

    up to O(1/n), and to O(n^(−c/(λ − c))) for c ≠ 1 where r² is still on its way, with n = ``dim``
    and c = ``step``. √n·m(t)e^(−4(λ − c)t) converges to G: the
    random start counts c in its variance, since ∫(r² − c)dt = −(log c)/8 while r² goes from 1 to
    c, and the noise c²/(λ − c). From there on dm/dt = 4m(λ − c − m²) is solved by hand.

    Source: BGJ22 (3.1), (3.2), solved.

    >>> round(escape_time(0.5, 10**4, snr=2.0), 6)
    1.086118
    """
    rate, spread, logarithm = _parts(overlap, snr, step)
    n = _checks.integer("dim", dim, least=2)
    mean_log = -(EULER + math.log(2)) / 2  # E log|N| for a standard normal N
    return (math.log(n / spread) / 2 - mean_log + logarithm) / rate


def escape_probability(
    time: Numeric, overlap: Number, dim: WholeNumber, *, snr: Number, step: Number = 1.0
) -> Values:
    """Probability that |m| has reached ``overlap`` by ``time`` from random starts, for λ > c.

        P(τ ≤ t) = P(|G| ≥ √n η(1 − η²/(λ − c))^(−½) e^(−4(λ − c)t))

    Source: as for ``escape_time``.

    >>> time = escape_quantile(0.1, 0.5, 10**4, snr=2.0)
    >>> round(float(escape_probability(time, 0.5, 10**4, snr=2.0)), 9)
    0.1
    """
    rate, spread, logarithm = _parts(overlap, snr, step)
    n = _checks.integer("dim", dim, least=2)
    size = math.sqrt(n / spread) * np.exp(logarithm - rate * numbers("time", time))
    return np.asarray(1 - erf(size / math.sqrt(2)))


def escape_quantile(
    part: Number, overlap: Number, dim: WholeNumber, *, snr: Number, step: Number = 1.0
) -> float:
    """The time by which this part of random starts has reached ``overlap``, for λ > c.

    Source: as for ``escape_time``.

    >>> round(escape_quantile(0.5, 0.5, 10**4, snr=2.0), 6)
    1.025772
    """
    rate, spread, logarithm = _parts(overlap, snr, step)
    n, left = _checks.integer("dim", dim, least=2), 1 - _checks.fraction("part", part)
    size = math.sqrt(2) * float(erfinv(left))
    return (math.log(n / spread) / 2 - math.log(size) + logarithm) / rate


def climbing_time(
    overlap: Number,
    dim: WholeNumber,
    *,
    snr: Number,
    step: Number = 1.0,
    watched: Flag = True,
) -> float:
    """Mean time at which noise has driven |m| from 0 to η = ``overlap``, for λ < c.

        dm = 4m(λ − c − m²) dt + √(8c(c + 2m²)/n) dB,
        E τ = ∫₀^η s(y) ∫₀^y n/(4c(c + 2z²)s(z)) dz dy,   s(y) = e^(nB(y))

    with B the ``climbing_barrier``. It is the time of the diffusion at
    r² = c, exact for overlaps of the order of 1/√n, and in the exponent up to those of n^(−¼); r²
    fluctuates too, which helps to reach larger ones.

    Args:
        overlap: η.
        dim: n.
        snr: λ, below the step.
        step: c.
        watched: only after every step of SGD, which moves the boundary by 0.58 times the deviation
            of one step, √(8c²(c + 2η²))/n; without it, at all times.

    Source: BGJ22 (7.2) at r² = c; scale function and speed measure; Broadie, Glasserman and Kou.

    >>> round(climbing_time(0.1, 400, snr=0.5, watched=False), 4)
    0.7204
    """
    eta, lam, c = _below(overlap, snr, step)
    n = _checks.integer("dim", dim, least=2)
    if _checks.flag("watched", watched):
        eta += OVERSHOOT * math.sqrt(8 * c**2 * (c + 2 * eta**2)) / n

    def inner(y: float) -> float:
        def density(z: float) -> float:
            gap = _barrier(y, lam, c) - _barrier(z, lam, c)
            return n / (4 * c * (c + 2 * z**2)) * math.exp(n * gap)

        return float(quad(density, 0.0, y, epsabs=0, epsrel=1e-9, limit=200)[0])

    if n * _barrier(eta, lam, c) > TALLEST:
        return math.inf
    return float(quad(inner, 0.0, eta, epsabs=0, epsrel=1e-7, limit=200)[0])


def climbing_barrier(overlap: Number, *, snr: Number, step: Number = 1.0) -> float:
    """What multiplies n in the exponent of the time to an overlap against the drift, for λ < c.

        B(η) = [η² + (c/2 − λ) log(1 + 2η²/c)]/(4c),   E τ = e^(nB(η) + O(log n))

    for the diffusion at r² = c; (1 − λ/c)η²/(2c) for small η. At λ = c/2 it is η²/(4c).

    Source: as for ``climbing_time``.

    >>> round(climbing_barrier(0.2, snr=0.5), 9)
    0.01
    """
    eta, lam, c = _below(overlap, snr, step)
    return _barrier(eta, lam, c)


def _barrier(m: float, lam: float, c: float) -> float:
    return (m**2 + (c / 2 - lam) * math.log1p(2 * m**2 / c)) / (4 * c)


def _parts(overlap: Number, snr: Number, step: Number) -> tuple[float, float, float]:
    """The rate, the variance of G, and the logarithm of the level with its nonlinear constant."""
    c, lam = _checks.positive("step", step), _checks.positive("snr", snr)
    if not lam > c:
        raise _checks.InputError(
            f"snr={snr!r} is not allowed: snr must be above step={step!r}, below which overlaps "
            "decay; climbing_time is for those"
        )
    eta, most = _checks.positive("overlap", overlap), math.sqrt(lam - c)
    if not eta < most:
        raise _checks.InputError(
            f"overlap={overlap!r} is not allowed: overlap must be below {most:.6g}, the overlap at "
            f"rest for snr={snr!r} and step={step!r}"
        )
    level = math.log(eta) - math.log1p(-(eta**2) / (lam - c)) / 2
    return 4 * (lam - c), c * lam / (lam - c), level


def _below(overlap: Number, snr: Number, step: Number) -> tuple[float, float, float]:
    c, lam = _checks.positive("step", step), _checks.nonnegative("snr", snr)
    if not lam < c:
        raise _checks.InputError(
            f"snr={snr!r} is not allowed: snr must be below step={step!r}, above which overlaps "
            "grow; escape_time is for those"
        )
    return _checks.positive("overlap", overlap), lam, c

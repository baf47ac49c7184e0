"""Exit times at large dimension, and to first order in the threshold."""

import math

from scipy.special import digamma

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.theory.phase_retrieval.exit_setting import averaged_over, checked_setting
from sgdlimits.theory.phase_retrieval.rates import alignment_decay_rate, overlap_noise

LARGE = 2**62  # a dimension that allows any threshold


def exit_time_offset(
    width: WholeNumber = 1,
    *,
    step: Number,
    noise: Number = 0.0,
    threshold: Number = 0.1,
    average: Word = "annealed",
    start: Word | None = None,
) -> float:
    """What is left of an exit time when log(dim)/(2ω) is taken off, as dim → ∞.

        annealed            log[T(p + 1)/(2p)]/(2ω)
        quenched            [log(T(p + 1)/4) − ψ(p/2)]/(2ω)
        diffusive, random   the same − log(1 + σ²/(2ω))/(2ω)
        diffusive, from 0   [log(T(p + 1)ω/(2σ²)) − ψ(p/2)]/(2ω)

    with ω = ``growth_rate``, σ² = ``overlap_noise`` and ψ the digamma function: noise adds to the
    variance 1/d of random overlaps σ²/(2ωd). In units of dim/step samples.

    Source: AKLS23 (46), (47), (51) as d → ∞.

    >>> round(exit_time_offset(step=0.05, noise=0.5, average="quenched"), 6)
    -0.187677
    """
    setting = checked_setting(LARGE, width, step, noise, threshold)
    kind, place = averaged_over(average, start)
    if start not in (None, "random"):
        raise _checks.InputError(
            f"start={start!r} is not allowed: start must be None, for 0, or 'random'; from other "
            "starts exit times do not grow with dim"
        )
    p, T, rate = setting.width, setting.threshold, setting.rate
    variance = overlap_noise(p, setting.step, setting.noise)
    if kind == "annealed":
        return math.log(T * (p + 1) / (2 * p)) / (2 * rate)
    doubled = math.log(T * (p + 1) / 4) - float(digamma(p / 2))
    if kind == "diffusive":
        doubled -= math.log(variance / (2 * rate) + (1.0 if place else 0.0))
    return doubled / (2 * rate)


def exit_delay(
    width: WholeNumber = 1, *, step: Number, noise: Number = 0.0, threshold: Number = 0.1
) -> float:
    """How much later than in the linear theory growth reaches the threshold, to first order in T.

        [κ/(2ω) + c²(1 − f)/(2p)] S/(2ω),   S = T(p + 1)/2

    On the way neurons that find the teacher find one another, Q_jl = c mⱼm_l, both of which slows
    them down, dS/dt = 2ωS − κS², with

        b = 8 + (32γ/p)(1 − 2/p),   c = (b/p)/(2ω + ω_Q),   f = 3/(p + 2),
        κ = [(8c/p)(1 − f) + bf − 16γ/p²]/p,   ω = growth_rate,   ω_Q = alignment_decay_rate,

    f the mean of Σmⱼ⁴/S² over random directions. For one neuron κ = 8(1 − 6γ) and the delay is
    about T/(2ω). In units of dim/step samples, whatever the average and the dimension; it may be
    added to any ``exit_time``.

    Source: AKLS23 (21), (26), to second order in S.

    >>> round(exit_delay(step=0.05, noise=0.5), 6)
    0.018512
    """
    setting = checked_setting(LARGE, width, step, noise, threshold)
    p, rate, gamma = setting.width, setting.rate, setting.step
    decay = alignment_decay_rate(p, gamma) if p > 1 else 0.0
    b = 8 + 32 * gamma / p * (1 - 2 / p)
    c, f = b / p / (2 * rate + decay), 3 / (p + 2)
    slowing = (8 * c / p * (1 - f) + b * f - 16 * gamma / p**2) / p
    square = setting.threshold * (p + 1) / 2
    return (slowing / (2 * rate) + c**2 * (1 - f) / (2 * p)) * square / (2 * rate)

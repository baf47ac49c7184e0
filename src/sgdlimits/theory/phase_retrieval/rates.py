"""How fast small overlaps grow and decay at the equator, and the steps at which they do.

Neurons live on the unit sphere, nearly orthogonal to the teacher and to one another. γ = ``step``,
Δ = ``noise``, p = ``width``; rates are per unit of our time t = δ·steps, 1/p times the paper's.
"""

import math

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


def growth_rate(width: WholeNumber, step: Number, noise: Number = 0.0) -> float:
    """Rate at which small overlaps with the teacher grow on the sphere.

        ω = (4/p)(1 − (γ/p)(1 + 1/p + 4/p² + Δ/2))

    Source: AKLS23 (38), where ω_M is p times this rate.

    >>> growth_rate(1, 0.05)  # 4(1 − 6γ)
    2.8
    """
    p, gamma = _checks.integer("width", width, least=1), _checks.positive("step", step)
    delta = _checks.nonnegative("noise", noise)
    return 4 / p * (1 - gamma / p * (1 + 1 / p + 4 / p**2 + delta / 2))


def alignment_decay_rate(width: WholeNumber, step: Number) -> float:
    """Rate at which small overlaps between two neurons decay on the sphere, whatever the noise.

        ω_Q = (8/p²)(1 − 8γ/p²)

    It is negative for γ > p²/8: neurons align with one another. Do steps that learn (ω_M > 0) also
    keep neurons apart? They do if and only if

        (2 + Δ)p² − 14p + 8 ≥ 0.

    The paper's 'for p > 6' is right for every Δ and the best possible one for Δ = 0: p = 6 needs
    Δ ≥ 1/9, p = 5 Δ ≥ 12/25, p = 4 Δ ≥ 1, p = 3 Δ ≥ 16/9 and p = 2 Δ ≥ 3. With less noise, steps
    between p²/8 and ``largest_step`` let both kinds of overlaps grow: two noiseless neurons at
    γ = 0.7 align before they find the teacher, since −ω_Q = 3.2/2 and ω_M = 0.5/2. The fastest step
    is always below p²/8, since (2 + Δ)p² − 6p + 8 > 0.

    Source: AKLS23 (39), where ω_Q is p times this rate.

    >>> alignment_decay_rate(4, 1.0)
    0.25
    """
    p, gamma = _checks.integer("width", width, least=2), _checks.positive("step", step)
    return 8 / p**2 * (1 - 8 * gamma / p**2)


def overlap_noise(width: WholeNumber, step: Number, noise: Number = 0.0) -> float:
    """Variance per unit of time of √d times an overlap, at the equator of the sphere.

        σ² = (4γ/p²)(10 − 6/p + 8/p² + Δ),   which is 4γ(12 + Δ) for one neuron

    It is γE[(2ℰsⱼs⋆/p)²] with independent fields; overlaps of different neurons fluctuate
    independently, and the sphere takes away nothing where m = 0.

    Source: AKLS23 sec. F for p = 1; (54) at m = 0, Q = I.

    >>> round(overlap_noise(1, 0.05, 0.5), 12)
    2.5
    """
    p, gamma = _checks.integer("width", width, least=1), _checks.positive("step", step)
    delta = _checks.nonnegative("noise", noise)
    return 4 * gamma / p**2 * (10 - 6 / p + 8 / p**2 + delta)


def largest_step(noise: Number, width: WholeNumber = 1) -> float:
    """Step at and beyond which small overlaps stop growing.

        2p³/(8 + 2p + (2 + Δ)p²),   which is 2/(12 + Δ) for one neuron

    Source: AKLS23 (38); sec. 2 corrected, which says 1/6 whatever the noise.

    >>> largest_step(0.5)
    0.16
    """
    return 2 * fastest_step(width, noise)


def fastest_step(width: WholeNumber, noise: Number) -> float:
    """Step that takes the fewest samples to escape.

        γ_opt = p³/(8 + 2p + (2 + Δ)p²)

    Source: AKLS23 sec. E.4.

    >>> fastest_step(1, 0.5)
    0.08
    """
    p, delta = _checks.integer("width", width, least=1), _checks.nonnegative("noise", noise)
    return p**3 / (8 + 2 * p + (2 + delta) * p**2)


def overparametrization_gain(noise: Number, width: Number = math.inf) -> float:
    """How many times fewer samples p neurons need than one, each at its fastest step, as d → ∞.

        (12 + Δ)/(2 + Δ + 2/p + 8/p²) → (12 + Δ)/(2 + Δ) as p → ∞

    It is the ratio of what multiplies d log d in ``minimal_samples``.

    Source: AKLS23 sec. E.4.

    >>> overparametrization_gain(0.0), overparametrization_gain(0.0, 2)
    (6.0, 2.4)
    """
    delta = _checks.nonnegative("noise", noise)
    infinite = isinstance(width, float) and width == math.inf
    p = math.inf if infinite else float(_checks.integer("width", width, least=1))
    return (12 + delta) / (2 + delta + 2 / p + 8 / p**2)

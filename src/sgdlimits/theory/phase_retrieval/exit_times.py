"""How long phase retrieval takes to escape mediocrity, and which step is fastest.

Exit means that the risk has lost a fraction T = ``threshold`` of the excess over Δ/2 that it had at
the start. Overlaps are taken to be small until then, so that they grow exponentially,
m(t) = m(0)e^(ωt) with ω = ``growth_rate``. Times are δ·steps, p = ``width`` times the paper's;
γ = ``step``, Δ = ``noise``, d = ``dim``.

Which of them to trust depends on the start. From random starts SGD exits later than
:func:`exit_time_annealed`, the time of a mean start and not a mean time, and a little earlier than
:func:`exit_time_quenched`, which averages over starts but leaves out the noise of SGD: noise adds
s²/(2ω) to m(0)², s² = (γ/d)(48 + 4Δ), which takes log(1 + ds²/(2ω))/(2ω) off to leading order. From
m = 0 exactly trust :func:`exit_time_diffusive`. At d = 300, T = 0.1, γ = 0.05, Δ = ½ SGD takes
0.81 ± 0.01 from random starts, where they say 0.62 and 0.85, and 1.02 ± 0.01 from m = 0, where the
last one says 0.99. Medians are a tenth below these means: single runs scatter by half of them.
"""

import itertools
import math

import numpy as np
from scipy.integrate import quad
from scipy.special import dawsn

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory._inputs import below


def growth_rate(width: WholeNumber, step: Number, noise: Number = 0.0) -> float:
    """Rate at which small overlaps grow on the sphere.

        ω = (4/p)(1 − (γ/p)(1 + 1/p + 4/p² + Δ/2))

    Source: AKLS23 (38), where ω_M is p times this rate.

    >>> growth_rate(1, 0.05)  # 4(1 − 6γ)
    2.8
    """
    p, gamma = _checks.integer("width", width, least=1), _checks.positive("step", step)
    delta = _checks.nonnegative("noise", noise)
    return 4 / p * (1 - gamma / p * (1 + 1 / p + 4 / p**2 + delta / 2))


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


def exit_time_annealed(
    dim: WholeNumber, threshold: Number, width: WholeNumber, step: Number, noise: Number
) -> float:
    """Exit time from a start whose squared overlaps have their mean over random starts, 1/dim.

        t = log[(T(p + 1)d + (p + 1)(1 − T))/(2p)]/(2ω)

    Too early for SGD from random starts, by about a quarter at d = 300: the logarithm of a mean is
    larger than the mean of logarithms. For one neuron trust :func:`exit_time_quenched`.

    Source: AKLS23 (10), (47).

    >>> round(exit_time_annealed(3000, 0.1, 1, 0.05, 0.5), 6)
    1.037596
    """
    d, level, p, rate = _escape(dim, threshold, width, step, noise)
    return math.log((level * (p + 1) * d + (p + 1) * (1 - level)) / (2 * p)) / (2 * rate)


def exit_time_quenched(dim: WholeNumber, threshold: Number, step: Number, noise: Number) -> float:
    """Mean exit time over starts that are uniform on the sphere of dimension ``dim``, one neuron.

        t = E[log(1 + T(1 − m²)/m²)]/(2ω),   m² ~ Beta(½, (d − 1)/2)

    This is the mean over starts m of the time that solves 1 − m²e^(2ωt) = (1 − T)(1 − m²). It is
    never negative, and 0 at m² = 1 only, where there is no excess risk to lose. For large d, m² is
    nearly z²/d with z standard normal; (48) has that law in place of the exact one, which makes it
    larger by 1/(2ωd) to leading order and gives negative times to starts with z² > d.

    The one to trust for SGD from random starts, as an upper estimate: the noise of SGD, left out
    here, makes it a few per cent earlier.

    Source: AKLS23 (46) for p = 1; (10) and (48) corrected at finite d.

    >>> round(exit_time_quenched(3000, 0.1, 0.05, 0.5), 4)
    1.2685
    """
    d, level, _, rate = _escape(dim, threshold, 1, step, noise)
    # In the log-odds x of m² the density is analytic and decays exponentially on both sides, so
    # that the trapezoidal rule converges as e^(−π²/h): h = ¼ leaves rounding errors only. The log
    # singularity at m = 0 has gone to x = −∞.
    x = np.arange(-90.0 - math.log(d), 90.0, 0.25)
    density = np.exp(-(np.logaddexp(0, -x) + (d - 1) * np.logaddexp(0, x)) / 2)
    logarithm = np.logaddexp(0, math.log(level) - x)
    return float(np.average(logarithm, weights=density)) / (2 * rate)


def exit_time_diffusive(dim: WholeNumber, threshold: Number, step: Number, noise: Number) -> float:
    """Mean exit time of the linear diffusion that starts at m = 0, for one neuron.

    It solves dm = ωm dt + s dB with s² = (γ/d)(48 + 4Δ), and leaves (−√T, √T) after the mean time

        t = (T/s²) ₂F₂(1, 1; 3/2, 2; −ωT/s²) = (2/ω) ∫ D(u) du over 0 < u < √(ωT)/s

    with D Dawson's function.

    The one to trust for SGD that starts at m = 0. From random starts it is too late.

    Source: AKLS23 (50)–(52); Zeng (Z20).

    >>> round(exit_time_diffusive(3000, 0.1, 0.05, 0.5), 6)
    1.411106
    """
    d, level, _, rate = _escape(dim, threshold, 1, step, noise)
    reach = math.sqrt(rate * level / (step / d * (48 + 4 * noise)))
    # Dawson's function peaks at 0.92 and decays as 1/(2u): split where it changes character
    cuts = [0.0, *(c for c in (1.0, 4.0, 16.0, 64.0, 256.0) if c < reach), reach]
    pieces = itertools.pairwise(cuts)
    total = sum(quad(dawsn, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in pieces)
    return 2 / rate * total


def _escape(
    dim: WholeNumber, threshold: Number, width: WholeNumber, step: Number, noise: Number
) -> tuple[int, float, int, float]:
    d = _checks.integer("dim", dim, least=2)
    level = below("threshold", threshold, 1.0, "a fraction of the initial excess risk")
    p, delta = _checks.integer("width", width, least=1), _checks.nonnegative("noise", noise)
    gamma = below("step", step, largest_step(delta, p), "beyond which small overlaps decay")
    return d, level, p, growth_rate(p, gamma, delta)

"""How long phase retrieval takes to escape mediocrity, and which step is fastest.

Exit means that the risk has lost a fraction ``threshold`` of its initial excess. Times are
delta * steps, p times the paper's.
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

        (4 / p) (1 - (gamma / p)(1 + 1/p + 4/p^2 + noise / 2))

    Source: 002 (38), the paper's omega_M divided by p.

    >>> growth_rate(1, 0.05)  # 4 (1 - 6 gamma)
    2.8
    """
    p, gamma = _checks.integer("width", width, least=1), _checks.positive("step", step)
    delta = _checks.nonnegative("noise", noise)
    return 4 / p * (1 - gamma / p * (1 + 1 / p + 4 / p**2 + delta / 2))


def largest_step(noise: Number, width: WholeNumber = 1) -> float:
    """Step at and beyond which small overlaps stop growing.

        2 p^3 / (8 + 2p + (2 + noise) p^2),   2 / (12 + noise) for one neuron

    Source: 002 (38); sec. 2 corrected, which says 1/6 whatever the noise.

    >>> largest_step(0.5)
    0.16
    """
    return 2 * fastest_step(width, noise)


def fastest_step(width: WholeNumber, noise: Number) -> float:
    """Step that takes the fewest samples to escape.

        gamma_opt = p^3 / (8 + 2p + (2 + noise) p^2)

    Source: 002 sec. E.4.

    >>> fastest_step(1, 0.5)
    0.08
    """
    p, delta = _checks.integer("width", width, least=1), _checks.nonnegative("noise", noise)
    return p**3 / (8 + 2 * p + (2 + delta) * p**2)


def exit_time_annealed(
    dim: WholeNumber, threshold: Number, width: WholeNumber, step: Number, noise: Number
) -> float:
    """Exit time of the deterministic limit with the initial overlaps at their mean square.

        t = log[(T (p+1) d + (p+1)(1-T)) / (2p)] / (2 rate)

    with T = ``threshold`` and the rate of ``growth_rate``: our time, p times the paper's.

    Source: 002 (10), (47).

    >>> round(exit_time_annealed(3000, 0.1, 1, 0.05, 0.5), 6)
    1.037596
    """
    d, level, p, rate = _escape(dim, threshold, width, step, noise)
    return math.log((level * (p + 1) * d + (p + 1) * (1 - level)) / (2 * p)) / (2 * rate)


def exit_time_quenched(dim: WholeNumber, threshold: Number, step: Number, noise: Number) -> float:
    """Mean exit time of the deterministic limit over random starts, for one neuron.

        t = E[log(T d / z^2 + 1 - T)] / (2 rate),   z standard normal

    Source: 002 (10), (48).

    >>> round(exit_time_quenched(3000, 0.1, 0.05, 0.5), 4)
    1.2686
    """
    d, level, _, rate = _escape(dim, threshold, 1, step, noise)

    def integrand(z: float) -> float:
        # log(T d / z^2 + 1 - T) without its singular part -2 log z, whose mean is known
        return math.log(level * d + (1 - level) * z**2) * math.exp(-(z**2) / 2)

    regular = quad(integrand, 0, 40, epsabs=1e-13, epsrel=1e-12)[0] * math.sqrt(2 / math.pi)
    mean_log_square = -np.euler_gamma - math.log(2)  # E log z^2
    return (regular - float(mean_log_square)) / (2 * rate)


def exit_time_diffusive(dim: WholeNumber, threshold: Number, step: Number, noise: Number) -> float:
    """Mean exit time from m = 0 of the linear diffusion, for one neuron.

        dm = mu m dt + s dB leaves (-sqrt T, sqrt T) after
        t = (T / s^2) 2F2(1, 1; 3/2, 2; -mu T / s^2) = (2 / mu) * integral of Dawson's function
        from 0 to sqrt(mu T) / s,   mu = 4 (1 - 6 gamma) - 2 gamma noise,
        s^2 = (gamma / d)(48 + 4 noise)

    Source: 002 (50)-(52).

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

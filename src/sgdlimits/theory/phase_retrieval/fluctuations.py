"""Covariance of one step of phase retrieval with one neuron, the noise behind its SDE."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number


def increment_covariance(overlap: Number, *, step: Number, noise: Number = 0.0) -> np.ndarray:
    """Covariance of the increments of overlap and squared norm in one free step at ‖w‖ = 1.

    In units of δ = γ/dim, γ = ``step``, one step changes (m, q) by

        M = 2ℰss⋆,   Q = 4ℰs² + 4γℰ²s²,   ℰ = s⋆² − s² + √Δ z,

    where the fields s of the neuron and s⋆ of the teacher have variance 1 and covariance m =
    ``overlap``, z ~ N(0, 1) and Δ = ``noise``. Per unit of time, (m, q) fluctuate with covariance
    γ/dim times the matrix of

        Var M     = 8Δm² − 192m⁴ + 144m² + 4Δ + 48
        Cov(M, Q) = 72gΔ(m³ − m) − 1440g(m⁵ − 2m³ + m) + 24Δm − 480m³ + 480m
        Var Q     = g²(576Δm⁴ − 2496Δm² − 11520m⁶ + 54144m⁴ − 73728m² + 32Δ² + 1920Δ + 31104)
                    + g(544Δm² − 11136m⁴ + 22272m² − 544Δ − 11136)
                    + 320m⁴ − 1600m² + 48Δ + 1280

    with g = 2γ.

    Source: AKLS23 (55); corrected, its γ must be read as 2γ.

    >>> increment_covariance(0.0, step=0.05)[0, 0].tolist()
    48.0
    """
    m = float(_checks.array("overlap", overlap, ()))
    g, d = 2 * _checks.positive("step", step), _checks.nonnegative("noise", noise)
    along = 8 * d * m**2 - 192 * m**4 + 144 * m**2 + 4 * d + 48
    cross = 72 * g * d * (m**3 - m) - 1440 * g * (m**5 - 2 * m**3 + m)
    cross += 24 * d * m - 480 * m**3 + 480 * m
    norm = g**2 * (576 * d * m**4 - 2496 * d * m**2 - 11520 * m**6 + 54144 * m**4)
    norm += g**2 * (-73728 * m**2 + 32 * d**2 + 1920 * d + 31104)
    norm += g * (544 * d * m**2 - 11136 * m**4 + 22272 * m**2 - 544 * d - 11136)
    norm += 320 * m**4 - 1600 * m**2 + 48 * d + 1280
    return np.array([[along, cross], [cross, norm]])

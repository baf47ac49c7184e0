"""Covariance of one step of phase retrieval with one neuron, the noise behind its SDE."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number


def increment_covariance(overlap: Number, *, step: Number, noise: Number = 0.0) -> np.ndarray:
    """Covariance of the increments (M, Q) of one free step at |w| = 1, in units of gamma / dim.

        M = 2 E l l*,   Q = 4 E l^2 + 4 gamma E^2 l^2,   E = l*^2 - l^2 + sqrt(noise) z,

    for fields l, l* of unit variance and covariance m. Per unit of time, (m, q) fluctuate with
    covariance (gamma / dim) times this matrix; with g = 2 gamma and D = noise

        Var M    = 8 D m^2 - 192 m^4 + 144 m^2 + 4 D + 48
        Cov(M,Q) = 72 g D m^3 - 72 g D m - 1440 g m^5 + 2880 g m^3 - 1440 g m + 24 D m
                   - 480 m^3 + 480 m
        Var Q    = g^2 (576 D m^4 - 2496 D m^2 - 11520 m^6 + 54144 m^4 - 73728 m^2 + 32 D^2
                   + 1920 D + 31104) + g (544 D m^2 - 11136 m^4 + 22272 m^2 - 544 D - 11136)
                   + 320 m^4 - 1600 m^2 + 48 D + 1280

    Source: 002 (55); corrected, gamma there must be read as 2 gamma.

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

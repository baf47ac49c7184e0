"""Regression by the k nearest neighbours: the classical trade of bias against variance.

    f̂_k(x) = (1/k) Σ_{ℓ ≤ k} Y_(ℓ),  risk = squared bias + σ²/k

with the labels Y_(ℓ) of the k points nearest to x; k = 1 interpolates. Here the worst case at one
point is exact at every n, as in ``nadaraya_watson``: X uniform in the unit ball of ℝᵈ around x,
f(y) = L‖y − x‖^β.

Source: J24 Ex. 5.1, corrected: it averages f(x_(ℓ)), which nobody observes and whose variance,
given the points, is zero.
"""

import math

from scipy import special

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory.nadaraya_watson import _smoothness


def squared_bias(
    neighbours: WholeNumber,
    samples: WholeNumber,
    dim: WholeNumber,
    smoothness: Number,
    constant: Number = 1.0,
) -> float:
    """Exact E[((1/k) Σ f(X_(ℓ)))²] for f = L‖· − x‖^β.

        L² [(1/k) d/(d + 2β) + (1 − 1/k)(d/(d + β))²] E R^(2β)

    as k points are uniform within the distance R of the next one, and Rᵈ has a beta law.

    >>> round(squared_bias(1, 1, 1, smoothness=1.0), 12)
    0.333333333333
    """
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    k, beta = _checks.integer("neighbours", neighbours, least=1), _smoothness(smoothness)
    if k > n:
        raise _checks.InputError(
            f"neighbours={neighbours!r} is not allowed: neighbours must be at most samples={n}"
        )
    size = _checks.nonnegative("constant", constant)
    within = (d / (d + 2 * beta)) / k + (1 - 1 / k) * (d / (d + beta)) ** 2
    power = 2 * beta / d
    # E R^(2β) = Γ(k + 1 + p)Γ(n + 1)/(Γ(k + 1)Γ(n + 1 + p)), 1 for k = n: of the ball itself
    radius = math.exp(float(special.betaln(n + 1, power) - special.betaln(k + 1, power)))
    return size**2 * within * radius


def variance(neighbours: WholeNumber, noise: Number) -> float:
    """σ²/k.

    >>> variance(4, noise=1.0)
    0.25
    """
    k = _checks.integer("neighbours", neighbours, least=1)
    return _checks.nonnegative("noise", noise) / k

"""The Marchenko–Pastur law: the limiting spectrum of S = (v/n) Σ_ℓ z_ℓz_ℓᵀ, z_ℓ ~ N(0, I) in ℝᵈ.

The sum is over n samples; ``ratio`` is φ = n/d, samples per dimension, as everywhere in
``sgdlimits.spectra``, and ``variance`` is v. Much of the literature has d/n = 1/φ instead.

Source: Marchenko and Pastur (MP67); J24 ch. 6, corrected: in its Def. 6.5 the edges, the density
and the atom have φ in place of 1/φ.
"""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number


def edges(ratio: Number, variance: Number = 1.0) -> tuple[float, float]:
    """Ends of the continuous part, v(1 ∓ 1/√φ)², for ``ratio`` φ = n/d samples per dimension.

    >>> edges(4.0)
    (0.25, 2.25)
    """
    phi = _checks.positive("ratio", ratio)
    scale, root = _checks.positive("variance", variance), np.sqrt(phi)
    # φ − 1 is exact near φ = 1, where 1 − 1/√φ cancels
    low, high = (phi - 1) / (root + 1) / root, 1 + 1 / root
    return float(scale * low**2), float(scale * high**2)


def atom(ratio: Number) -> float:
    """Mass at zero for ``ratio`` φ = n/d samples per dimension: 1 − φ if φ < 1, else 0.

    >>> atom(0.25)
    0.75
    """
    return max(0.0, 1 - _checks.positive("ratio", ratio))


def density(x: object, ratio: Number, variance: Number = 1.0) -> np.ndarray:
    """Density of the continuous part for ``ratio`` φ = n/d samples per dimension.

        φ √((x − low)(high − x)) / (2π v x),   low and high its ``edges``

    Its mass is 1 − ``atom``.

    >>> float(density(1.0, ratio=1.0).round(6))
    0.275664
    """
    low, high = edges(ratio, variance)
    points = _checks.array("x", x, None)
    inside = np.maximum((points - low) * (high - points), 0.0)
    safe = np.where(inside > 0, points, 1.0)
    return np.asarray(ratio * np.sqrt(inside) / (2 * np.pi * variance * safe))


def cdf(x: object, ratio: Number, variance: Number = 1.0) -> np.ndarray:
    """Mass of (−∞, x] for ``ratio`` φ = n/d samples per dimension, the ``atom`` at 0 included.

    With a and b the ``edges``, s = √((x − a)(b − x)), for x between them

        F(x) = atom + φ [s + (√b − √a)² arctan √((x − a)/(b − x))
                         − 2√(ab) arctan((√b − √a)s/(√a(b − x) + √b(x − a)))] / (2πv)

    which is the integral of ``density``, absolutely to about 1e-15 max(1, √φ), what rounding of x
    makes of it, not relatively near a.

    >>> cdf([-1.0, 0.0, 100.0], ratio=0.25).tolist(), float(cdf(1.0, ratio=1.0).round(6))
    ([0.0, 0.75, 1.0], 0.608998)
    """
    low, high = edges(ratio, variance)
    points = _checks.array("x", x, None)
    sides, (a, b) = np.maximum([points - low, high - points], 0.0), np.sqrt([low, high])
    gap = 2 * np.sqrt(variance) * min(1.0, 1 / np.sqrt(ratio))  # √b − √a, without cancellation
    left, right = sides / sides.sum(axis=0) * gap * (a + b)  # their sum is b − a to rounding
    both = np.sqrt(left * right)
    part = both + gap**2 * np.arctan2(np.sqrt(left), np.sqrt(right))
    part -= 2 * a * b * np.arctan2(gap * both, a * right + b * left)
    mass = np.clip(ratio * part / (2 * np.pi * variance), 0.0, 1 - atom(ratio))
    inside = np.where(points >= high, 1 - atom(ratio), np.where(points > low, mass, 0.0))
    return np.asarray(inside + np.where(points >= 0, atom(ratio), 0.0))


def distance_to_mean(ratio: Number, variance: Number = 1.0) -> float:
    """Limit of ‖S − vI‖ for ``ratio`` φ = n/d samples per dimension: v (2/√φ + 1/φ), never 0.

    So S does not converge to its mean in operator norm unless φ → ∞ (J24 sec. 6.1). It holds for
    entries with finite fourth moment; otherwise the norm diverges though the law is the same.

    >>> distance_to_mean(4.0)
    1.25
    """
    root = 1 / np.sqrt(_checks.positive("ratio", ratio))
    return float(_checks.positive("variance", variance) * root * (2 + root))


def stieltjes(z: object, ratio: Number, variance: Number = 1.0) -> np.ndarray:
    """Stieltjes transform m(z), the limit of tr (S − z)⁻¹/d, off the support.

    For ``ratio`` φ = n/d samples per dimension it is the root of
    v z m² + (φz + v(1 − φ)) m + φ = 0 that decays like −1/z.

    >>> complex(stieltjes(3.0, ratio=4.0).round(6))
    (-0.542573+0j)
    """
    low, high = edges(ratio, variance)
    try:
        point = np.array(z, dtype=complex)
    except (TypeError, ValueError, OverflowError) as error:
        raise _checks.InputError(f"z={z!r} is not allowed: z must be complex numbers") from error
    if not np.all(np.isfinite(point)):
        raise _checks.InputError(f"z={_checks.shown(z)} is not allowed: z must be finite")
    # a product of two roots is cut along the support only
    root = ratio * np.sqrt(point - low) * np.sqrt(point - high)
    middle = variance * (ratio - 1) - ratio * point
    # of the two forms of a root of a quadratic equation the one in which nothing cancels
    alike = (middle * root.conj()).real > 0
    if np.any((point == 0) & (alike | (ratio <= 1))):
        raise _checks.InputError(
            f"z={_checks.shown(z)} is not allowed: z must not be 0, where m is infinite, unless "
            "ratio > 1"
        )
    above, below = (
        np.where(alike, middle + root, 2 * ratio),
        np.where(alike, 2 * variance * point, middle - root),
    )
    return np.asarray(above / below + 0.0)  # no negative zeros

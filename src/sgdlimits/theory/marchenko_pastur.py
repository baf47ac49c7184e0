"""The Marchenko–Pastur law: the limiting spectrum of S = (v/n) Σ_ℓ z_ℓz_ℓᵀ, z_ℓ ~ N(0, I) in ℝᵈ.

The sum is over n samples; ``ratio`` is d/n, dimension over samples, and ``variance`` is v.

Source: Marchenko and Pastur (MP67); J24 ch. 6, corrected: in its Def. 6.5 the edges, the density
and the atom have n/d in place of d/n.
"""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number


def edges(ratio: Number, variance: Number = 1.0) -> tuple[float, float]:
    """Ends of the continuous part, v(1 ∓ √ratio)².

    >>> edges(0.25)
    (0.25, 2.25)
    """
    root = np.sqrt(_checks.positive("ratio", ratio))
    scale = _checks.positive("variance", variance)
    return float(scale * (1 - root) ** 2), float(scale * (1 + root) ** 2)


def atom(ratio: Number) -> float:
    """Mass at zero: 1 − 1/ratio if there are fewer samples than dimensions, else 0.

    >>> atom(4.0)
    0.75
    """
    return max(0.0, 1 - 1 / _checks.positive("ratio", ratio))


def density(x: object, ratio: Number, variance: Number = 1.0) -> np.ndarray:
    """Density of the continuous part, whose mass is 1 − ``atom``.

        √((x − low)(high − x)) / (2π ratio v x),   low and high its ``edges``

    >>> float(density(1.0, ratio=1.0).round(6))
    0.275664
    """
    low, high = edges(ratio, variance)
    points = _checks.array("x", x, None)
    inside = np.maximum((points - low) * (high - points), 0.0)
    safe = np.where(inside > 0, points, 1.0)
    return np.asarray(np.sqrt(inside) / (2 * np.pi * ratio * variance * safe))


def stieltjes(z: object, ratio: Number, variance: Number = 1.0) -> np.ndarray:
    """Stieltjes transform m(z), the limit of tr (S − z)⁻¹/d, off the support.

    It is the root of ratio·v·z m² + (z + v(ratio − 1)) m + 1 = 0 that decays like −1/z.

    >>> complex(stieltjes(3.0, ratio=0.25).round(6))
    (-0.542573+0j)
    """
    low, high = edges(ratio, variance)
    try:
        point = np.array(z, dtype=complex)
    except (TypeError, ValueError) as error:
        raise _checks.InputError(f"z={z!r} is not allowed: z must be complex numbers") from error
    if not np.all(np.isfinite(point)):
        raise _checks.InputError(f"z={_checks.shown(z)} is not allowed: z must be finite")
    # a product of two roots is cut along the support only
    root = np.sqrt(point - low) * np.sqrt(point - high)
    return np.asarray((variance * (1 - ratio) - point + root) / (2 * ratio * variance * point))

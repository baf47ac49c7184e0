"""From a Stieltjes transform back to its measure: density, atoms and the mass of intervals.

    m(z) = ∫ μ(dx)/(x − z),  density(x) = lim Im m(x + iη)/π,  μ{x} = lim η Im m(x + iη)

as η → 0 from above, for any m that can be evaluated in the upper half-plane.

Source: J24 Def. 6.11 and Thm 6.13.
"""

import warnings
from collections.abc import Callable

import numpy as np
from scipy import integrate

from sgdlimits import _checks
from sgdlimits._types import Estimate, Number

Transform = Callable[[np.ndarray], np.ndarray]

HALVINGS = 44  # heights from |x| down to 6e-14 |x|, where rounding of x + iη begins
DEPTH = 72.0  # of the path towards its ends: to exp(−72) of its length
TRUSTED = 1e-3  # an extrapolation whose error is not below this part of it is none


def density(transform: Transform, x: object) -> Estimate:
    """Density at x, from Im m(x + iη)/π extrapolated to η = 0, and the error of that.

    Where the density is analytic, so is Im m in η up to 0: polynomials through heights η that are
    halved again and again converge faster than any power. The error is the distance of the last two
    polynomials, at the degree where it is least; near an edge convergence is slow, and the error
    says so. At an atom value and error are infinite.

    Args:
        transform: m, a function of an array of complex numbers in the upper half-plane.
        x: real points.

    >>> def semicircle(z):
    ...     return (np.sqrt(z - 2) * np.sqrt(z + 2) - z) / 2
    >>> value, error = density(semicircle, [0.0, 1.0, 3.0])
    >>> value.round(9), bool(np.max(error) < 1e-9)
    (array([0.31830989, 0.27566445, 0.        ]), True)
    """
    points = _checks.array("x", x, None)
    if points.size == 0:
        raise _checks.InputError(f"x={x!r} is not allowed: x must be one point or more")
    heights = np.where(points == 0, 1.0, np.abs(points))[..., None] * 0.5 ** np.arange(HALVINGS)
    smoothed = _upper(transform, points[..., None] + 1j * heights).imag / np.pi
    best, error = smoothed[..., 0], np.full(points.shape, np.inf)
    row = [smoothed[..., 0]]
    for degree in range(1, HALVINGS):
        new = [smoothed[..., degree]]
        for step in range(1, degree + 1):
            new.append(new[-1] + (new[-1] - row[step - 1]) / (2.0**step - 1))
        change = np.abs(new[-1] - row[-1])
        better = change < error
        best, error = np.where(better, new[-1], best), np.where(better, change, error)
        row = new
    # at an atom Im m grows like 1/η: nothing else doubles from one height to the next
    last, before = smoothed[..., -1], smoothed[..., -2]
    infinite = (last > 1.9 * before) & (last > TRUSTED * np.abs(smoothed[..., 0]))
    best = np.maximum(best, 0.0)
    error = error + 8 * np.finfo(float).eps * best
    return Estimate(np.where(infinite, np.inf, best), np.where(infinite, np.inf, error))


def mass(transform: Transform, low: Number, high: Number) -> Estimate:
    """Mass of the interval from low to high, atoms at its ends counted half, and its error.

    m is analytic above the axis, so the integral of Im m(x + i0)/π, which inverts the transform, is
    that along any path above it: here the half-circle over the interval, far from what is inside.

    >>> def semicircle(z):
    ...     return (np.sqrt(z - 2) * np.sqrt(z + 2) - z) / 2
    >>> value, error = mass(semicircle, -2.0, 0.0)
    >>> float(value.round(9))
    0.5
    """
    left, right = (float(_checks.array(n, x, ())) for n, x in (("low", low), ("high", high)))
    if not left < right:
        raise _checks.InputError(f"high={high!r} is not allowed: high must be above low={low!r}")
    radius = (right - left) / 2

    def along(depth: float) -> float:
        # the angle to each end, in its logarithm: the ends, or what is near them, may be singular
        angle = np.pi / 2 * np.exp(-depth)
        up, down = radius * np.expm1(1j * angle), radius * np.expm1(-1j * angle)
        to_right, from_left = _upper(transform, np.array([right + up, left - down]))
        turn = np.exp(1j * angle)
        return float(radius * angle * (1j * (from_left / turn - to_right * turn)).imag)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)  # the error is returned
        value, error = integrate.quad(along, 0.0, DEPTH, limit=200)
    return Estimate(np.asarray(value / np.pi), np.asarray(error / np.pi))


def _upper(transform: Transform, z: np.ndarray) -> np.ndarray:
    if not callable(transform):
        raise _checks.InputError(
            f"transform={transform!r} is not allowed: transform must be a function of complex "
            "numbers"
        )
    values = np.asarray(transform(z), dtype=complex)
    if values.shape != z.shape or not np.all(np.isfinite(values)):
        raise _checks.InputError(
            f"transform={transform!r} is not allowed: transform must give a finite number for each "
            f"of {z.size} points of the upper half-plane"
        )
    scale = np.max(np.abs(values))
    if np.any(values.imag < -1e-9 * scale):
        raise _checks.InputError(
            f"transform={transform!r} is not allowed: transform must have Im m(z) ≥ 0 above the "
            f"axis, but it is {values.imag.min():.3g}"
        )
    return values

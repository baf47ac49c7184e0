"""Exponents of power laws, fitted as slopes on a log–log scale."""

import numpy as np

from sgdlimits._types import Estimate


def exponent(sizes: np.ndarray, values: np.ndarray, errors: np.ndarray | None = None) -> Estimate:
    """The slope of log(values) against log(sizes), by least squares.

    Args:
        sizes: positive, one per point.
        values: one per size; those that are not positive are left out. The slope is −inf if all
            are, and nan if only one is left.
        errors: standard errors of the values, from which weights and the error of the slope
            follow; that error is enlarged if the points scatter around the line by more than their
            own errors say. Without ``errors`` it comes from the scatter alone: zero for two points.

    >>> fit = exponent(np.array([1.0, 2.0, 4.0]), np.array([3.0, 6.0, 12.0]))
    >>> round(float(fit.value), 12)
    1.0
    """
    good = np.isfinite(values) & (values > 0)
    if not np.any(good):
        return Estimate(np.asarray(-np.inf), np.asarray(0.0))
    if np.sum(good) == 1:
        return Estimate(np.asarray(np.nan), np.asarray(np.inf))
    x, y = np.log(sizes[good]), np.log(values[good])
    weights = np.ones_like(y)
    if errors is not None:
        weights = 1 / (errors[good] / values[good] + 1e-9) ** 2
    centred = x - np.average(x, weights=weights)
    information = np.sum(weights * centred**2)
    slope = np.sum(weights * centred * y) / information
    rest = y - np.average(y, weights=weights) - slope * centred
    scatter = np.sum(weights * rest**2) / max(len(y) - 2, 1)
    if errors is not None:
        scatter = max(scatter, 1.0)
    return Estimate(np.asarray(slope), np.sqrt(scatter / information))

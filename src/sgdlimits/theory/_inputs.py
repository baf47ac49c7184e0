"""Validation of states, shared by the closed forms: shapes and finiteness, nothing else.

States come from ODE solvers, which may step outside the physical domain by rounding errors; only
parameters are checked for their sign.
"""

from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number


def numbers(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a finite float64 array of any shape."""
    return _checks.array(name, value, None)


def vector(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a finite float64 vector of any positive length."""
    result = numbers(name, value)
    if result.ndim != 1 or result.size == 0:
        raise _checks.InputError(
            f"{name} has shape {result.shape}, which is not allowed: {name} must be a vector"
        )
    return result


def square(name: str, value: Any) -> np.ndarray:
    """Return ``value`` as a finite k × k matrix with k ≥ 2."""
    result = numbers(name, value)
    size = len(result) if result.ndim else 0
    if size < 2 or result.shape != (size, size):
        raise _checks.InputError(
            f"{name} has shape {result.shape}, which is not allowed: "
            f"{name} must have shape (k, k) with k >= 2"
        )
    return result


def symmetric(name: str, value: Any, size: int) -> np.ndarray:
    """Return ``value`` as a finite symmetric ``size`` × ``size`` matrix."""
    matrix = _checks.array(name, value, (size, size))
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10):
        raise _checks.InputError(
            f"{name}={matrix.tolist()} is not allowed: {name} must be symmetric"
        )
    return (matrix + matrix.T) / 2


def gram_of_means(value: Any, classes: int) -> np.ndarray:
    """Return the Gram matrix of the means, the identity (orthonormal means) for None."""
    return np.eye(classes) if value is None else _checks.gram("means_gram", value, classes)


def xor_state(
    readout: Any, mu_overlaps: Any, nu_overlaps: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return readout and overlaps with μ and ν of a two-layer network as vectors of one length."""
    v = vector("readout", readout)
    mu = _checks.array("mu_overlaps", mu_overlaps, v.shape)
    return v, mu, _checks.array("nu_overlaps", nu_overlaps, v.shape)


def below(name: str, value: Number, bound: float, what: str) -> float:
    """Return ``value`` as a float if it lies strictly between 0 and ``bound``."""
    number = _checks.positive(name, value)
    if not number < bound:
        raise _checks.InputError(
            f"{name}={value!r} is not allowed: {name} must lie in (0, {bound:.6g}), {what}"
        )
    return number

"""Validation of arguments: every error names the parameter, the value and what is allowed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sgdlimits._errors import InputError

_SHOWN = 64  # entries of an array in an error message


def positive(name: str, value: Any, *, allow_infinite: bool = False) -> float:
    """Return ``value`` as a float if it is > 0."""
    number = _number(name, value)
    if not number > 0 or (math.isinf(number) and not allow_infinite):
        kind = "a positive number or math.inf" if allow_infinite else "a positive finite number"
        raise InputError(f"{name}={value!r} is not allowed: {name} must be {kind}")
    return number


def nonnegative(name: str, value: Any) -> float:
    """Return ``value`` as a float if it is finite and >= 0."""
    number = _number(name, value)
    if not (number >= 0 and math.isfinite(number)):
        raise InputError(f"{name}={value!r} is not allowed: {name} must be a finite number >= 0")
    return number


def fraction(name: str, value: Any) -> float:
    """Return ``value`` as a float if it lies strictly between 0 and 1."""
    number = _number(name, value)
    if not 0 < number < 1:
        raise InputError(f"{name}={value!r} is not allowed: {name} must lie in (0, 1)")
    return number


def integer(name: str, value: Any, *, least: int) -> int:
    """Return ``value`` as an int if it is a whole number >= ``least``, be it written as 1e4."""
    if not is_whole(value) or value < least:
        raise InputError(f"{name}={value!r} is not allowed: {name} must be an integer >= {least}")
    if value >= 2**63:
        raise InputError(f"{name}={value!r} is not allowed: {name} must be below 2**63")
    return int(value)


def is_whole(value: Any) -> bool:
    """Whether ``value`` is a whole number; 1e4 is one, True is not."""
    if isinstance(value, float | np.floating):
        return value.is_integer()
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False, not merely truthy: "no" is true."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}={value!r} is not allowed: {name} must be True or False")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is one of the ``allowed`` words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise InputError(f"{name}={value!r} is not allowed: {name} must be one of {words}")
    return str(value)  # NumPy's own strings are no constants to JAX


def probabilities(name: str, value: Any, size: int) -> np.ndarray:
    """Return ``value`` as a vector of ``size`` positive probabilities that sum to 1."""
    vector = array(name, value, (size,))
    if np.any(vector <= 0) or abs(vector.sum() - 1) > 1e-9:
        raise InputError(
            f"{name}={shown(vector)} is not allowed: "
            f"{name} must be positive and sum to 1 (they sum to {vector.sum():.12g})"
        )
    return vector / vector.sum()


def gram(name: str, value: Any, size: int) -> np.ndarray:
    """Return ``value`` as a symmetric positive definite ``size`` x ``size`` matrix."""
    matrix = _symmetric(name, value, size)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= 1e-10 * np.trace(matrix) / size:
        raise InputError(
            f"{name}={shown(matrix)} is not allowed: {name} must be positive definite "
            f"(its smallest eigenvalue is {smallest:.3g})"
        )
    return matrix


def covariance(name: str, value: Any, size: int) -> np.ndarray:
    """Return ``value`` as a symmetric positive semidefinite ``size`` x ``size`` matrix."""
    matrix = _symmetric(name, value, size)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < -1e-10 * np.max(np.abs(matrix)):
        raise InputError(
            f"{name}={shown(matrix)} is not allowed: {name} must be positive semidefinite "
            f"(its smallest eigenvalue is {smallest:.3g})"
        )
    return matrix


def array(name: str, value: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Return ``value`` as a finite float64 array of the given shape, of any shape if it is None."""
    try:
        if np.asarray(value).dtype.kind not in "fiub":  # text and complex numbers would convert
            raise TypeError("not real numbers")
        result = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wanted = "" if shape is None else f" of shape {shape}"
        raise InputError(
            f"{name}={shown(value)} is not allowed: {name} must be real numbers{wanted}"
        ) from error
    if shape is not None and result.shape != shape:
        raise InputError(
            f"{name} has shape {result.shape}, which is not allowed: {name} must have shape {shape}"
        )
    if not np.all(np.isfinite(result)):
        raise InputError(f"{name}={shown(result)} is not allowed: {name} must be finite")
    return result


def shown(value: Any) -> str:
    """Return a value on one line for an error message, only the shape of a large array."""
    if not hasattr(value, "tolist"):
        return repr(value)
    return repr(value.tolist()) if value.size <= _SHOWN else f"<array of shape {value.shape}>"


def _symmetric(name: str, value: Any, size: int) -> np.ndarray:
    matrix = array(name, value, (size, size))
    if not np.allclose(matrix, matrix.T, atol=1e-10):
        raise InputError(f"{name}={shown(matrix)} is not allowed: {name} must be symmetric")
    return (matrix + matrix.T) / 2


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(f"{name}={value!r} is not allowed: {name} must be a number")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{name}={value!r} is not allowed: {name} is too large") from error

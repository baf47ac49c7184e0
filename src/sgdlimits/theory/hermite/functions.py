"""Functions of a standard normal variable: known ones by name, and those of a caller."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special

from sgdlimits import _checks

BLOCK = 1024  # points in one call: JAX compiles every operation again for every other number

PROBES = np.array([0.25, 0.5, 0.75, -1.25, 2.5, -0.5, 1.75])


Link = Callable[[Any], Any]
"""A real function that acts elementwise on NumPy or JAX arrays."""


class Function(NamedTuple):
    """A real function that acts elementwise on arrays, and its derivative where it is known."""

    name: str
    call: Callable[[np.ndarray], Any]
    slope: Callable[[np.ndarray], Any] | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """At points of any shape."""
        return _in_blocks(self.call, x)

    def derivative(self, x: np.ndarray) -> np.ndarray:
        """At points of any shape; the differential quotient where no derivative is known."""
        if self.slope is not None:
            return _in_blocks(self.slope, x)
        width = 1e-5 * np.maximum(1.0, np.abs(x))
        with np.errstate(all="ignore"):
            return np.asarray((self(x + width) - self(x - width)) / (2 * width))


def _normal(x: np.ndarray) -> Any:
    return np.exp(-(x**2) / 2) * math.sqrt(2 / math.pi)


_KNOWN = {
    "erf": Function("erf", lambda x: special.erf(x / math.sqrt(2)), _normal),
    "relu": Function("relu", lambda x: np.maximum(x, 0.0), lambda x: 1.0 * (x > 0)),
    "square": Function("square", np.square, lambda x: 2 * x),
    "tanh": Function("tanh", np.tanh, lambda x: 1 - np.tanh(x) ** 2),
}


def function_of(parameter: str, value: Any) -> Function:
    """A function by the name that the tasks know it by, or a caller's own.

    >>> function_of("link", "square")(np.array([2.0, 3.0]))
    array([4., 9.])
    """
    if isinstance(value, str) and value in _KNOWN:
        return _KNOWN[value]
    allowed = f"{parameter} must be one of {', '.join(map(repr, _KNOWN))} or a function of an array"
    if not callable(value):
        raise _checks.InputError(f"{parameter}={value!r} is not allowed: {allowed}")
    refused = f"{parameter}={value!r} is not allowed"
    try:
        output, more = (_values(value, PROBES[:count]) for count in (3, len(PROBES)))
    except Exception as error:  # whatever the caller's function raises
        first = (str(error).splitlines() or [""])[0]
        raise _checks.InputError(
            f"{refused}: {allowed}; of an array of shape (3,) it raises {type(error).__name__}: "
            f"{first}"
        ) from error
    if output.shape != (3,) or output.dtype.kind not in "fiub":
        raise _checks.InputError(
            f"{refused}: {allowed} that acts elementwise and returns real numbers; it maps shape "
            f"(3,) to {output.dtype} of shape {output.shape}"
        )
    alike = more.shape == PROBES.shape and np.allclose(more[:3], output, rtol=1e-6, equal_nan=True)
    if not alike:
        raise _checks.InputError(
            f"{refused}: {allowed} that acts elementwise; its values at {PROBES[:3].tolist()} "
            f"change if it is given {len(PROBES)} points"
        )
    return Function(getattr(value, "__name__", type(value).__name__), value)


def _values(call: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True), np.errstate(all="ignore"):
        return np.asarray(call(x))


def _in_blocks(call: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """In calls of at most a few sizes."""
    flat = np.ravel(x).astype(float)
    size = BLOCK if len(flat) <= BLOCK else 64 * BLOCK
    count = max(1, -(-len(flat) // size))
    padded = np.concatenate([flat, np.zeros(count * size - len(flat))])
    parts = [_values(call, part) for part in padded.reshape(count, size)]
    return np.concatenate(parts)[: len(flat)].astype(float).reshape(np.shape(x))

"""Normalised Hermite coefficients of functions, with the error of their quadrature."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import WholeNumber, Word
from sgdlimits.theory.hermite.functions import Link, function_of
from sgdlimits.theory.hermite.line import Integral, Line, line_of, root_density

MOST = 500  # orders: Hermite functions of higher ones oscillate faster than panels resolve


def coefficients(link: Word | Link, order: WholeNumber = 10) -> Integral:
    r"""The coefficients of a function in the orthonormal Hermite polynomials h₀, …, h_order.

        u_k(f) = E[f(z) h_k(z)] = (1/√(2π)) ∫ f(z) h_k(z) e^(−z²/2) dz,   h_k = He_k/√(k!)

    so that f = Σ u_k(f) h_k and ‖f‖² = Σ u_k(f)². Panels on which the function is smooth are found
    by bisection, so that kinks and jumps cost no accuracy, wherever they are. The error is the sum
    over panels of the differences between the rules of Kronrod and Gauss, plus rounding: it is
    larger than the true one unless a feature lies between all nodes, which are 0.03 apart.

    Source: J24 section 11.2.3, where the printed constant 1/√(2πi) is a misprint.

    Args:
        link: "erf" (of x/√2), "relu", "square", "tanh", or a function of NumPy or JAX arrays. It
            must have a finite norm E f(z)².
        order: the highest one, at most 500.

    >>> u = coefficients("relu", order=3)
    >>> u.value.round(12) + 0.0
    array([0.39894228, 0.5       , 0.28209479, 0.        ])
    >>> bool(np.max(u.error) < 1e-12)
    True
    """
    return of_line(line_of("link", function_of("link", link)), _order(order))


def of_line(line: Line, order: int) -> Integral:
    """The same, of a function whose panels are known."""
    return line.mean(lambda x: hermite_functions(x, order))


def hermite_functions(x: np.ndarray, order: int) -> np.ndarray:
    """Rows h_k(x) times the root of the normal density, k = 0, …, order: they stay bounded."""
    rows = np.empty((order + 1, *np.shape(x)))
    rows[0] = root_density(x)
    if order:
        rows[1] = x * rows[0]
    for k in range(1, order):
        rows[k + 1] = (x * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1)
    return rows


def _order(value: WholeNumber) -> int:
    order = _checks.integer("order", value, least=0)
    if order > MOST:
        raise _checks.InputError(
            f"order={value!r} is not allowed: order must be an integer >= 0 and <= {MOST}"
        )
    return order

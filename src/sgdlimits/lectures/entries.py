"""Laws of independent entries with mean 0 and variance 1, from bounded to heavy-tailed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Word


class Law(NamedTuple):
    """A law of single entries with mean 0 and variance 1."""

    title: str
    kurtosis: float  # E x⁴
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _student(degrees: int) -> Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]:
    scale = np.sqrt((degrees - 2) / degrees)
    return lambda rng, shape: scale * rng.standard_t(degrees, shape)


LAWS = {
    "gaussian": Law("Gaussian", 3.0, lambda rng, shape: rng.standard_normal(shape)),
    "rademacher": Law("random signs", 1.0, lambda rng, shape: 2.0 * rng.integers(0, 2, shape) - 1),
    "student6": Law("Student t, 6 degrees of freedom", 6.0, _student(6)),
    "student3": Law("Student t, 3 degrees of freedom", np.inf, _student(3)),
}
"""Laws by name: the tail of ``student6`` is heavy, but its fourth moment is finite; the fourth
moment of ``student3`` is infinite, its variance is not."""


def draw(name: Word, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return independent entries of the law of this name.

    >>> draw("rademacher", (2, 3), np.random.default_rng(0)).round().astype(int)
    array([[ 1,  1,  1],
           [-1, -1, -1]])
    """
    return LAWS[_checks.choice("entries", name, list(LAWS))].draw(rng, shape)

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
    "student6": Law("Student t₆", 6.0, _student(6)),
    "student3": Law("Student t₃", np.inf, _student(3)),
}
"""Laws by name. Student's law with 6 degrees of freedom, scaled, has a heavy tail and a finite
fourth moment; with 3 its fourth moment is infinite."""


def draw(name: Word, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return independent entries of the law of this name.

    >>> draw("rademacher", (2, 3), np.random.default_rng(0)).round().astype(int)
    array([[ 1,  1,  1],
           [-1, -1, -1]])
    """
    return LAWS[_checks.choice("entries", name, list(LAWS))].draw(rng, shape)

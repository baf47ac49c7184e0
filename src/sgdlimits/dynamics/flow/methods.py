"""Explicit Runge–Kutta methods with dense output: of order 8, and of order 5 for loose tolerances.

Where little accuracy is asked for, steps are as long as stability allows, and a method is the
faster the fewer stages it has.
"""

import abc
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.integrate import DOP853, RK45

LOOSE = 1e-6  # relative tolerance of a step from which on the method of order 5 takes less work

Rows = Float[np.ndarray, "q n"]
Rates = Callable[[Rows], Rows]
Stages = Float[np.ndarray, "q s n"]  # velocities, of as many stages as are known
Lengths = Float[np.ndarray, " q"]  # of steps, or parts of them


class Method(abc.ABC):
    """A method: stage s is at u + h Σ_t a_st k_t.

    Attributes:
        tableau: a, with rows for the stages, the end of the step, and those that fill it in.
        stages: how many come before the end, whose velocity begins the next step.
        exponent: the step must change by this power of the error.
    """

    tableau: ClassVar[np.ndarray]
    stages: ClassVar[int]
    exponent: ClassVar[float]

    def step(self, rates: Rates, u: Rows, f: Rows, h: Lengths) -> tuple[Stages, Rows]:
        """Velocities at all stages of a step, that at its end included, and where it ends."""
        a = self.tableau
        k = np.empty((len(u), self.stages + 1, u.shape[1]))
        k[:, 0] = f
        for s in range(1, self.stages):
            k[:, s] = rates(u + h[:, None] * (a[s, :s] @ k[:, :s]))
        new = self.end(u, k, h)
        k[:, self.stages] = rates(new)
        return k, new

    def end(self, u: Rows, k: Stages, h: Lengths) -> Rows:
        """Where a step with these velocities ends."""
        return u + h[:, None] * (self.tableau[self.stages, : self.stages] @ k[:, : self.stages])

    def filled_in(
        self, rates: Rates, u: Rows, k: Stages, h: Lengths
    ) -> Float[np.ndarray, "q all n"]:
        """The velocities at the stages that fill a step in as well."""
        more = len(self.tableau) - self.stages - 1
        k = np.concatenate([k, np.empty((len(k), more, k.shape[2]))], axis=1) if more else k
        for s in range(self.stages + 1, len(self.tableau)):
            k[:, s] = rates(u + h[:, None] * (self.tableau[s, :s] @ k[:, :s]))
        return k

    @abc.abstractmethod
    def error(
        self, k: Stages, h: Lengths, u: Rows, new: Rows, rtol: float, atol: float
    ) -> Float[np.ndarray, " q"]:
        """The error of a step over what is allowed."""

    @abc.abstractmethod
    def extension(self, u: Rows, new: Rows, k: Stages, h: Lengths) -> Float[np.ndarray, "q c n"]:
        """Coefficients of the solution inside a step."""

    @abc.abstractmethod
    def inside(self, terms: Float[np.ndarray, "q c n"], x: Lengths) -> Rows:
        """How far the solution has come when the share x of a step is done."""


class _Eighth(Method):
    """Dormand and Prince, with its continuous extension of order 7 (Hairer et al. 1993, II.10)."""

    stages = DOP853.n_stages
    tableau = np.zeros((stages + 1 + len(DOP853.A_EXTRA),) * 2)
    tableau[:stages, :stages], tableau[stages, :stages] = DOP853.A, DOP853.B
    tableau[stages + 1 :] = DOP853.A_EXTRA
    exponent = -1 / 8

    def error(
        self, k: Stages, h: Lengths, u: Rows, new: Rows, rtol: float, atol: float
    ) -> Float[np.ndarray, " q"]:
        """That of order 5, corrected by that of order 3."""
        scale, k = _scale(u, new, rtol, atol), k[:, : self.stages + 1]
        fifth, third = norm(DOP853.E5 @ k / scale), norm(DOP853.E3 @ k / scale)
        size = np.sqrt(fifth**2 + 0.01 * third**2)
        return np.where(size == 0, 0.0, h * fifth**2 / np.where(size == 0, 1.0, size))

    def extension(self, u: Rows, new: Rows, k: Stages, h: Lengths) -> Float[np.ndarray, "q c n"]:
        h, change = h[:, None], new - u
        begin, finish = h * k[:, 0], h * k[:, self.stages]
        terms = [change, begin - change, 2 * change - begin - finish]
        return np.stack([*terms, *(h * (d @ k) for d in DOP853.D)], axis=1)

    def inside(self, terms: Float[np.ndarray, "q c n"], x: Lengths) -> Rows:
        result = np.zeros_like(terms[:, 0])
        for number in range(terms.shape[1]):
            share = x if number % 2 == 0 else 1 - x
            result = (result + terms[:, -1 - number]) * share[:, None]
        return result


class _Fifth(Method):
    """Dormand and Prince, with Shampine's extension of order 4: no stage more for times inside."""

    stages = RK45.n_stages
    tableau = np.zeros((stages + 1,) * 2)
    tableau[:stages, : stages - 1], tableau[stages, :stages] = RK45.A, RK45.B
    exponent = -1 / 5

    def error(
        self, k: Stages, h: Lengths, u: Rows, new: Rows, rtol: float, atol: float
    ) -> Float[np.ndarray, " q"]:
        """The distance from the method of order 4."""
        return h * norm(RK45.E @ k / _scale(u, new, rtol, atol))

    def extension(self, u: Rows, new: Rows, k: Stages, h: Lengths) -> Float[np.ndarray, "q c n"]:
        return h[:, None, None] * (RK45.P.T @ k)

    def inside(self, terms: Float[np.ndarray, "q c n"], x: Lengths) -> Rows:
        result = np.zeros_like(terms[:, 0])
        for number in reversed(range(terms.shape[1])):
            result = (result + terms[:, number]) * x[:, None]
        return result


EIGHTH, FIFTH = _Eighth(), _Fifth()


def norm(x: Rows) -> Float[np.ndarray, " q"]:
    """The root mean square over components."""
    return np.sqrt(np.mean(x**2, axis=1))


def _scale(u: Rows, new: Rows, rtol: float, atol: float) -> Rows:
    """What error is allowed in every component."""
    return atol + rtol * np.maximum(np.abs(u), np.abs(new))

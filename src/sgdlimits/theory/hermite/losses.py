"""Population losses φ(m) of one neuron on the sphere, m its overlap with the hidden direction."""

import abc
import dataclasses
import math
from collections.abc import Callable

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory.hermite.coefficients import of_line
from sgdlimits.theory.hermite.functions import Function
from sgdlimits.theory.hermite.line import Integral, density, integral, line_of, nodes_of


@dataclasses.dataclass(frozen=True)
class PopulationLoss(abc.ABC):
    """φ(m), the mean over samples of a loss that depends on the weights through m alone."""

    @abc.abstractmethod
    def value(self, overlap: Number) -> Integral:
        """φ(m) for −1 ≤ m ≤ 1, with the error of its quadrature."""

    @abc.abstractmethod
    def slope(self, overlap: Number) -> Integral:
        """φ'(m) for −1 < m < 1."""

    @abc.abstractmethod
    def taylor(self, order: WholeNumber = 10) -> Integral:
        """The coefficients a₀, …, a_order of φ(m) = Σ aₖ mᵏ, with their errors."""

    @property
    @abc.abstractmethod
    def scale(self) -> float:
        """What the coefficients are small or large against."""

    @property
    @abc.abstractmethod
    def words(self) -> str:
        """What is learned, in a few words."""

    def remainder(self, overlap: float, order: int) -> float:
        """A bound for |Σ k aₖ m^(k−1)| over k > order, infinite where none is known."""
        del overlap, order
        return math.inf


@dataclasses.dataclass(frozen=True)
class OnlinePCA(PopulationLoss):
    """Loss −⟨x, Y⟩² for Y ~ N(0, I + λ v₀v₀ᵀ): φ(m) = −1 − λm² (J24 section 11.2.1)."""

    snr: float

    def value(self, overlap: Number) -> Integral:
        """φ(m)."""
        return _known(-1 - self.snr * overlap_of(overlap, ends=True) ** 2)

    def slope(self, overlap: Number) -> Integral:
        """φ'(m) = −2λm."""
        return _known(-2 * self.snr * overlap_of(overlap, ends=False))

    def taylor(self, order: WholeNumber = 10) -> Integral:
        """a₂ = −λ, and no other but a₀."""
        values = np.zeros(max(3, _checks.integer("order", order, least=0) + 1))
        values[0], values[2] = -1.0, -self.snr
        return _known(values[: int(order) + 1])

    def remainder(self, overlap: float, order: int) -> float:
        """Nothing is left out from order two on."""
        return 0.0 if order >= 2 else super().remainder(overlap, order)

    @property
    def scale(self) -> float:
        """That of the noise, 1."""
        return 1.0

    @property
    def words(self) -> str:
        """With its signal-to-noise ratio."""
        return f"online PCA with snr {self.snr:g}"


@dataclasses.dataclass(frozen=True)
class MixtureLikelihood(PopulationLoss):
    r"""Loss −log cosh(⟨Y, x⟩ + h) for Y ~ p N(v₀, I) + (1 − p) N(−v₀, I), p = e^h/(e^h + e^(−h)).

        φ(m) = −E log cosh(z + εm + h),   aₖ = −(p + (−1)ᵏ(1 − p)) u_k(log cosh(· + h))/√(k!)

    Source: J24 section 11.2.2.
    """

    weight: float

    def value(self, overlap: Number) -> Integral:
        """φ(m)."""
        return self._mean(overlap_of(overlap, ends=True), _log_cosh, even=True)

    def slope(self, overlap: Number) -> Integral:
        """φ'(m) = −E[ε tanh(z + εm + h)]."""
        return self._mean(overlap_of(overlap, ends=False), np.tanh, even=False)

    def taylor(self, order: WholeNumber = 10) -> Integral:
        """From the Hermite coefficients of log cosh(· + h)."""
        highest = _checks.integer("order", order, least=0)
        k, h, p = np.arange(highest + 1), self._shift, self.weight
        u = of_line(line_of("link", Function("log cosh", lambda z: _log_cosh(z + h))), highest)
        factor = np.where(k % 2 == 0, 1.0, 2 * p - 1) * np.exp(-_log_factorial(highest) / 2)
        return Integral(-factor * u.value, np.abs(factor) * u.error)

    @property
    def scale(self) -> float:
        """E log cosh is of order one."""
        return 1.0

    @property
    def words(self) -> str:
        """With its weight."""
        return f"mixture of weight {self.weight:g}"

    @property
    def _shift(self) -> float:
        return math.log(self.weight / (1 - self.weight)) / 2

    def _mean(
        self, m: float, function: Callable[[np.ndarray], np.ndarray], *, even: bool
    ) -> Integral:
        x, kronrod, gauss = nodes_of(np.arange(-12.5, 12.6, 0.5))
        p, h = self.weight, self._shift
        plus, minus = function(x + m + h), function(x - m + h)
        values = -(p * plus + (1 - p) * (minus if even else -minus)) * density(x)
        return integral(values, kronrod, gauss)


def online_pca(snr: Number) -> OnlinePCA:
    """The population loss of online PCA, −1 − λm² with λ = ``snr``.

    >>> float(online_pca(2.0).slope(0.5).value)
    -2.0
    """
    return OnlinePCA(_checks.nonnegative("snr", snr))


def mixture_likelihood(weight: Number) -> MixtureLikelihood:
    """The population loss of maximum likelihood for two antipodal Gaussians.

    Args:
        weight: p, the probability of the one with mean v₀.

    >>> loss = mixture_likelihood(0.5)
    >>> bool(abs(loss.slope(0.0).value) < 1e-15), bool(loss.slope(0.5).value < -0.2)
    (True, True)
    """
    return MixtureLikelihood(_checks.fraction("weight", weight))


def overlap_of(value: Number, *, ends: bool) -> float:
    """An overlap of unit vectors; ±1 may be or not."""
    array = _checks.array("overlap", value, ())
    m = float(array)
    if not (abs(m) <= 1 if ends else abs(m) < 1):
        where = "[−1, 1]" if ends else "(−1, 1)"
        raise _checks.InputError(
            f"overlap={value!r} is not allowed: overlap must be a number in {where}"
        )
    return m


def _log_cosh(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(x, -x) - math.log(2))


def _log_factorial(order: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, order + 1)))])


def _known(value: object) -> Integral:
    values = np.asarray(value, dtype=float)
    return Integral(values, np.zeros_like(values))

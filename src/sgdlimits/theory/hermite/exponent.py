"""The information exponent: the first power of the overlap in the population loss, and its sign."""

import dataclasses
from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import WholeNumber, Word
from sgdlimits.theory.hermite.functions import Link
from sgdlimits.theory.hermite.line import Integral
from sgdlimits.theory.hermite.losses import PopulationLoss
from sgdlimits.theory.hermite.samples import CriticalSamples, critical_samples
from sgdlimits.theory.hermite.teacher import TeacherStudent, teacher_student

RESOLVED = 1e-8  # an error below this part of the scale tells zero from what matters
SURE = 4.0  # errors: further from zero than that is not zero

LARGE = 1e4  # dimension up to which a small coefficient is worth a word

DEFINED, NEGATIVE, FLAT, UNDECIDED = "defined", "negative", "flat", "undecided"


@dataclasses.dataclass(frozen=True, repr=False)
class InformationExponent:
    """The first k ≥ 1 with aₖ ≠ 0 in φ(m) = Σ aₖ mᵏ, defined if that aₖ is negative.

    Attributes:
        status: "defined"; "negative" if the first coefficient has the wrong sign, so that SGD is
            pushed back to the equator; "flat" if all that were computed are zero; "undecided" if
            quadrature does not tell the first one from zero.
        order: of the first coefficient that is not zero, or that is undecided; None if flat.
        coefficients: aₖ for k = 0, …, with the errors of their quadrature. For a teacher f and a
            student g they are −2 u_k(f) u_k(g) for k ≥ 1.
        scale: what they are compared with: ‖f‖‖g‖.
        words: what is learned.
    """

    status: str
    order: int | None
    coefficients: Integral
    scale: float
    words: str

    @property
    def exponent(self) -> int:
        """k; an InputError if it is not defined."""
        if self.status != DEFINED or self.order is None:
            raise _checks.InputError(f"exponent={self.status!r} is not allowed: {self!r}")
        return self.order

    def samples(self, dim: WholeNumber) -> CriticalSamples:
        """The order of the number of samples in some dimension; an InputError if undefined."""
        return critical_samples(dim, self.exponent)

    def __repr__(self) -> str:
        last = len(self.coefficients.value) - 1
        if self.status == FLAT:
            return (
                f"information exponent of {self.words}: undefined, the coefficients of m to "
                f"m^{last} are all zero within {self._worst(last):.1g}: the population loss shows "
                "no direction"
            )
        k = self.order or 0
        value, error = (float(x[k]) for x in self.coefficients)
        first = f"the coefficient of m^{k} is {value:.6g} ± {error:.1g}"
        before = f", all before it are zero within {self._worst(k - 1):.1g}" if k > 1 else ""
        if self.status == UNDECIDED:
            return (
                f"information exponent of {self.words}: not decided, {first}{before}, and "
                "quadrature does not tell it from zero"
            )
        if self.status == NEGATIVE:
            return (
                f"information exponent of {self.words}: undefined, {first}{before}: it must be "
                "negative, for a loss that increases with m pushes SGD back to the equator"
            )
        law = {1: "N", 2: "N log N"}.get(k, f"N^{k - 1}")
        return (
            f"information exponent {k} of {self.words}: {first}{before}; online SGD takes of the "
            f"order of {law} samples{self._later(k)}"
        )

    def _later(self, k: int) -> str:
        """Whether a higher power is larger at the equator, m = 1/√N, in usual dimensions."""
        j = np.arange(k + 1, len(self.coefficients.value))
        ratios = np.abs(self.coefficients.value[j]) * j / (abs(self.coefficients.value[k]) * k)
        dims = ratios ** (2 / (j - k))
        if not len(j) or dims.max() < LARGE:
            return ""
        first = int(np.argmax(dims))
        return (
            f", but below dimension {dims[first]:.2g} the coefficient of m^{j[first]}, "
            f"{self.coefficients.value[j[first]]:.3g}, pushes more at the equator"
        )

    def _worst(self, last: int) -> float:
        value, error = (x[1 : last + 1] for x in self.coefficients)
        return float(np.max(np.abs(value) + error, initial=0.0))


def information_exponent(
    link: Word | Link | PopulationLoss,
    student: Word | Link | None = None,
    *,
    order: WholeNumber = 20,
) -> InformationExponent:
    """The information exponent of a population loss: how flat the equator is.

        φ(m) = a₀ + aₖ mᵏ + O(m^(k+1)),   aₖ < 0

    A coefficient is zero if it is within its quadrature error, and this error below 1e-8 of
    the scale ‖f‖‖g‖; it is not zero if it is more than four errors away from it. What is neither is
    undecided, and the result says so.

    Source: J24 Definition 11.9; for a teacher f and a student g, aₖ = −2 u_k(f) u_k(g).

    Args:
        link: the function of the labels, "erf", "relu", "square", "tanh" or one of NumPy or JAX
            arrays; or a loss from ``teacher_student``, ``online_pca``, ``mixture_likelihood``.
        student: likewise; the link itself by default.
        order: how many coefficients are looked at.

    >>> information_exponent("square").exponent
    2
    >>> third = information_exponent(lambda z: z**3 - 3 * z)
    >>> third.exponent, third.samples(1000).law
    (3, 'N²')
    >>> information_exponent("square", lambda z: -z**2).status
    'negative'
    """
    loss = _loss_of(link, student)
    highest = _checks.integer("order", order, least=1)
    if highest > _MOST:
        raise _checks.InputError(
            f"order={order!r} is not allowed: order must be an integer >= 1 and <= {_MOST}"
        )
    a, scale = loss.taylor(highest), loss.scale
    told: dict[str, Any] = {"coefficients": a, "scale": scale, "words": loss.words}
    for k in range(1, highest + 1):
        value, error = float(a.value[k]), float(a.error[k])
        if abs(value) > SURE * error:
            return InformationExponent(DEFINED if value < 0 else NEGATIVE, k, **told)
        if abs(value) > error or error > RESOLVED * scale:
            return InformationExponent(UNDECIDED, k, **told)
    return InformationExponent(FLAT, None, **told)


_MOST = 100


def _loss_of(link: Any, student: Any) -> PopulationLoss:
    if isinstance(link, PopulationLoss):
        if student is not None:
            raise _checks.InputError(
                f"student={student!r} is not allowed: student must be None, for {link.words} has "
                "its own"
            )
        return link
    loss: TeacherStudent = teacher_student(link, student)
    return loss

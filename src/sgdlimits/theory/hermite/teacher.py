"""The population loss of a student that learns the labels of a teacher."""

import dataclasses
import functools
import math

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.theory.hermite.coefficients import MOST, of_line
from sgdlimits.theory.hermite.functions import Link, function_of
from sgdlimits.theory.hermite.line import Integral, Line, line_of
from sgdlimits.theory.hermite.losses import PopulationLoss, overlap_of
from sgdlimits.theory.hermite.plane import on_the_diagonal, over_the_plane

FEW, SERIES = 20, 300  # coefficients that are kept of a teacher and its student


@dataclasses.dataclass(frozen=True)
class TeacherStudent(PopulationLoss):
    r"""Loss (y − g(⟨a, x⟩))², y = f(⟨a, v₀⟩) + ε, with a ~ N(0, I) and ‖x‖ = ‖v₀‖ = 1.

        φ(m) = E(f(s₀) − g(s))² + E ε² = ‖f‖² + ‖g‖² + E ε² − 2 Σ u_k(f) u_k(g) mᵏ

    for fields s₀ and s with correlation m. Values are Gaussian expectations in the plane, without
    the series; :meth:`series` sums it, with a bound for what it leaves out.

    Source: J24 section 11.2.3, which prints f(⟨a, x⟩) for f(⟨a, v₀⟩) in Φ.
    """

    link: Line
    student: Line
    noise: float

    def value(self, overlap: Number) -> Integral:
        """φ(m), a Gaussian expectation in the plane."""
        m = overlap_of(overlap, ends=True)
        constant = self.link.norm**2 + self.student.norm**2 + self.noise
        if abs(m) == 1:
            mean = on_the_diagonal(self.link, self.student, m)
        else:
            mean = over_the_plane(self.link, self.student, m, lambda _x, f, _xi, g: f * g)
        return Integral(constant - 2 * mean.value, 2 * mean.error + 1e-13 * constant)

    def slope(self, overlap: Number) -> Integral:
        r"""φ'(m), without a derivative of f or g.

            φ'(m) = −2 E[f(s₀) (g(s) − g(m s₀)) (s₀ ξ/σ − m(ξ² − 1)/σ²)],   s = m s₀ + σξ

        with σ² = 1 − m² and ξ a standard normal variable: integrate E[f g'(s) ∂s/∂m] by parts.
        """
        m = overlap_of(overlap, ends=False)
        square = (1 - m) * (1 + m)

        def integrand(x: np.ndarray, f: np.ndarray, xi: np.ndarray, g: np.ndarray) -> np.ndarray:
            weight = (xi * x / math.sqrt(square) - m * (xi**2 - 1) / square) * f
            return np.asarray(weight * (g - self.student.function(m * x)))

        mean = over_the_plane(self.link, self.student, m, integrand)
        return Integral(-2 * mean.value, 2 * mean.error)

    def series(self, overlap: Number, order: WholeNumber = SERIES) -> Integral:
        """φ(m) by its series up to an order; the error bounds what is left out (Cauchy–Schwarz)."""
        m, highest = overlap_of(overlap, ends=True), _checks.integer("order", order, least=0)
        if highest > MOST:
            raise _checks.InputError(
                f"order={order!r} is not allowed: order must be an integer <= {MOST}"
            )
        a = self.taylor(highest)
        powers = m ** np.arange(highest + 1)
        left = 2 * self._tail(highest) * abs(m) ** (highest + 1)
        return Integral(a.value @ powers, a.error @ np.abs(powers) + left)

    def taylor(self, order: WholeNumber = 10) -> Integral:
        """aₖ = −2 u_k(f) u_k(g), and a₀ with the constants."""
        count = _checks.integer("order", order, least=0) + 1
        f, g = self._few if count <= FEW + 1 else self._many
        if count > SERIES + 1:
            f, g = (of_line(line, count - 1) for line in (self.link, self.student))
        values = -2 * f.value[:count] * g.value[:count]
        errors = 2 * (np.abs(f.value) * g.error + (np.abs(g.value) + g.error) * f.error)[:count]
        values[0] += self.link.norm**2 + self.student.norm**2 + self.noise
        return Integral(values, errors)

    def remainder(self, overlap: float, order: int) -> float:
        """2 sup k|m|^(k−1) √(Σ u_k(f)² Σ u_k(g)²), over k > order."""
        if abs(overlap) >= 1:
            return math.inf
        logarithm = math.log(max(abs(overlap), 1e-300))
        most = max(order + 1.0, -1 / logarithm)  # where k m^(k−1) is largest
        return 2 * self._tail(order) * most * math.exp((most - 1) * logarithm)

    @property
    def scale(self) -> float:
        """‖f‖‖g‖."""
        return self.link.norm * self.student.norm

    @property
    def words(self) -> str:
        """Such as "link square, student relu"."""
        link, student = self.link.function.name, self.student.function.name
        return f"link {link}" if link == student else f"link {link}, student {student}"

    @functools.cached_property
    def _few(self) -> tuple[Integral, Integral]:
        return of_line(self.link, FEW), of_line(self.student, FEW)

    @functools.cached_property
    def _many(self) -> tuple[Integral, Integral]:
        return of_line(self.link, SERIES), of_line(self.student, SERIES)

    def _tail(self, order: int) -> float:
        """√(Σ u_k(f)² Σ u_k(g)²) over k > order, from above."""
        squares = []
        for line, u in zip((self.link, self.student), self._many, strict=True):
            known = np.maximum(np.abs(u.value[: order + 1]) - u.error[: order + 1], 0)
            squares.append(max(line.norm**2 * (1 + 1e-13) - known @ known, 0.0))
        return math.sqrt(squares[0] * squares[1])


def teacher_student(
    link: Word | Link, student: Word | Link | None = None, *, noise: Number = 0.0
) -> TeacherStudent:
    """The population loss of a student g that learns labels f(⟨a, v₀⟩) + ε by squares.

    Args:
        link: f: "erf" (of x/√2), "relu", "square", "tanh", or a function of NumPy or JAX arrays
            with finite norm E f(z)².
        student: g, likewise; the link itself by default.
        noise: the variance of ε.

    >>> loss = teacher_student("square")  # φ(m) = 4(1 − m²)
    >>> float(loss.value(0.5).value.round(9)), float(loss.slope(0.5).value.round(9))
    (3.0, -4.0)
    """
    variance = _checks.nonnegative("noise", noise)
    teacher = line_of("link", function_of("link", link))
    if student is None:
        return TeacherStudent(teacher, teacher, variance)
    return TeacherStudent(teacher, line_of("student", function_of("student", student)), variance)

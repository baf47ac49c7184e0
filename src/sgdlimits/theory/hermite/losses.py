"""Population losses φ(m) of one neuron on the sphere, m its overlap with the hidden direction."""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Activation, Estimate, Number, WholeNumber, Word
from sgdlimits.theory.hermite.coefficients import MOST, of_line
from sgdlimits.theory.hermite.functions import Function, function_of
from sgdlimits.theory.hermite.line import Line, integral, line_of, nodes_of, root_density

Integrand = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

FEW, SERIES = 20, 300  # coefficients that are kept of a teacher and its student
STEP = 0.5  # width of a panel of the noise between their fields


@dataclasses.dataclass(frozen=True)
class PopulationLoss(abc.ABC):
    """φ(m), the mean over samples of a loss that depends on the weights through m alone."""

    @abc.abstractmethod
    def value(self, overlap: Number) -> Estimate:
        """φ(m) for −1 ≤ m ≤ 1, with the error of its quadrature."""

    @abc.abstractmethod
    def slope(self, overlap: Number) -> Estimate:
        """φ'(m) for −1 < m < 1."""

    @abc.abstractmethod
    def taylor(self, order: WholeNumber = 10) -> Estimate:
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

    def value(self, overlap: Number) -> Estimate:
        """φ(m), a Gaussian expectation in the plane."""
        m = _overlap(overlap, ends=True)
        constant = self.link.norm**2 + self.student.norm**2 + self.noise
        if abs(m) == 1:
            mean = _on_the_diagonal(self.link, self.student, m)
        else:
            mean = over_the_plane(self.link, self.student, m, lambda _x, f, _xi, g: f * g)
        return Estimate(constant - 2 * mean.value, 2 * mean.error + 1e-13 * constant)

    def slope(self, overlap: Number) -> Estimate:
        r"""φ'(m), without a derivative of f or g.

            φ'(m) = −2 E[f(s₀) (g(s) − g(m s₀)) (s₀ ξ/σ − m(ξ² − 1)/σ²)],   s = m s₀ + σξ

        with σ² = 1 − m² and ξ a standard normal variable: integrate E[f g'(s) ∂s/∂m] by parts.
        """
        m = _overlap(overlap, ends=False)
        square = (1 - m) * (1 + m)

        def integrand(x: np.ndarray, f: np.ndarray, xi: np.ndarray, g: np.ndarray) -> np.ndarray:
            weight = (xi * x / math.sqrt(square) - m * (xi**2 - 1) / square) * f
            return np.asarray(weight * (g - self.student.function(m * x)))

        mean = over_the_plane(self.link, self.student, m, integrand)
        return Estimate(-2 * mean.value, 2 * mean.error)

    def series(self, overlap: Number, order: WholeNumber = SERIES) -> Estimate:
        """φ(m) by its series up to an order; the error bounds what is left out (Cauchy–Schwarz)."""
        m, highest = _overlap(overlap, ends=True), _checks.integer("order", order, least=0)
        if highest > MOST:
            raise _checks.InputError(
                f"order={order!r} is not allowed: order must be an integer <= {MOST}"
            )
        a = self.taylor(highest)
        powers = m ** np.arange(highest + 1)
        left = 2 * self._tail(highest) * abs(m) ** (highest + 1)
        return Estimate(a.value @ powers, a.error @ np.abs(powers) + left)

    def taylor(self, order: WholeNumber = 10) -> Estimate:
        """aₖ = −2 u_k(f) u_k(g), and a₀ with the constants."""
        count = _checks.integer("order", order, least=0) + 1
        f, g = self._few if count <= FEW + 1 else self._many
        if count > SERIES + 1:
            f, g = (of_line(line, count - 1) for line in (self.link, self.student))
        values = -2 * f.value[:count] * g.value[:count]
        errors = 2 * (np.abs(f.value) * g.error + (np.abs(g.value) + g.error) * f.error)[:count]
        values[0] += self.link.norm**2 + self.student.norm**2 + self.noise
        return Estimate(values, errors)

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
    def _few(self) -> tuple[Estimate, Estimate]:
        return of_line(self.link, FEW), of_line(self.student, FEW)

    @functools.cached_property
    def _many(self) -> tuple[Estimate, Estimate]:
        return of_line(self.link, SERIES), of_line(self.student, SERIES)

    def _tail(self, order: int) -> float:
        """√(Σ u_k(f)² Σ u_k(g)²) over k > order, from above."""
        squares = []
        for line, u in zip((self.link, self.student), self._many, strict=True):
            known = np.maximum(np.abs(u.value[: order + 1]) - u.error[: order + 1], 0)
            squares.append(max(line.norm**2 * (1 + 1e-13) - known @ known, 0.0))
        return math.sqrt(squares[0] * squares[1])


@dataclasses.dataclass(frozen=True)
class OnlinePCA(PopulationLoss):
    """Loss −⟨x, Y⟩² for Y ~ N(0, I + λ v₀v₀ᵀ): φ(m) = −1 − λm² (J24 section 11.2.1)."""

    snr: float

    def value(self, overlap: Number) -> Estimate:
        """φ(m)."""
        return _known(-1 - self.snr * _overlap(overlap, ends=True) ** 2)

    def slope(self, overlap: Number) -> Estimate:
        """φ'(m) = −2λm."""
        return _known(-2 * self.snr * _overlap(overlap, ends=False))

    def taylor(self, order: WholeNumber = 10) -> Estimate:
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

    def value(self, overlap: Number) -> Estimate:
        """φ(m)."""
        return self._mean(_overlap(overlap, ends=True), _log_cosh, even=True)

    def slope(self, overlap: Number) -> Estimate:
        """φ'(m) = −E[ε tanh(z + εm + h)]."""
        return self._mean(_overlap(overlap, ends=False), np.tanh, even=False)

    def taylor(self, order: WholeNumber = 10) -> Estimate:
        """From the Hermite coefficients of log cosh(· + h)."""
        highest = _checks.integer("order", order, least=0)
        k, h, p = np.arange(highest + 1), self._shift, self.weight
        u = of_line(line_of("link", Function("log cosh", lambda z: _log_cosh(z + h))), highest)
        factor = np.where(k % 2 == 0, 1.0, 2 * p - 1) * np.exp(-_log_factorial(highest) / 2)
        return Estimate(-factor * u.value, np.abs(factor) * u.error)

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
    ) -> Estimate:
        x, kronrod, gauss = nodes_of(np.arange(-12.5, 12.6, STEP))
        p, h, density = self.weight, self._shift, _density(x)
        plus, minus = function(x + m + h), function(x - m + h)
        values = -(p * plus + (1 - p) * (minus if even else -minus)) * density
        return integral(values, kronrod, gauss)


def teacher_student(
    link: Word | Activation, student: Word | Activation | None = None, *, noise: Number = 0.0
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


def _on_the_diagonal(first: Line, second: Line, sign: float) -> Estimate:
    """E[f(z) g(±z)]."""
    x, kronrod, gauss = nodes_of(np.unique(np.concatenate([first.edges, sign * second.edges])))
    root = root_density(x)
    values = first.function(x) * root * second.function(sign * x) * root
    return integral(values, kronrod, gauss)


def over_the_plane(first: Line, second: Line, m: float, integrand: Integrand) -> Estimate:
    """E integrand(s₀, f(s₀), ξ, g(s)) for fields s₀ and s = m s₀ + σξ with correlation m.

    Panels of s₀ are those of f and follow the breaks of g where the noise between both fields is
    small; panels of the noise are cut where s is at a break of g, for every s₀.
    """
    sigma = math.sqrt((1 - m) * (1 + m))
    outer, kronrod, gauss = nodes_of(_outer_edges(first, second, m, sigma))
    reach = max(9.0, second.reach)
    step = min(STEP, _finest(second) / max(sigma, 0.05))
    grid = np.linspace(-reach, reach, 1 + math.ceil(2 * reach / step))
    cuts = np.clip((second.breaks - m * outer[:, None]) / sigma, -reach, reach)
    edges = np.broadcast_to(grid, (len(outer), len(grid)))
    noise, inner, check = nodes_of(np.sort(np.concatenate([edges, cuts], axis=1), axis=1))
    column = outer[:, None]
    fields = second.function(m * column + sigma * noise)
    values = integrand(column, first.function(column), noise, fields) * _density(noise)
    over_noise = integral(values, inner, check, 1)
    whole = integral(over_noise.value * _density(outer), kronrod, gauss)
    return Estimate(whole.value, whole.error + over_noise.error * _density(outer) @ kronrod)


def _outer_edges(first: Line, second: Line, m: float, sigma: float) -> np.ndarray:
    inside = first.coarse[np.abs(first.coarse) < first.reach]
    widths = np.array([0.0, 0.5, 1, 2, 4, 8]) * sigma
    offsets = np.concatenate([-widths, widths])
    images = (second.breaks[:, None] + offsets).ravel() / (m if abs(m) > 0.1 else math.inf)
    ends = [-first.reach, first.reach]
    edges = np.concatenate([ends, inside, np.clip(images, *ends)])
    return np.unique(edges)


def _finest(line: Line) -> float:
    return float(np.diff(line.coarse).min(initial=STEP)) if not len(line.breaks) else STEP


def _density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi))


def _log_cosh(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(x, -x) - math.log(2))


def _log_factorial(order: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, order + 1)))])


def _known(value: object) -> Estimate:
    values = np.asarray(value, dtype=float)
    return Estimate(values, np.zeros_like(values))


def _overlap(value: Number, *, ends: bool) -> float:
    array = _checks.array("overlap", value, ())
    m = float(array)
    if not (abs(m) <= 1 if ends else abs(m) < 1):
        where = "[−1, 1]" if ends else "(−1, 1)"
        raise _checks.InputError(
            f"overlap={value!r} is not allowed: overlap must be a number in {where}"
        )
    return m

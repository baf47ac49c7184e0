"""The assumptions of the theorems on sample complexity, looked at in numbers."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from sgdlimits import _checks
from sgdlimits._errors import InputError
from sgdlimits._types import Number
from sgdlimits.theory.hermite.exponent import DEFINED, InformationExponent, information_exponent
from sgdlimits.theory.hermite.functions import Function
from sgdlimits.theory.hermite.line import Integral, Line, line_of
from sgdlimits.theory.hermite.losses import MixtureLikelihood, OnlinePCA, PopulationLoss
from sgdlimits.theory.hermite.plane import over_the_plane
from sgdlimits.theory.hermite.teacher import TeacherStudent

NEAR = 0.5  # below it the slope is summed, divided by its first power, above it integrated
GRID = 11  # overlaps on either side
SUM = 100  # coefficients
CUSP = 0.02  # a power of a cusp is known to this, and so are its multiples
OVERLAPS = np.linspace(-0.9, 0.9, 5)  # at which noise is measured


@dataclasses.dataclass(frozen=True, repr=False)
class Assumption:
    """Whether an assumption holds, and how this was decided.

    Attributes:
        name: what is assumed, in a formula.
        holds: True, False, or None where it is not decided.
        where: the smallest overlap at which it was seen to fail, or is undecided; else None.
        constant: a bound or the worst value that was found.
        reason: how it was decided.
    """

    name: str
    holds: bool | None
    where: float | None
    constant: float
    reason: str

    def __repr__(self) -> str:
        verdict = {True: "holds", False: "fails", None: "is not decided"}[self.holds]
        place = "" if self.where is None else f" at m = {self.where:.4g}"
        return f"{self.name} {verdict}{place}: {self.reason}"


def fisher_consistent(loss: PopulationLoss) -> Assumption:
    r"""Assumption B: φ'(m) < 0 for all m in (0, 1).

    It holds if and only if gradient flow of the population loss on the sphere, which moves m by

        dm/dt = −(1 − m²) φ'(m),

    ends at m = 1 from every start with m > 0. Where it fails, flow from the equator stops at the
    first zero of φ'. It is looked at on a grid, and where it is largest between its points: below
    m = ½ the series of φ'(m)/m^(k−1), k the information exponent, with a bound for what it leaves
    out; above ½ φ' itself up to m = 0.99.

    Source: J24 Definition 11.7 and Remark 11.8, which says Assumption A for B.

    >>> from sgdlimits.theory.hermite import teacher_student
    >>> fisher_consistent(teacher_student("erf")).holds
    True
    >>> fisher_consistent(teacher_student("erf", lambda z: -z)).holds
    False
    """
    _is_loss(loss)
    name = "Assumption B, φ' < 0 on (0, 1),"
    found = information_exponent(loss)
    if found.status != DEFINED:
        holds = None if found.status == "undecided" else False
        return Assumption(name, holds, 0.0, float("nan"), repr(found))
    near = _seen(lambda m: _divided(loss, m, found), 0.0, NEAR)
    far = _seen(lambda m: _pair(loss.slope(m)), NEAR, 0.99)
    overlaps, values, errors = np.array([*near, *far]).T
    worst = float(values.max())
    k = found.exponent
    grid = f"at {len(overlaps)} overlaps up to 0.99, φ'/m^{k - 1} below {NEAR:g}"
    bad, unclear = values - errors >= 0, np.abs(values) < errors
    for holds, flags, words in ((False, bad, "positive"), (None, unclear, "zero within its error")):
        if np.any(flags):
            number = int(np.argmax(flags))
            value, error = values[number], errors[number]
            reason = f"there φ' is {words}, {value:.3g} ± {error:.1g}; looked at {grid}"
            return Assumption(name, holds, float(overlaps[number]), worst, reason)
    return Assumption(name, True, None, worst, f"at most {worst:.3g} {grid}")


def moment_bounds(loss: PopulationLoss, extra: Number = 0.1) -> Assumption:
    r"""Assumption A: the noise H of the loss is of the size of independent entries.

        sup E⟨∇H, θ⟩² ≤ C,   sup E‖∇H‖^(4+ε) ≤ C N^((4+ε)/2)   over the sphere, for some ε > 0

    For a loss ℓ of one field s, ∇ℓ is ℓ'(s) times a vector whose entries are Gaussian, so that both
    hold for all N if E|ℓ'|^(4+ε) stays finite. For a teacher and a student, ℓ' = 2(g − y)g', this
    follows (Hölder) from moments of f, g and g' of order 8 + 4ε, which are integrated numerically;
    it fails if E f⁴ or E(g'(g − E f))⁴ is infinite, which are those of ℓ' at m = 0. The label noise
    must have moments of order 4 + ε. For PCA and the mixture it is known.

    Source: J24 Definition 11.5.

    Args:
        loss: from ``teacher_student``, ``online_pca`` or ``mixture_likelihood``.
        extra: ε.

    >>> from sgdlimits.theory.hermite import online_pca, teacher_student
    >>> moment_bounds(teacher_student("relu")).holds, moment_bounds(online_pca(1.0)).constant
    (True, 192.0)
    """
    _is_loss(loss)
    return _bounds(loss, _checks.positive("extra", extra))


@functools.singledispatch
def _bounds(loss: PopulationLoss, extra: float) -> Assumption:
    del extra
    raise _checks.InputError(
        f"loss={loss!r} is not allowed: loss must be one whose noise is known, of a teacher and a "
        "student, online PCA or the mixture"
    )


_A = "Assumption A, moment bounds of the noise,"


@_bounds.register
def _(loss: OnlinePCA, extra: float) -> Assumption:
    del extra
    constant = 48 * (1 + loss.snr) ** 2  # 4 √(E s⁴ E(Y_θ − ms)⁴), s and Y_θ Gaussian
    reason = f"gradients are squares of Gaussians, E⟨∇H, θ⟩² <= {constant:.4g} at every m and N"
    return Assumption(_A, True, None, constant, reason)


@_bounds.register
def _(loss: MixtureLikelihood, extra: float) -> Assumption:
    del loss, extra
    reason = "the slope of log cosh is at most 1, E⟨∇H, θ⟩² <= E(Y_θ − ms)² <= 8 at every m and N"
    return Assumption(_A, True, None, 8.0, reason)


@_bounds.register
def _(loss: TeacherStudent, extra: float) -> Assumption:
    high = 8 + 4 * extra
    link, student = loss.link.function, loss.student.function
    slope = Function(f"the slope of {student.name}", student.derivative)
    jumps = _jumps(loss.student)
    if len(jumps):
        reason = f"{student.name} jumps at z = {jumps[0]:.4g}, where the loss has no gradient"
        return Assumption(_A, False, 0.0, float("inf"), reason)
    mean = float(loss.link.mean(lambda x: np.exp(-(x**2) / 4)[None]).value[0])
    mean /= (2 * np.pi) ** 0.25
    product = Function("g'(g − E f)", lambda x: student.derivative(x) * (student(x) - mean))
    for function, words in ((link, "E f⁴"), (product, "E(g'(g − E f))⁴")):
        if not _has_moment(function, 4.0):
            reason = f"{words} does not settle within |z| <= 38, for {loss.words}"
            return Assumption(_A, False, 0.0, float("inf"), reason)
    for place, power in _cusps(loss.student):
        reason = f"g' grows like |z − {place:.4g}|^−{power:.3g} there, where g is {student.name}"
        apart = abs(float(student(np.array([place]))[0]) - mean) > 1e-2 * loss.student.norm
        if 4 * power > 1 + CUSP and apart:
            return Assumption(
                _A, False, 0.0, float("inf"), f"E(g'(g − E f))⁴ is infinite: {reason}"
            )
        if high * power > 1 - CUSP:
            reason = f"the moment of order {high:g} of g' may be infinite: {reason}"
            return Assumption(_A, None, None, float("inf"), reason)
    for function in (link, student, slope):
        if not _has_moment(function, high):
            reason = f"the moment of order {high:g} of {function.name} does not settle within 38"
            return Assumption(_A, None, None, float("inf"), reason)
    seen = [_along_signal(loss, float(m)) for m in OVERLAPS]
    worst = float(np.max(seen))
    reason = (
        f"f, g and g' have moments of order {high:g}; E⟨∇H, θ⟩² is at most {worst:.4g} at "
        f"{len(OVERLAPS)} overlaps"
    )
    return Assumption(_A, True, None, worst, reason)


def _seen(
    slope: Callable[[float], tuple[float, float]], low: float, high: float
) -> list[tuple[float, float, float]]:
    """Overlaps, slopes and their errors: on a grid, and at the top between points of it."""
    grid = [float(m) for m in np.linspace(low, high, GRID)]
    seen = [(m, *slope(m)) for m in grid]
    padded = [-np.inf, *(value for _, value, _ in seen), -np.inf]
    for i in range(GRID):
        if padded[i + 1] >= max(padded[i], padded[i + 2]):
            ends = grid[max(i - 1, 0)], grid[min(i + 1, GRID - 1)]
            top = float(minimize_scalar(lambda m: -slope(m)[0], bounds=ends, method="bounded").x)
            seen.append((top, *slope(top)))
    return sorted(seen)


def _pair(slope: Integral) -> tuple[float, float]:
    return float(slope.value), float(slope.error)


def _divided(loss: PopulationLoss, m: float, found: InformationExponent) -> tuple[float, float]:
    """φ'(m)/m^(k−1), the coefficients before k being zero, and its error."""
    k = found.exponent
    a = loss.taylor(SUM)
    orders = np.arange(k, SUM + 1)
    weights = orders * m ** (orders - k)
    left = 0.0
    if m > 0:
        bound = loss.remainder(m, SUM)
        if not np.isfinite(bound):  # no bound is known: the slope itself
            value, error = _pair(loss.slope(m))
            return value / m ** (k - 1), error / m ** (k - 1)
        left = bound / m ** (k - 1)
    return float(a.value[k:] @ weights), float(a.error[k:] @ weights) + left


def _along_signal(loss: TeacherStudent, m: float) -> float:
    """E⟨∇ℓ, θ⟩² = (1 − m²) E[(2 g'(s) ξ)² ((g(s) − f(ms + σξ))² + E ε²)]."""
    student = loss.student.function

    def integrand(s: np.ndarray, g: np.ndarray, xi: np.ndarray, f: np.ndarray) -> np.ndarray:
        return np.asarray((2 * student.derivative(s) * xi) ** 2 * ((g - f) ** 2 + loss.noise))

    return (1 - m**2) * float(over_the_plane(loss.student, loss.link, m, integrand).value)


def _jumps(line: Line) -> np.ndarray:
    """Breaks at which a function is not continuous."""
    below, above = (line.function(line.breaks + side * 1e-8) for side in (-1, 1))
    return np.asarray(line.breaks[np.abs(above - below) > 1e-5 * line.norm])


def _cusps(line: Line) -> list[tuple[float, float]]:
    """Breaks b at which the slope grows like |z − b|^(−power), which quotients round off."""
    near, nearer = 1e-3, 1e-5
    found = []
    for place in map(float, line.breaks):
        for side in (-1, 1):
            x = place + side * np.array([0.0, near, nearer])
            value, *around = line.function(x)
            rises = np.abs(np.array(around) - value)
            if np.all(rises > 1e-7 * line.norm):  # flat, but for the error of the place
                power = 1 - float(np.log(rises[0] / rises[1]) / np.log(near / nearer))
                found.append((round(place, 9) + 0.0, power))
    return [(place, power) for place, power in found if power > CUSP]


def _has_moment(function: Function, order: float) -> bool:
    """Whether E|f(z)|^order settles."""

    def power(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(function(x)) ** (order / 2))

    try:
        line: Line = line_of("link", Function(function.name, power))
    except InputError:
        return False
    return bool(np.isfinite(line.norm))


def _is_loss(loss: object) -> None:
    if not isinstance(loss, PopulationLoss):
        raise _checks.InputError(
            f"loss={_checks.shown(loss)} is not allowed: loss must be a population loss, from "
            "teacher_student, online_pca or mixture_likelihood"
        )

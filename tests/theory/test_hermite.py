"""Hermite coefficients, population losses and information exponents, against closed forms."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermeval

import sgdlimits as sl
from sgdlimits.tasks import activations

HERMITE: Any = sl.theory.hermite
ORDER = 12
K = np.arange(ORDER + 1)
ROOTS = np.sqrt([float(math.factorial(k)) for k in K])


def h(k: int, x: float) -> float:
    """He_k(x)."""
    return float(hermeval(x, [0.0] * k + [1.0]))


def density(x: float) -> float:
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def of_step(x: float) -> np.ndarray:
    """Of 1(z > x): by parts h_{k−1}(x) times the density."""
    rest = [h(k - 1, x) * density(x) for k in K[1:]]
    return np.array([0.5 * math.erfc(x / math.sqrt(2)), *rest]) / ROOTS


def of_relu() -> np.ndarray:
    rest = [h(k - 2, 0.0) * density(0.0) for k in K[2:]]
    return np.array([density(0.0), 0.5, *rest]) / ROOTS


def of_power(p: int) -> np.ndarray:
    def one(k: int) -> float:
        if k > p or (p - k) % 2:
            return 0.0
        half = (p - k) // 2
        return math.factorial(p) / (2**half * math.factorial(half) * math.factorial(k))

    return np.array([one(int(k)) for k in K]) * ROOTS


def of_erf() -> np.ndarray:
    """Of erf(x/√2): by parts those of twice the density, E h_{k−1}(z) φ(z)."""
    values = [0.0]
    for k in K[1:]:
        n = (
            k - 1
        )  # E He_n(z) e^{−z²/2} = He_n coefficients of the density: (−1)^{n/2}(n−1)!!/2^{n/2}
        moment = 0.0 if n % 2 else (-1) ** (n // 2) * math.prod(range(1, n, 2)) / 2 ** (n / 2)
        values.append(2 * moment / math.sqrt(2 * math.pi) / math.sqrt(2))
    return np.array(values) / ROOTS


CLOSED: dict[str, tuple[Any, np.ndarray]] = {
    "relu": ("relu", of_relu()),
    "relu in JAX": (jax.nn.relu, of_relu()),
    "absolute value": (np.abs, 2 * of_relu() * (K != 1)),
    "sign": (np.sign, 2 * of_step(0.0) * (K % 2)),
    "jump elsewhere": (lambda z: 1.0 * (z > 0.3), of_step(0.3)),
    "jump in JAX": (lambda z: jnp.where(z > 0.3, 1.0, 0.0), of_step(0.3)),
    "erf": ("erf", of_erf()),
    "square": ("square", of_power(2)),
    "cube": (lambda z: z**3, of_power(3)),
    "tenth power": (lambda z: z**10, of_power(10)),
    "cosine": (np.cos, (K % 2 == 0) * (-1.0) ** (K // 2) * math.exp(-0.5) / ROOTS),
    "fast cosine": (
        lambda z: np.cos(10 * z),
        (K % 2 == 0) * (-1.0) ** (K // 2) * 10.0**K * math.exp(-50) / ROOTS,
    ),
    "exponential": (lambda z: np.exp(z / 2), math.exp(1 / 8) * 0.5**K / ROOTS),
    "steep exponential": (lambda z: np.exp(4 * z), math.exp(8) * 4.0**K / ROOTS),
    "nearly too fast": (
        lambda z: np.exp(z**2 / 5),
        np.where(K % 2, 0, (1 / 3) ** (K / 2) / math.sqrt(0.6))
        * ROOTS
        / [math.gamma(k / 2 + 1) for k in K],
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_coefficients_are_right_within_their_error(name: str) -> None:
    link, exact = CLOSED[name]
    u = HERMITE.coefficients(link, ORDER)
    norm = HERMITE.teacher_student(link).link.norm
    assert np.all(np.abs(u.value - exact) <= u.error)
    assert np.max(u.error) < 3e-12 * norm * 3 ** (ORDER / 2)  # not by being useless
    assert np.all(np.abs(u.value - exact) < 1e-13 * norm)


def test_printed_normalisation_is_wrong() -> None:
    """1/√(2πi) has modulus 1/√(2π) and makes real coefficients complex."""
    printed = complex(0, 2 * math.pi) ** -0.5 * math.sqrt(2 * math.pi)
    u = HERMITE.coefficients("relu", 1).value
    assert abs(u[1] - 0.5) < 1e-14 < abs(u[1] * printed - 0.5)


def test_rough_function_has_a_large_error() -> None:
    """And its error covers what changes if the function is moved by a little."""
    rough = HERMITE.coefficients(lambda z: np.sin(1 / (z - 0.01)), 3)
    moved = HERMITE.coefficients(lambda z: np.sin(1 / (z - 0.01 - 1e-9)), 3)
    assert np.max(rough.error) > 1e-8
    assert np.all(np.abs(rough.value - moved.value) < rough.error + moved.error + 1e-8)


ARCCOS: Callable[[float], tuple[float, float]] = lambda m: (  # noqa: E731
    1 - (math.sqrt(1 - m * m) + m * (math.pi - math.acos(m))) / math.pi,
    -(math.pi - math.acos(m)) / math.pi,
)
LOSSES: dict[str, tuple[Any, Callable[[float], tuple[float, float]]]] = {
    "square": ("square", lambda m: (4 * (1 - m * m), -8 * m)),
    "relu": ("relu", ARCCOS),
    "relu in JAX": (jax.nn.relu, ARCCOS),
    "sign": (
        np.sign,
        lambda m: (2 - 4 / math.pi * math.asin(m), -4 / math.pi / math.sqrt(1 - m * m)),
    ),
    "erf": (
        "erf",
        lambda m: (
            4 / math.pi * (math.pi / 6 - math.asin(m / 2)),
            -4 / math.pi / math.sqrt(4 - m * m),
        ),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("overlap", [-0.7, 0.0, 0.3, 0.95])
def test_population_loss_and_slope(name: str, overlap: float) -> None:
    link, exact = LOSSES[name]
    loss = HERMITE.teacher_student(link)
    value, slope = loss.value(overlap), loss.slope(overlap)
    expected = exact(overlap)
    assert abs(value.value - expected[0]) <= value.error < 1e-10
    assert abs(slope.value - expected[1]) <= slope.error + 1e-15 < 1e-9


@pytest.mark.parametrize("overlap", [-0.7, 0.3, 0.9])
def test_plane_and_series_agree(overlap: float) -> None:
    """Within what the series says that it leaves out, and not with the printed Φ of f(⟨a, x⟩)."""
    loss = HERMITE.teacher_student(
        lambda z: np.maximum(z - 0.3, 0.0), lambda z: 1.0 * (z > -0.4), noise=0.5
    )
    plane, series = loss.value(overlap), loss.series(overlap)
    assert abs(plane.value - series.value) <= plane.error + series.error < 1e-9
    short = loss.series(overlap, 8)
    assert 1e-9 < abs(plane.value - short.value) <= short.error
    printed = loss.value(1.0)  # both functions of the same field
    assert abs(printed.value - plane.value) > 1e-3


def test_ends_of_the_sphere() -> None:
    loss = HERMITE.teacher_student("relu", noise=0.25)
    assert loss.value(1.0).value == pytest.approx(0.25, abs=1e-12)
    assert loss.value(-1.0).value == pytest.approx(1.25, abs=1e-12)


@pytest.mark.parametrize("weight", [0.5, 0.8, 0.1])
def test_mixture(weight: float) -> None:
    """Slope and series against the value."""
    loss = HERMITE.mixture_likelihood(weight)
    for m in (0.2, 0.7):
        quotient = (loss.value(m + 1e-4).value - loss.value(m - 1e-4).value) / 2e-4
        assert loss.slope(m).value == pytest.approx(quotient, abs=1e-8)
        series = np.polyval(loss.taylor(80).value[::-1], m)
        assert series == pytest.approx(float(loss.value(m).value), abs=1e-9)


def third(z: Any) -> Any:
    return (z**3 - 3 * z) / math.sqrt(6)


def fourth(z: Any) -> Any:
    return z**4 - 6 * z**2 + 3


@pytest.mark.parametrize(
    ("link", "student", "exponent"),
    [
        ("erf", None, 1),
        ("relu", None, 1),
        ("square", None, 2),
        (np.cos, "square", None),
        (np.cos, lambda z: -np.abs(z), 2),
        (third, None, 3),
        (third, lambda z: 0.1 * third(z), 3),
        (np.sign, third, None),
        (fourth, None, 4),
        (fourth, "relu", None),
        ("erf", "square", None),
        (lambda z: z**2 - 0.9 * fourth(z), "square", 2),
    ],
)
def test_exponents(link: Any, student: Any, exponent: int | None) -> None:
    found = HERMITE.information_exponent(link, student)
    if exponent is None:
        assert found.status in ("negative", "flat")
        assert "undefined" in repr(found)
        with pytest.raises(sl.InputError, match=r"^exponent='(negative|flat)' is not allowed: inf"):
            found.samples(100)
    else:
        assert found.exponent == exponent
        assert found.status == "defined"
        product = found.coefficients.value[exponent]
        assert repr(found).startswith(f"information exponent {exponent} of link")
        assert product < 0


def test_signs_decide() -> None:
    """u₂(cos) < 0: with the square SGD is pushed back, with its negative it is not."""
    pushed_back = HERMITE.information_exponent(np.cos, "square")
    assert (pushed_back.status, pushed_back.order) == ("negative", 2)
    assert "must be negative" in repr(pushed_back)


def test_zero_small_and_undecided() -> None:
    zero = HERMITE.information_exponent(lambda z: 1e-17 * z + z**2)
    assert zero.exponent == 2
    small = HERMITE.information_exponent(lambda z: 1e-6 * z + z**2)
    assert small.exponent == 1
    assert "below dimension 1.6e+25 the coefficient of m^2" in repr(small)
    rough = HERMITE.information_exponent(
        lambda z: np.sin(1 / (z - 0.01)) - 0.5164381 * z, lambda z: z + third(z), order=3
    )
    assert (rough.status, rough.order) == ("undecided", 1)
    assert "does not tell it from zero" in repr(rough)
    with pytest.raises(sl.InputError, match="exponent='undecided'"):
        _ = rough.exponent


@pytest.mark.parametrize(
    ("loss", "exponent"),
    [
        (HERMITE.online_pca(0.5), 2),
        (HERMITE.mixture_likelihood(0.5), 2),
        (HERMITE.mixture_likelihood(0.8), 1),
        (HERMITE.mixture_likelihood(0.2), 1),
    ],
)
def test_pca_and_mixture(loss: Any, exponent: int) -> None:
    assert HERMITE.information_exponent(loss).exponent == exponent
    assert HERMITE.fisher_consistent(loss).holds
    assert HERMITE.moment_bounds(loss).holds


def test_no_signal_is_flat() -> None:
    assert HERMITE.information_exponent(HERMITE.online_pca(0.0)).status == "flat"


def test_critical_samples() -> None:
    ratios = [HERMITE.critical_samples(1000, k).ratio for k in (1, 2, 3, 4)]
    assert ratios == pytest.approx([1.0, math.log(1000), 1e3, 1e6])
    assert HERMITE.critical_samples(1000, 100).ratio == pytest.approx(1e294)
    assert HERMITE.critical_samples(1000, 1000).samples == math.inf
    assert repr(HERMITE.critical_samples(100, 12)).startswith("of the order of N¹¹ = 1e+22 samples")


# Assumptions -------------------------------------------------------------------------------------


def test_gradient_flow_stops_where_assumption_b_fails() -> None:
    """φ' = −4m + 48m³·(0.9·0.5)/… changes its sign inside (0, 1), and flow ends there."""

    def link(z: Any) -> Any:
        return z**2 - 0.9 * fourth(z)

    def student(z: Any) -> Any:
        return z**2 + 0.5 * fourth(z)

    loss = HERMITE.teacher_student(link, student)
    told = HERMITE.fisher_consistent(loss)
    # u₂u₂ = 2, u₄u₄ = −0.45·24: φ' = −8m + 86.4 m³
    zero = math.sqrt(8 / 86.4)
    assert told.holds is False
    assert told.where is not None
    assert zero <= told.where < zero + 0.5 / 10
    assert "fails at m = 0.3" in repr(told)
    m = 1e-3
    for _ in range(4000):
        m -= 0.005 * (1 - m**2) * float(np.polyval([86.4, 0, -8.0, 0], m))
    assert m == pytest.approx(zero, abs=1e-6)
    assert loss.slope(zero).value == pytest.approx(0.0, abs=1e-9)
    assert HERMITE.fisher_consistent(HERMITE.teacher_student(link, "square")).holds


@pytest.mark.parametrize("overlap", [0.31, 0.62, 0.77, 0.93])
@pytest.mark.parametrize("height", [1e-3, 1e-5])
def test_assumption_b_is_seen_to_fail_between_points_of_a_grid(
    overlap: float, height: float
) -> None:
    """φ' = height − (m − overlap)²: positive on less than a tenth of (0, 1)."""

    def second(z: Any) -> Any:
        return (z**2 - 1) / math.sqrt(2)

    def link(z: Any) -> Any:
        return z + second(z) + third(z)

    def student(z: Any) -> Any:
        u = (overlap**2 - height) / 2, -overlap / 2, 1 / 6
        return u[0] * z + u[1] * second(z) + u[2] * third(z)

    loss = HERMITE.teacher_student(link, student)
    assert loss.slope(overlap).value == pytest.approx(height, rel=1e-6)
    told = HERMITE.fisher_consistent(loss)
    assert told.holds is False
    assert told.where == pytest.approx(overlap, abs=2 * math.sqrt(height))


def test_moment_bounds() -> None:
    for link in ("erf", "relu", third):
        assert HERMITE.moment_bounds(HERMITE.teacher_student(link)).holds
    fast = HERMITE.moment_bounds(HERMITE.teacher_student("erf", lambda z: np.exp(z**2 / 7)))
    assert fast.holds is False
    jump = HERMITE.moment_bounds(HERMITE.teacher_student("relu", np.sign))
    assert jump.holds is False
    assert "jumps at z =" in repr(jump)
    between = HERMITE.moment_bounds(HERMITE.teacher_student(lambda z: np.exp(z**2 / 10), "erf"))
    assert between.holds is None
    assert "is not decided" in repr(between)


@pytest.mark.parametrize(
    ("power", "holds"), [(0.4, False), (0.7, False), (0.8, None), (0.86, None), (0.95, True)]
)
@pytest.mark.parametrize("place", [0.0, 0.3])
def test_moments_of_slopes_at_a_cusp(power: float, holds: bool | None, place: float) -> None:
    """|z|^r has a slope with moments of order q for q(1 − r) < 1: of order 4 up to r > ¾."""
    loss = HERMITE.teacher_student("relu", lambda z: np.abs(z - place) ** power)
    told = HERMITE.moment_bounds(loss)
    assert told.holds is holds
    assert holds or f"|z − {place:.4g}|" in repr(told)


def test_noise_along_the_signal() -> None:
    """E⟨∇H, θ⟩² for squares at m = 0: 16 E[s²(s² − a²)²a²] = 16·(15·1 − 2·9 + 15) = 192."""
    told = HERMITE.moment_bounds(HERMITE.teacher_student("square"))
    assert told.constant == pytest.approx(192.0)


# The lower bound ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_lower_bound(exponent: int, rate: float) -> None:
    """Below the sequence that is pushed least; near it for small steps."""
    sequence = [0.2]
    while sequence[-1] < 1 and len(sequence) < 200_000:
        sequence.append(sequence[-1] + rate * sequence[-1] ** (exponent - 1))
    steps = np.arange(len(sequence))
    bound = HERMITE.search_lower_bound(0.2, rate, steps, exponent)
    assert np.all(bound[:-1] <= np.array(sequence[:-1]) * (1 + 1e-12))
    assert bound[-1] <= 1
    if rate == 1e-3:
        reached = int(np.argmax(HERMITE.search_lower_bound(0.2, rate, steps * 2, exponent) >= 0.9))
        assert 2 * reached < 1.05 * int(np.argmax(np.array(sequence) >= 0.9))


def test_printed_lower_bound_is_none() -> None:
    """It is above the sequence for k = 3, and takes k − 2 times too long for k > 3."""

    def printed(a: float, b: float, t: int, k: int) -> float:
        return a / (1 - b * a ** (k - 2) * t) ** (1 / (k - 2))

    after = 0.2 + 0.3 * 0.2**2
    assert printed(0.2, 0.3, 1, 3) > after * (1 + 1e-3)
    assert HERMITE.search_lower_bound(0.2, 0.3, 1, 3) <= after
    m, t = 0.1, 0
    while m < 0.9:
        m, t = m + 1e-2 * m**3, t + 1
    assert printed(0.1, 1e-2, t, 4) < 0.15  # k = 4: far from what has been reached
    assert HERMITE.search_lower_bound(0.1, 1e-2, int(1.03 * t), 4) > 0.85


# Wrong input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (3, "be one of 'erf', 'relu'"),
        ("sigmoid", "be one of 'erf', 'relu'"),
        (lambda z: z[:2], r"it maps shape \(3,\) to float64 of shape \(2,\)"),
        (lambda z: z[:3], "acts elementwise; its values at .* change if it is given 7 points"),
        (lambda z: z - z.mean(), "acts elementwise; its values at .* change"),
        (lambda z: z + 1j, "returns real numbers"),
        (lambda z: z.nothing, "it raises AttributeError"),
        (lambda z: np.exp(z**2 / 2), "have a finite norm"),
        (lambda z: np.exp(z**2 / 4), "does not decay towards"),
        (lambda z: 1 / z, "its integral does not settle|no finite number"),
        (np.log, "no finite number"),
    ],
)
def test_wrong_links(link: Any, words: str) -> None:
    with pytest.raises(sl.InputError, match=rf"^link=.* is not allowed: link must.*({words})"):
        HERMITE.coefficients(link)
    with pytest.raises(sl.InputError, match=rf"^student=.* is not allowed: .*({words})"):
        HERMITE.information_exponent("erf", link)


def test_wrong_numbers() -> None:
    loss = HERMITE.teacher_student("erf")
    for call, words in (
        (lambda: loss.value(1.1), r"overlap=1.1 is not allowed: .* in \[−1, 1\]"),
        (lambda: loss.slope(1.0), r"overlap=1.0 is not allowed: .* in \(−1, 1\)"),
        (lambda: loss.series(0.5, 501), "order=501 is not allowed"),
        (lambda: HERMITE.coefficients("erf", 501), "order=501 is not allowed"),
        (lambda: HERMITE.critical_samples(1, 2), "dim=1 is not allowed"),
        (lambda: HERMITE.critical_samples(10, 0), "exponent=0 is not allowed"),
        (lambda: HERMITE.information_exponent(loss, "erf"), "student='erf' is not allowed"),
        (lambda: HERMITE.search_lower_bound(0.1, 0.1, [-1], 2), r"steps=\[-1.0\] is not allowed"),
        (lambda: HERMITE.mixture_likelihood(1.0), "weight=1.0 is not allowed"),
        (lambda: HERMITE.online_pca(-1.0), "snr=-1.0 is not allowed"),
        (lambda: HERMITE.moment_bounds("erf"), "loss='erf' is not allowed"),
    ):
        with pytest.raises(sl.InputError, match=words):
            call()


def test_the_names_are_those_of_the_tasks() -> None:
    """Theory may not ask the tasks; the functions are the same."""
    x = np.linspace(-3, 3, 13)
    for name, known in activations._KNOWN.items():
        line = HERMITE.teacher_student(name).link
        with jax.enable_x64(True):
            assert np.allclose(line.function(x), known.function(jnp.asarray(x)), atol=1e-14)
            slope = jax.vmap(jax.grad(known.function))(jnp.asarray(x))
        kept = x != 0
        assert np.allclose(line.function.derivative(x)[kept], slope[kept], atol=1e-14)

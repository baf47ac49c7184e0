"""Kernels of infinite width: closed forms, series and brute force; the flow that they drive."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import erf

import sgdlimits as sl
from sgdlimits.gaussian import gauss_hermite
from sgdlimits.theory import ntk

X = np.random.default_rng(0).standard_normal((6, 4))
Z = np.random.default_rng(1).standard_normal((3, 4))
CLOSED = {"relu": jax.nn.relu, "erf": lambda z: jax.scipy.special.erf(z / jnp.sqrt(2.0))}


def test_reference() -> None:
    """Σ⁽²⁾, K⁽²⁾, Σ⁽³⁾, K⁽³⁾ of relu at angle π/3; the factor √2 of others fails."""
    x = np.sqrt(2) * np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
    found = [estimate.value[0, 1] for depth in (2, 3) for estimate in ntk.kernels(x, depth=depth)]
    expected = [0.30449889052211476, 0.4711655571887815, 0.17097641272467654, 0.3378698902808709]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert abs(2 * found[0] - expected[0]) > 0.3


def brute_force(a: np.ndarray, b: np.ndarray, depth: int, bias: float) -> tuple[float, float]:
    """tanh by the two-dimensional rule, one pair at a time."""
    rule = gauss_hermite(2, 200)
    C = np.array([[a @ a, a @ b], [a @ b, b @ b]]) / len(a) + bias**2
    K = C[0, 1]
    for _ in range(depth - 1):
        u, v = np.linalg.cholesky(C) @ rule.nodes.T
        f, g = np.tanh(u), np.tanh(v)
        slopes = rule.weights @ ((1 - f**2) * (1 - g**2))
        C = np.array([[f * f, f * g], [f * g, g * g]]) @ rule.weights + bias**2
        K = K * slopes + C[0, 1]
    return C[0, 1], K


@pytest.mark.parametrize(("depth", "bias"), [(1, 0.5), (2, 0.0), (4, 0.3)])
def test_series_is_the_double_integral(depth: int, bias: float) -> None:
    found = ntk.kernels(X, Z, depth=depth, activation=jnp.tanh, bias=bias)
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            pair = brute_force(x, z, depth, bias)
            for (value, error), number in zip(found, pair, strict=True):
                assert value[i, j] == pytest.approx(number, abs=1e-8)
                assert abs(error[i, j]) < 1e-8


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("depth", [2, 4])
def test_series_is_the_closed_form_within_its_error(name: str, depth: int) -> None:
    """Exponentially for erf; a kink is seen in the error, which covers it."""
    exact = ntk.kernels(X, depth=depth, activation=name, bias=0.2)
    series = ntk.kernels(X, depth=depth, activation=CLOSED[name], bias=0.2)
    for one, other in zip(exact, series, strict=True):
        apart = np.abs(one.value - other.value)
        assert np.all(apart <= other.error + 1e-12)
        assert np.all(one.error == 0)
        assert apart.max() < (1e-12 if name == "erf" else 1e-5)
    assert (series.ntk.error.max() > 1e-6) == (name == "relu")


@pytest.mark.parametrize("activation", ["relu", "erf", jnp.tanh])
def test_kernels_are_kernels(activation: Any) -> None:
    """Symmetric, positive, the same for pairs as for all; NTK exceeds NNGP."""
    found = ntk.kernels(X, depth=3, activation=activation, bias=0.1)
    crossed = ntk.kernels(X, Z, depth=3, activation=activation, bias=0.1)
    both = ntk.kernels(np.vstack([X, Z]), depth=3, activation=activation, bias=0.1)
    for one, cross, whole in zip(found, crossed, both, strict=True):
        np.testing.assert_allclose(one.value, one.value.T, atol=1e-14)
        assert np.linalg.eigvalsh(one.value)[0] > 0
        np.testing.assert_allclose(whole.value[:6, 6:], cross.value, atol=1e-12)
    assert np.linalg.eigvalsh(found.ntk.value - found.nngp.value)[0] > 0


def test_extreme_inputs() -> None:
    """Zero, parallel, opposite, tiny and huge inputs."""
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [-1.0, -1.0], [1e-8, 0], [1e6, 0]])
    relu = ntk.kernels(rows, depth=2)
    assert np.all(relu.ntk.value[0] == 0)
    assert relu.nngp.value[1, 2] == pytest.approx(1.0)  # ⟨x, x′⟩/(2d)
    assert relu.nngp.value[1, 3] == pytest.approx(0.0, abs=1e-15)
    assert relu.ntk.value[5, 5] == pytest.approx(5e11)  # ½‖x‖²/d twice
    smooth = ntk.kernels(rows[:5], depth=3, activation=lambda z: jnp.cos(z) + z)
    assert np.all(np.isfinite(smooth.ntk.value))
    # variance 0: both layers before the last are constants, 1 and then E cos² … of one number
    first = ntk.kernels([[0.0, 0.0]], depth=2, activation=lambda z: jnp.cos(z) + z)
    assert first.nngp.value[0, 0] == pytest.approx(1.0, abs=1e-12)
    deep = ntk.kernels(X, depth=60, activation="erf", bias=0.1)
    assert np.all(np.isfinite(deep.ntk.value))


@pytest.mark.parametrize("size", [300.0, 1e3])
def test_units_that_are_too_steep_for_the_nodes_are_refused(size: float) -> None:
    """All nodes miss where tanh bends, and halving their number changes nothing."""
    with pytest.raises(ValueError, match=r"^activation=.* nodes do not resolve it"):
        ntk.kernels([[size]], depth=2, activation=jnp.tanh)
    assert ntk.kernels([[size]], depth=1, activation=jnp.tanh).ntk.value == size**2


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_closed_forms_of_inputs_that_are_nearly_parallel(activation: str) -> None:
    """By 1 − θ/π and such, where 1 − cos θ cancels: slopes were off by 1e-9, or 5 % at 3e7."""
    for size, apart in ((1.0, 1e-9), (1.0, 1e-6), (1e6, 1e-9), (3e7, 1e-7), (1e60, 1e-7)):
        angle = apart
        rows = np.sqrt(2) * size * np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
        found = ntk.kernels(rows, depth=2, activation=activation)
        if activation == "relu":
            lack = size**2 * angle / (2 * np.pi)
            gap = found.ntk.value[0, 0] - found.ntk.value[0, 1]
            assert gap == pytest.approx(lack, rel=1e-5, abs=4e-16 * size**2)
        else:
            rest = np.sqrt(1 + 2 * size**2 + (size**2 * np.sin(angle)) ** 2)
            slope = found.ntk.value[0, 1] - found.nngp.value[0, 1]
            assert slope == pytest.approx(2 / np.pi * size**2 / rest, rel=1e-7)


def test_inputs_that_are_nearly_the_same_have_kernels_that_learn() -> None:
    """The kernel stays positive, and late predictions do not depend on the doubled inputs."""
    rng = np.random.default_rng(3)
    rows, asked = rng.standard_normal((6, 4)), rng.standard_normal((2, 4))
    near = np.vstack([rows, rows[:3] + 1e-9 * rng.standard_normal((3, 4))])
    expected = None
    for some in (rows, near):
        kernel, cross = (
            ntk.kernels(*pair, depth=3, bias=0.1).ntk.value for pair in ((some,), (asked, some))
        )
        found = ntk.predictions(kernel, cross, some[:, 0], times=[1e6])
        np.testing.assert_allclose(found, found if expected is None else expected, atol=1e-6)
        expected = found


def test_relu_kernels_are_homogeneous() -> None:
    plain = ntk.kernels(X, Z, depth=3, bias=0.3).ntk.value
    for unit in (2.0**-480, 2.0**480):
        found = ntk.kernels(unit * X, unit * Z, depth=3, bias=0.3 * unit).ntk.value
        np.testing.assert_allclose(found, unit**2 * plain, rtol=1e-13)
    for size, name in ((1e80, "erf"), (1e155, "relu")):
        with pytest.raises(ValueError, match=r"^inputs=.* overflow"):
            ntk.kernels([[size, 0.0]], depth=2, activation=name)


def test_a_singular_kernel_learns_nothing_of_what_it_does_not_see() -> None:
    """A duplicated input, late: rounding in the null space must not grow with time."""
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
    kernel = ntk.kernels(x, depth=3).ntk.value
    cross = ntk.kernels(np.array([[0.2, 0.9]]), x, depth=3).ntk.value
    found = ntk.predictions(kernel, cross, [1.0, 1.0, -1.0], times=[1e6, 1e18])[:, 0]
    exact = (cross @ np.linalg.pinv(kernel) @ np.array([1.0, 1.0, -1.0]))[0]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def test_steep_units_are_known_to_within_their_error() -> None:
    """At a standard deviation of s, against E tanh² + s² E(1 − tanh²)² on a fine grid."""
    z = np.linspace(-12, 12, 400_001)
    density = np.exp(-(z**2) / 2) / np.sum(np.exp(-(z**2) / 2))
    for size, precision in ((5.0, 1e-12), (15.0, 1e-8), (60.0, 0.2)):
        f = np.tanh(size * z)
        found = ntk.kernels([[size]], depth=2, activation=jnp.tanh).ntk
        true = density @ f**2 + size**2 * (density @ (1 - f**2) ** 2)
        assert abs(found.value[0, 0] - true) < found.error[0, 0] + 1e-12
        assert found.error[0, 0] < precision * true


def test_rests_are_bounded_where_they_alternate() -> None:
    """At nearly opposite inputs twice as many terms change less than what is left out."""
    found = ntk.kernels([[8.0, 0.0]], [[-8.0, 8e-4]], depth=2, activation=exact_gelu).ntk
    z = np.linspace(-10, 10, 1001)
    weights = np.exp(-(z**2) / 2)
    weights /= weights.sum()
    cosine, length = -1 / np.sqrt(1 + 1e-8), 8 / np.sqrt(2)
    u, v = z[:, None], cosine * z[:, None] + np.sqrt(1 - cosine**2) * z
    (f, df), (g, dg) = gelu(length * u), gelu(length * v)
    true = weights @ (f * g - length**2 * df * dg) @ weights
    assert abs(found.value[0, 0] - true) < found.error[0, 0]


def exact_gelu(z: jax.Array) -> jax.Array:
    return jax.nn.gelu(z, approximate=False)


def gelu(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    share = (1 + erf(z / np.sqrt(2))) / 2
    return z * share, share + z * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def test_erf_by_hand() -> None:
    value = ntk.kernels([[1.0]], depth=2, activation="erf").nngp.value[0, 0]
    z = np.linspace(-12, 12, 100_001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    assert value == pytest.approx(np.trapezoid(erf(z / np.sqrt(2)) ** 2 * density, z), abs=1e-10)


def test_predictions_solve_the_flow() -> None:
    """Against an ODE solver; with ½ in place of 1/n, or a minus, it is something else."""
    rng = np.random.default_rng(3)
    every = ntk.kernels(np.vstack([X, Z]), depth=3).ntk.value
    K, cross, y, start = (
        every[:6, :6],
        every[6:, :6],
        rng.standard_normal(6),
        rng.standard_normal(9),
    )
    times = np.array([0.0, 0.5, 5.0, 200.0])

    def motion(factor: float) -> np.ndarray:
        solution = solve_ivp(
            lambda _, f: factor * every[:, :6] @ (y - f[:6]), (0, 200), start, "LSODA", times,
            rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        return np.asarray(solution.y.T)[:, 6:]

    found = ntk.predictions(K, cross, y, times=times, start=start[:6], cross_start=start[6:])
    np.testing.assert_allclose(found, motion(1 / 6), atol=1e-7)
    assert np.abs(found - motion(0.5))[1].max() > 0.05
    with np.errstate(all="ignore"):
        early = start[6:] - 0.5 / 6 * cross @ (y - start[:6])  # of the printed sign
    assert np.abs(found[1] - early).max() > 0.05
    end = ntk.predictions(K, cross, y, times=[np.inf], start=start[:6], cross_start=start[6:])
    direct = start[6:] + cross @ np.linalg.solve(K, y - start[:6])
    np.testing.assert_allclose(end[0], direct, atol=1e-9)


def test_singular_kernels_learn_what_they_can() -> None:
    """A point given twice with two targets: their mean."""
    found = ntk.predictions([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0]], [0.0, 2.0], times=[1e6])
    assert found[0, 0] == pytest.approx(1.0)
    with pytest.raises(sl.InputError, match="times must be finite for a singular kernel"):
        ntk.predictions([[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0]], [0.0, 2.0], times=[np.inf])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 0}, "depth=0 is not allowed: depth must be an integer >= 1"),
        ({"bias": -1.0}, "bias=-1.0"),
        ({"activation": "gelu"}, "activation='gelu' is not allowed: .* 'relu', 'erf'"),
        ({"activation": lambda z: jnp.exp(z**2)}, "must have, with its derivative, a finite sec"),
        ({"activation": lambda z: 1 / z}, "a finite second moment"),
        ({"activation": lambda z: jnp.log(z)}, "a finite second moment"),
        ({"activation": jnp.sign}, "activation must be continuous"),
        ({"activation": lambda z: jnp.sum(z)}, "activation must act entry by entry"),
        ({"activation": np.linalg.norm}, "activation must be a function of JAX arrays"),
        ({"inputs": [1.0, 2.0]}, r"inputs has shape \(2,\)"),
        ({"others": [[1.0]]}, r"others has shape \(1, 1\), .* rows of length 4"),
    ],
)
def test_wrong_input(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        ntk.kernels(**({"inputs": X} | arguments))  # type: ignore[arg-type]


def test_kinks_away_from_zero_are_allowed() -> None:
    """The grid that looks for jumps is fine enough."""
    found = ntk.kernels(X, depth=3, activation=lambda z: jax.nn.relu(z - 0.5))
    assert 0 < found.ntk.error.max() < 0.2 * found.ntk.value.max()


def test_wrong_flows() -> None:
    with pytest.raises(sl.InputError, match="kernel must be positive semidefinite"):
        ntk.predictions(-np.eye(2), np.eye(2), [0.0, 1.0], times=[1.0])
    with pytest.raises(sl.InputError, match=r"cross has shape \(2, 1\)"):
        ntk.predictions(np.eye(2), [[1.0], [1.0]], [0.0, 1.0], times=[1.0])
    with pytest.raises(sl.InputError, match="times must be >= 0"):
        ntk.predictions(np.eye(2), np.eye(2), [0.0, 1.0], times=[-1.0])

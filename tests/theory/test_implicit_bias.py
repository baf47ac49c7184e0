"""Max margin against a solver of others, proofs that there is none, and the rest of the flow."""

import numpy as np
import pytest
from sklearn.svm import SVC  # type: ignore[import-untyped]

import sgdlimits as sl
from sgdlimits.theory import implicit_bias


def separable(seed: int, samples: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, dim))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.3 * y
    return X, y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("samples", "dim"), [(1, 3), (40, 2), (60, 7), (20, 50)])
def test_max_margin_is_that_of_a_support_vector_machine(seed: int, samples: int, dim: int) -> None:
    """Mirrored data make it go through the origin; the optimality conditions are the proof."""
    X, y = separable(seed, samples, dim)
    found = implicit_bias.max_margin(X, y)
    machine = SVC(kernel="linear", C=1e10, tol=1e-10).fit(
        np.vstack([X, -X]), np.concatenate([y, -y])
    )
    np.testing.assert_allclose(found.weights, machine.coef_[0], rtol=1e-4, atol=1e-5)
    assert found.residual < 1e-12
    products = y * (X @ found.weights)
    assert products.min() == pytest.approx(1, abs=1e-12)
    assert np.all(found.multipliers >= 0)
    np.testing.assert_allclose(found.multipliers @ (y[:, None] * X), found.weights, atol=1e-10)
    assert found.margin == pytest.approx(1 / np.linalg.norm(found.weights))
    assert set(np.flatnonzero(found.multipliers)) <= set(found.support)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e140])
def test_scales(scale: float) -> None:
    X, y = separable(0, 30, 4)
    one, other = implicit_bias.max_margin(X, y), implicit_bias.max_margin(scale * X, y)
    np.testing.assert_allclose(other.weights * scale, one.weights, rtol=1e-9)
    assert np.array_equal(other.support, one.support)
    assert other.residual < 1e-12


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-8])
def test_narrow_margins(gap: float) -> None:
    """Two points that are almost opposite."""
    found = implicit_bias.max_margin([[1.0, 0.0], [1.0, gap]], [1.0, -1.0])
    np.testing.assert_allclose(found.weights, [1.0, -2 / gap], rtol=1e-6)
    assert found.residual < 1e-6


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        ([[1.0, 0.0], [1.0, 0.0]], [1, -1]),  # a point with both labels
        ([[0.0, 0.0]], [1]),
        ([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], [1, 1, -1, -1]),  # XOR
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1, 1, 1]),  # weakly separable only
        (np.random.default_rng(0).standard_normal((200, 5)), [1, -1] * 100),
    ],
)
def test_data_that_are_not_separable_have_a_certificate(
    features: np.ndarray, labels: list[float]
) -> None:
    signed = np.array(labels)[:, None] * np.array(features)
    u = implicit_bias.certificate(features, labels)
    assert u is not None
    assert np.all(u >= 0)
    assert u.sum() == pytest.approx(1)
    assert np.linalg.norm(u @ signed) < 1e-12
    assert np.sum(u > 0) <= signed.shape[1] + 1  # Carathéodory
    for function in (implicit_bias.max_margin, implicit_bias.offset):
        with pytest.raises(sl.InputError, match=r"labels must be separable .* y\[.* = 0"):
            function(features, labels)


@pytest.mark.parametrize("seed", range(20))
def test_exactly_one_of_separator_and_certificate(seed: int) -> None:
    """At the number of points where half of all data are separable (Cover)."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((10, 5)), rng.choice([-1.0, 1.0], 10)
    u = implicit_bias.certificate(X, y)
    if u is None:
        assert np.min(y * (X @ implicit_bias.max_margin(X, y).weights)) > 0.999
    else:
        assert np.linalg.norm(u @ (y[:, None] * X)) < 1e-12


def test_the_rest_solves_its_equation() -> None:
    """With the 1/n of the loss; without it, as printed, ŵ log n is missing."""
    for seed in range(5):
        X, y = separable(seed, 30, 4)
        found, rest = implicit_bias.max_margin(X, y), implicit_bias.offset(X, y)
        held = (y[:, None] * X)[found.support]
        forces = np.exp(-held @ rest)
        np.testing.assert_allclose(forces @ held / 30, found.weights, rtol=1e-7, atol=1e-7)
        assert np.linalg.norm(forces @ held - found.weights) > 1
        printed = rest + found.weights * np.log(30)
        np.testing.assert_allclose(
            np.exp(-held @ printed) @ held, found.weights, rtol=1e-7, atol=1e-7
        )
        span = np.linalg.svd(held, full_matrices=False)[2]
        np.testing.assert_allclose(span.T @ (span @ rest), rest, atol=1e-10)


def test_support_vectors_that_are_dependent() -> None:
    """Points given twice share their force: half of it each."""
    X, y = [[2.0, 0.0], [0.0, -1.0]], [1.0, -1.0]
    once = implicit_bias.offset(X, y)
    np.testing.assert_allclose(implicit_bias.offset(X + X, y + y), once, atol=1e-9)
    corners = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    rest = implicit_bias.offset(corners, [1, 1, -1, -1])
    np.testing.assert_allclose(rest, [0.0, 0.0], atol=1e-9)  # e^0 (1, 0) = ŵ


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_the_rest_of_narrow_and_of_scaled_data(gap: float, scale: float) -> None:
    """Two supports of multiplier 1/(2 gap²) each, and a third row: gap·w̃₂ = −log(3/(2 gap²))."""
    X = np.array([[1.0, gap], [-1.0, gap], [0.5, 2 * gap]]) * scale
    rest = implicit_bias.offset(X, [1, 1, 1]) * scale
    expected = -(np.log(1.5) - 2 * np.log(gap) - 2 * np.log(scale)) / gap
    assert rest[1] == pytest.approx(expected, rel=1e-7)
    assert abs(rest[0]) < 1e-6


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_data_whose_squares_are_no_numbers_are_told(scale: float) -> None:
    """They are separable, which 1e-200 was denied."""
    for function in (implicit_bias.max_margin, implicit_bias.certificate, implicit_bias.offset):
        with pytest.raises(sl.InputError, match="features must have a largest entry between"):
            function([[2.0 * scale, 0.0], [0.0, -scale]], [1, -1])


def test_support_without_a_force_is_told() -> None:
    """The second point lies on the margin of the first alone."""
    with pytest.raises(sl.InputError, match="features must have support vectors with positive"):
        implicit_bias.offset([[1.0, 0.0], [1.0, 1.0]], [1, 1])


def test_nearest_interpolant() -> None:
    rng = np.random.default_rng(0)
    X, y, start = rng.standard_normal((5, 12)), rng.standard_normal(5), rng.standard_normal(12)
    nearest = implicit_bias.nearest_interpolant(X, y, start)
    np.testing.assert_allclose(X @ nearest, y, atol=1e-12)
    kernel = np.linalg.svd(X)[2][5:]
    np.testing.assert_allclose(kernel @ nearest, kernel @ start, atol=1e-12)
    np.testing.assert_allclose(implicit_bias.nearest_interpolant(X, y), np.linalg.pinv(X) @ y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0], [2.0]], [1.0, 0.0]), r"labels=.* labels must be 1 or −1"),
        (([[1.0], [2.0]], [1.0]), r"labels has shape \(1,\)"),
        (([1.0, 2.0], [1.0, 1.0]), r"features has shape \(2,\)"),
        ((np.empty((0, 2)), []), r"features has shape \(0, 2\)"),
        (([[np.inf]], [1.0]), "features=.* must be finite"),
    ],
)
def test_wrong_input(arguments: tuple[object, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        implicit_bias.max_margin(*arguments)


def test_a_margin_in_words() -> None:
    words = repr(implicit_bias.max_margin([[2.0, 0.0], [0.0, -1.0]], [1, -1]))
    assert words.startswith("margin 0.894427 with 2 support vectors (optimality conditions hold")

"""Estimators of near points: they interpolate, are stable, and have the risk of theory."""

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.lectures import smoothing
from sgdlimits.theory import nadaraya_watson, nearest_neighbours


def away(samples: xr.DataArray, expected: float) -> float:
    """Standard errors from the mean to what is expected."""
    error = float(samples.std(ddof=1)) / np.sqrt(samples.size)
    return abs(float(samples.mean()) - expected) / error


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 3)), rng.standard_normal(60)


def test_every_label_is_interpolated(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    smooth = smoothing.NadarayaWatson(X, y, bandwidth=1.5, exponent=1.4)
    assert np.array_equal(smooth(X), y)
    for step in (1e-300, 1e-100, 1e-13):
        near = smooth(X + step)
        assert np.all(np.isfinite(near))
        assert np.max(np.abs(near - y)) < 1e-10


def test_it_is_the_weighted_mean(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    queries = np.random.default_rng(1).standard_normal((40, 3))
    distances = np.linalg.norm(queries[:, None] - X, axis=-1)
    weights = np.where(distances <= 0.8, distances**-1.2, 0.0)
    total = weights.sum(axis=1)
    expected = np.where(total > 0, weights @ y / np.where(total > 0, total, 1), 0.0)
    found = smoothing.NadarayaWatson(X, y, bandwidth=0.8, exponent=1.2)(queries)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.any(total == 0)
    order = np.argsort(distances, axis=1)[:, :7]
    found = smoothing.NearestNeighbours(X, y, neighbours=7)(queries)
    np.testing.assert_allclose(found, y[order].mean(axis=1), rtol=1e-12)


def test_extreme_scales_and_repeated_points() -> None:
    for scale in (1e-150, 1e150):
        smooth = smoothing.NadarayaWatson([[0.0], [scale]], [1.0, 3.0], 2 * scale, 0.4)
        assert smooth([[scale / 2], [0.0]]) == pytest.approx([2.0, 1.0])
    twice = smoothing.NadarayaWatson([[0.0], [0.0], [1.0]], [1.0, 2.0, 9.0], 3.0, 0.3)
    assert twice([[0.0]]) == pytest.approx([1.5])
    one = smoothing.NearestNeighbours([[0.0]], [4.0], 1)
    assert one([[7.0]]) == pytest.approx([4.0])


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_risks_of_the_kernel_are_exact(dim: int) -> None:
    """Within four standard errors at every bandwidth; without the pole they are others."""
    own: dict[str, float] = {"smoothness": 0.6, "noise": 0.5}
    widths, a = [0.2 ** (1 / dim), 1.0], 0.4 * dim
    drawn = smoothing.kernel_errors(dim, 60, widths, exponent=a, runs=4000, **own)
    for width in widths:
        own_exact = [
            nadaraya_watson.variance(60, dim, width, pole, 0.5)
            + nadaraya_watson.squared_bias(60, dim, width, pole, 0.6)
            for pole in (a, 1e-6)
        ]
        error = drawn.error.sel(bandwidth=width)
        assert away(error, own_exact[0]) < 4
        assert away(error, own_exact[1]) > (8 if width == 1 else 0)


def test_risks_of_neighbours_are_exact() -> None:
    """With labels; with the values of the target in their place, as printed, they are others."""
    drawn = smoothing.neighbour_errors(2, 50, [1, 5, 50], noise=0.5, runs=4000)
    for k in (1, 5, 50):
        bias = nearest_neighbours.squared_bias(k, 50, 2, 1.0)
        error = drawn.error.sel(neighbours=k)
        assert away(error, bias + nearest_neighbours.variance(k, 0.5)) < 4
        assert away(error, bias) > (8 if k < 50 else 0)


def test_rates_of_the_theorem_are_seen() -> None:
    """Fitted powers of n within 10 %, and four standard errors."""
    for dim, sizes in ((1, (100, 3200)), (2, (200, 3200))):
        means, errors = [], []
        for n in sizes:
            width = nadaraya_watson.best_bandwidth(n, dim, 1.0)
            drawn = smoothing.kernel_errors(dim, n, [width], exponent=dim / 4, noise=0.25, runs=800)
            means.append(float(drawn.error.mean()))
            errors.append(float(drawn.error.std(ddof=1)) / np.sqrt(800) / means[-1])
        span = np.log(sizes[1] / sizes[0])
        fitted = -np.log(means[1] / means[0]) / span
        rate = nadaraya_watson.rate(dim, 1.0)
        assert abs(fitted - rate) < 0.1 * rate + 4 * np.hypot(*errors) / span
        assert abs(fitted - 1.0) > 0.1 + 4 * np.hypot(*errors) / span  # a finite-dimensional rate


def test_runs_are_the_same_for_any_number_of_them() -> None:
    two = smoothing.neighbour_errors(2, 9, [1, 3], runs=2)
    assert two.identical(smoothing.neighbour_errors(2, 9, [1, 3], runs=4).isel(run=slice(2)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smoothing.NadarayaWatson([[0.0]], [1.0], 1.0, 0.5), r"exponent=0.5 .* \(0, 0.5\)"),
        (lambda: smoothing.NadarayaWatson([[0.0]], [1.0], 0.0, 0.2), r"bandwidth=0.0"),
        (lambda: smoothing.NadarayaWatson([0.0], [1.0], 1.0, 0.2), r"points has shape \(1,\)"),
        (lambda: smoothing.NadarayaWatson([[0.0]], [1.0, 2.0], 1.0, 0.2), r"values has shape"),
        (lambda: smoothing.NadarayaWatson([[0.0]], [1.0], 1.0, 0.2)([[1.0, 2.0]]), "x has shape"),
        (lambda: smoothing.NearestNeighbours([[0.0]], [1.0], 2), "neighbours must be at most 1"),
        (lambda: smoothing.NearestNeighbours([[0.0]], [1.0], 0), "neighbours=0"),
        (lambda: smoothing.kernel_errors(2, 9, [0.1], exponent=1.0), r"exponent=1.0"),
        (lambda: smoothing.kernel_errors(2, 9, [0.0], exponent=0.5), "bandwidths must be positive"),
        (lambda: smoothing.neighbour_errors(2, 9, [10]), "neighbours=10"),
        (lambda: smoothing.neighbour_errors(2, 9, [1], smoothness=1.5), "smoothness=1.5"),
    ],
)
def test_wrong_input(call: object, message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        call()  # type: ignore[operator]

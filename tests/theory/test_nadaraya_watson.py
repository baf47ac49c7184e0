"""Exact risks at a cusp: against means over drawn distances, and in their limits."""

import numpy as np
import pytest
from scipy import stats

import sgdlimits as sl
from sgdlimits.theory import nadaraya_watson as kernel
from sgdlimits.theory import nearest_neighbours as nearest

# samples, dimension, bandwidth, exponent, smoothness: from nearly no point within h to many
SETTINGS = [(50, 1, 0.3, 0.3, 1.0), (20, 2, 0.5, 0.9, 0.5), (3, 2, 0.9, 0.1, 0.7),
            (100, 3, 0.4, 1.2, 1.0), (30, 1, 1.0, 0.2, 1.0)]  # fmt: skip


def away(samples: np.ndarray, expected: float) -> float:
    """Standard errors from the mean to what is expected."""
    return float(abs(samples.mean() - expected) / (samples.std() / np.sqrt(len(samples))))


@pytest.mark.parametrize(("n", "d", "h", "a", "beta"), SETTINGS)
def test_exact_means(n: int, d: int, h: float, a: float, beta: float) -> None:
    """Of distances alone: noise and target are then means given the points."""
    r = np.random.default_rng(n).random((40_000, n)) ** (1 / d)
    k = np.where(r <= h, (r / h) ** -a, 0.0)
    total = np.where(k.sum(axis=1) > 0, k.sum(axis=1), 1.0)
    squares = (k**2).sum(axis=1) / total**2
    assert away(squares, kernel.variance(n, d, h, a, 1.0)) < 4
    biases = ((k * r**beta).sum(axis=1) / total) ** 2
    assert away(biases, kernel.squared_bias(n, d, h, a, beta)) < 4
    other = 0.05 if a > d / 4 else 0.45 * d  # another kernel
    assert away(squares, kernel.variance(n, d, h, other, 1.0)) > 8


@pytest.mark.parametrize(("d", "a"), [(1, 0.1), (2, 0.6), (3, 0.9), (8, 1.0)])
def test_many_points(d: int, a: float) -> None:
    """The first order, whose constant diverges as a tends to d/2."""
    n, h = 10**12, 0.01 ** (1 / d)
    first = (d - a) ** 2 / (d * (d - 2 * a)) / (n * h**d)
    assert kernel.variance(n, d, h, a, 2.0) == pytest.approx(2 * first, rel=1e-3)
    for beta in (0.3, 1.0):
        bias = (3 * h**beta * (d - a) / (d - a + beta)) ** 2
        assert kernel.squared_bias(n, d, h, a, beta, 3.0) == pytest.approx(bias, rel=1e-3)


def test_one_point_and_weak_poles() -> None:
    """One point: within h or not. Almost no pole: E 1/N of a binomial law."""
    assert kernel.variance(1, 2, 0.5, 0.4, 1.0) == pytest.approx(0.25, rel=1e-9)
    mean_square = 2 / (2 + 1.0) * 0.5**3  # ∫ r d r^(d − 1) dr, d = 2, β = 1/2
    assert kernel.squared_bias(1, 2, 0.5, 0.4, 0.5) == pytest.approx(mean_square, rel=1e-9)
    counts = np.arange(1, 31)
    weights = stats.binom.pmf(counts, 30, 0.3**2)
    expected = float(weights @ (1 / counts))
    assert kernel.variance(30, 2, 0.3, 1e-7, 1.0) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_the_rate_of_the_theorem(d: int, beta: float) -> None:
    """Within 1 % far out; another bandwidth, here n^(−1/(β + d)), is slower."""

    def risk(n: int, h: float) -> float:
        own = (n, d, h, d / 4)
        return kernel.variance(*own, 1.0) + kernel.squared_bias(*own, beta)

    sizes = (10**10, 10**12)
    best = [risk(n, kernel.best_bandwidth(n, d, beta)) for n in sizes]
    assert -np.log(best[1] / best[0]) / np.log(100) == pytest.approx(kernel.rate(d, beta), rel=0.01)
    other = [risk(n, n ** (-1 / (beta + d))) for n in sizes]
    assert -np.log(other[1] / other[0]) / np.log(100) < 0.9 * kernel.rate(d, beta)


@pytest.mark.parametrize(("d", "beta"), [(1, 1.0), (2, 1.0), (3, 0.5)])
def test_few_neighbours_are_rare(d: int, beta: float) -> None:
    """Chernoff's bound holds and vanishes; the printed one does not vanish for d ≥ 2β."""
    printed = []
    for n in (10**3, 10**5, 10**7):
        h = kernel.best_bandwidth(n, d, beta)
        bound = kernel.few_neighbours(n, d, h)
        assert stats.binom.cdf(np.floor(n * h**d / 2), n, h**d) <= bound
        printed.append(np.exp(-n * h ** (2 * d) / 2))
    assert bound < 0.05
    assert (printed[-1] < 0.05) == (d < 2 * beta)


@pytest.mark.parametrize(("k", "n", "d", "beta"), [(1, 9, 1, 1.0), (4, 9, 2, 0.5), (9, 9, 3, 1.0)])
def test_nearest_neighbours(k: int, n: int, d: int, beta: float) -> None:
    r = np.sort(np.random.default_rng(k).random((40_000, n)) ** (1 / d), axis=1)
    biases = (2 * r[:, :k] ** beta).mean(axis=1) ** 2
    assert away(biases, nearest.squared_bias(k, n, d, beta, 2.0)) < 4
    assert nearest.variance(k, 0.5) == 0.5 / k


def test_the_classical_curve_has_one_lowest_point() -> None:
    risks = np.array(
        [nearest.squared_bias(k, 500, 2, 1.0) + nearest.variance(k, 0.25) for k in range(1, 501)]
    )
    lowest = int(np.argmin(risks))
    assert 1 < lowest < 499
    assert np.all(np.diff(risks[: lowest + 1]) < 0)
    assert np.all(np.diff(risks[lowest:]) > 0)


@pytest.mark.parametrize("exponent", [1.0, 1.5])
def test_a_pole_that_is_too_strong(exponent: float) -> None:
    with pytest.raises(sl.InputError, match=r"exponent=.* must lie in \(0, 1\)"):
        kernel.variance(10, 2, 0.5, exponent, 1.0)


def test_more_neighbours_than_points() -> None:
    with pytest.raises(sl.InputError, match="neighbours must be at most samples=3"):
        nearest.squared_bias(4, 3, 1, 1.0)
    with pytest.raises(sl.InputError, match=r"bandwidth must lie in \(0, 1\]"):
        kernel.few_neighbours(4, 3, 1.5)

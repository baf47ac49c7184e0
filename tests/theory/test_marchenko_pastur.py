"""The Marchenko–Pastur law: mass, mean, transform, and a matrix."""

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from sgdlimits import InputError
from sgdlimits.theory import marchenko_pastur as mp

RATIOS = [0.1, 0.5, 1.0, 2.0, 5.0]
FUNCTIONS = [mp.edges, mp.atom, mp.density, mp.cdf, mp.distance_to_mean, mp.stieltjes]


@pytest.mark.parametrize("ratio", RATIOS)
def test_moments(ratio: float) -> None:
    """Mass 1 − atom, mean v, second moment v²(1 + 1/ratio)."""
    low, high = mp.edges(ratio, 3.0)
    angle = np.linspace(0, np.pi, 20_001)
    x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    density = mp.density(x, ratio, 3.0) * (high - low) / 2 * np.sin(angle)
    moments = [np.trapezoid(density * x**k, angle) for k in range(3)]
    tolerance = 1e-3 if ratio == 1 else 1e-6
    assert moments[0] == pytest.approx(1 - mp.atom(ratio), abs=tolerance)
    assert moments[1] == pytest.approx(3.0, rel=1e-6)
    assert moments[2] == pytest.approx(9 * (1 + 1 / ratio), rel=1e-6)


@pytest.mark.parametrize("ratio", RATIOS)
def test_transform(ratio: float) -> None:
    low, high = mp.edges(ratio)
    inside = (low + high) / 2
    above = mp.stieltjes(inside + 1e-9j, ratio)
    assert above.imag / np.pi == pytest.approx(mp.density(inside, ratio), rel=1e-6)
    far = 1e4
    assert mp.stieltjes(far, ratio) * far == pytest.approx(-1, rel=1e-3)
    z = high + 0.5 + 0.2j
    m = mp.stieltjes(z, ratio)
    assert z * m**2 / ratio + (z + 1 / ratio - 1) * m + 1 == pytest.approx(0, abs=1e-12)


def test_a_matrix() -> None:
    rng = np.random.default_rng(0)
    samples, dim = 2000, 500
    X = rng.standard_normal((samples, dim)) * np.sqrt(2.0)
    values = np.linalg.eigvalsh(X.T @ X / samples)
    low, high = mp.edges(samples / dim, 2.0)
    assert values[0] == pytest.approx(low, rel=0.03)
    assert values[-1] == pytest.approx(high, rel=0.02)
    printed = mp.edges(dim / samples, 2.0)  # Def. 6.5 of J24 has the ratio upside down
    assert abs(values[-1] - printed[1]) > 1
    m = np.mean(1 / (values - 8.0))
    assert m == pytest.approx(mp.stieltjes(8.0, samples / dim, 2.0).real, rel=2e-3)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_ratio_is_samples_per_dimension_and_says_so(function: Callable[..., Any]) -> None:
    assert "``ratio`` φ = n/d samples per dimension" in " ".join((function.__doc__ or "").split())


def test_fewer_samples_than_dimensions_leave_an_atom() -> None:
    rng = np.random.default_rng(1)
    samples, dim = 100, 400
    X = rng.standard_normal((samples, dim))
    values = np.linalg.eigvalsh(X.T @ X / samples)
    assert np.mean(np.abs(values) < 1e-9) == mp.atom(samples / dim) == 0.75


def test_known_values() -> None:
    """Two and a half samples of the law, to nine digits, with samples per dimension 2 and 1/2."""
    values = [*mp.edges(2.0), mp.density(1.0, 2.0), mp.stieltjes(-1.0, 2.0).real]
    values += [mp.atom(0.5), mp.density(1.0, 0.5), mp.stieltjes(-1.0, 0.5).real]
    expected = [0.08578643762690492, 2.914213562373095, 0.42108439934779235, 0.5615528128088303]
    expected += [0.5, 0.15915494309189532, 0.7071067811865476]
    assert values == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ratio", RATIOS)
def test_moments_are_those_of_narayana(ratio: float) -> None:
    """E λᵏ = Σ_j N(k, j) φ^(j − k) with N(k, j) = C(k, j) C(k, j − 1)/k, from the cdf."""
    low, high = mp.edges(ratio)
    for k in range(1, 7):
        counts = [comb(k, j) * comb(k, j - 1) // k * ratio ** (j - k) for j in range(1, k + 1)]
        # ∫ xᵏ dF by parts
        tail, _ = integrate.quad(lambda x, k=k: k * x ** (k - 1) * mp.cdf(x, ratio), low, high)
        start = low**k * mp.cdf(np.nextafter(low, 0.0), ratio)
        assert high**k - tail - start == pytest.approx(sum(counts), rel=1e-8)


@pytest.mark.parametrize("ratio", [1e-4, *RATIOS, 1e4])
def test_cdf_is_the_integral_of_the_density(ratio: float) -> None:
    low, high = mp.edges(ratio, 3.0)
    for x in low + (high - low) * np.array([1e-6, 0.01, 0.5, 0.99]):
        mass, _ = integrate.quad(lambda y: mp.density(y, ratio, 3.0), low, x, limit=400)
        assert mp.cdf(x, ratio, 3.0) == pytest.approx(mp.atom(ratio) + mass, abs=2e-8)
    assert mp.cdf([-1e-9, high, 1e9], ratio, 3.0).tolist() == [0.0, 1.0, 1.0]
    assert mp.cdf(0.0, ratio, 3.0) == mp.atom(ratio)
    grid = mp.cdf(np.linspace(low, high, 1001), ratio, 3.0)
    assert np.all(np.diff(grid) >= 0)


@pytest.mark.parametrize("ratio", RATIOS)
def test_distance_to_mean(ratio: float) -> None:
    """The farthest point of the support from the mean: the upper edge."""
    low, high = mp.edges(ratio, 3.0)
    farthest = max(high - 3.0, 3.0 - low, 3.0 if mp.atom(ratio) else 0.0)
    assert mp.distance_to_mean(ratio, 3.0) == pytest.approx(farthest, rel=1e-12)
    assert mp.distance_to_mean(1e8) == pytest.approx(2e-4, rel=1e-3)


@pytest.mark.parametrize("ratio", [1.5, 2.0, 1e6, 1e12])
def test_transform_next_to_zero_and_at_many_samples(ratio: float) -> None:
    """Moments of the inverse: m(0) = φ/(v(φ − 1)), and m(z) = m(0) + O(z)."""
    inverse = ratio / (3.0 * (ratio - 1))
    for z in (0.0, 1e-300, -1e-12, 1e-12j):
        assert mp.stieltjes(z, ratio, 3.0) == pytest.approx(inverse, rel=1e-9)
    z = 4.5 + 0.5j  # the mean is 3, the variance 9/φ
    far = 1 / (3 - z) + 9 / ratio / (3 - z) ** 3
    assert mp.stieltjes(z, ratio, 3.0) == pytest.approx(far, abs=20 / ratio**1.5 + 1e-14)


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_transform_is_infinite_at_an_atom_and_at_a_hard_edge(ratio: float) -> None:
    with pytest.raises(InputError, match=r"z=\[1.0, 0.0\] is not allowed: z must not be 0"):
        mp.stieltjes(np.array([1.0, 0.0]), ratio)


@pytest.mark.parametrize("ratio", [1e6, 1e12])
def test_many_samples_make_a_semicircle(ratio: float) -> None:
    """(x − v)√φ/(2v) tends to the semicircle on (−1, 1), with corrections of order 1/√φ."""
    y = np.array([-0.9, -0.5, 0.0, 0.4, 0.8])
    x = 3 * (1 + 2 * y / np.sqrt(ratio))
    limit = 0.5 + (y * np.sqrt(1 - y**2) + np.arcsin(y)) / np.pi
    np.testing.assert_allclose(mp.cdf(x, ratio, 3.0), limit, atol=1 / np.sqrt(ratio) + 1e-8)


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 2.0**-40])
def test_the_lower_edge_near_one_sample_per_dimension(apart: float) -> None:
    low, _ = mp.edges(1 + apart)
    apart = (1 + apart) - 1  # as it is rounded
    assert low == pytest.approx(apart**2 / 4 * (1 - 1.5 * apart), rel=1e-11)


# d/n, v; upper edge; x, density and distribution function at x (scikit-rmt 2.1.1, and the first two
# alike by freealg 0.12.2); z and the transform at z (freealg). Neither is a dependency: scikit-rmt
# does not run with NumPy 2, freealg brings numba and statsmodels.
OTHERS = [
    (0.2, 1.0, 2.0944271909999155,
     0.9316718427000251, 0.7287739750706299, 0.4990940691577473,
     (1.1999999999999997+0.001j), (-0.8317816658633969+1.8620009639230855j)),
    (0.5, 2.0, 5.828427124746191,
     2.1514718625761424, 0.19959522655090284, 0.6070554896824308,
     (3+0.001j), (-0.3331762170192245+0.47134894232615304j)),
    (0.999, 1.0, 3.9979997498749213,
     1.3993000750375233, 0.21710869752045844, 0.7065148491855286,
     (1.9989999999999997+0.001j), (-0.49999974974987504+0.500500249999875j)),
    (5.0, 0.1, 1.047213595499958,
     0.4658359213500126, 0.29150959002825194, 0.8998188138315495,
     (0.6000000000000001+0.001j), (-1.665422555177534+0.7464668934795446j)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("inverse", "variance", "high", "x", "density", "below", "z", "transform"), OTHERS
)
def test_other_packages_agree(
    inverse: float, variance: float, high: float, x: float, density: float, below: float,
    z: complex, transform: complex,
) -> None:  # fmt: skip
    """Their ratio is d/n; taken for n/d, as the printed definition does, nothing agrees."""

    def found(ratio: float) -> np.ndarray:
        top = mp.edges(ratio, variance)[1]
        return np.array([top, mp.density(x, ratio, variance), mp.cdf(x, ratio, variance)])

    expected = np.array([high, density, below])
    np.testing.assert_allclose(found(1 / inverse), expected, rtol=1e-12)
    np.testing.assert_allclose(mp.stieltjes(z, 1 / inverse, variance), transform, rtol=1e-12)
    assert not np.allclose(found(inverse), expected, rtol=1e-4)

"""Inversion of Stieltjes transforms: smooth laws, edges, atoms, and what is no transform."""

from functools import partial

import numpy as np
import pytest
from scipy import special

import sgdlimits as sl
from sgdlimits.theory import marchenko_pastur as mp
from sgdlimits.theory import stieltjes

RATIOS = [0.1, 1.0, 4.0]


@pytest.mark.parametrize("ratio", RATIOS)
def test_density_of_marchenko_and_pastur(ratio: float) -> None:
    low, high = mp.edges(ratio, 2.0)
    x = low + (high - low) * np.array([1e-6, 0.01, 0.5, 0.99, 1 - 1e-6])
    transform = partial(mp.stieltjes, ratio=ratio, variance=2.0)
    value, error = stieltjes.density(transform, x)
    np.testing.assert_allclose(value, mp.density(x, ratio, 2.0), rtol=1e-12)
    assert np.all(np.abs(value - mp.density(x, ratio, 2.0)) <= 3 * error)
    assert np.all(stieltjes.density(transform, [high + 0.1, 100.0]).value < 1e-12)
    # without extrapolation
    assert abs(transform(x[1] + 1e-3j).imag / np.pi / value[1] - 1) > 1e-6


@pytest.mark.parametrize("ratio", RATIOS)
def test_mass_of_marchenko_and_pastur(ratio: float) -> None:
    """Atom and edges inside or at the ends."""
    low, high = mp.edges(ratio)
    transform = partial(mp.stieltjes, ratio=ratio)
    for x in (low + 1e-6, (low + high) / 2, high, high + 1):
        value, error = stieltjes.mass(transform, -1.0, x)
        assert value == pytest.approx(mp.cdf(x, ratio), abs=1e-12)
        assert error < 1e-6
    half = stieltjes.mass(transform, 0.0, high + 1).value
    assert half == pytest.approx(1 - mp.atom(ratio) / 2, abs=1e-12)


def test_a_gaussian_law() -> None:
    """Its transform is i√(π/2) w(z/√2), with the Faddeeva function w: no edge, no singularity."""

    def transform(z: np.ndarray) -> np.ndarray:
        return np.asarray(1j * np.sqrt(np.pi / 2) * special.wofz(z / np.sqrt(2)))

    x = np.array([-3.0, 0.0, 0.5, 6.0])
    value, error = stieltjes.density(transform, x)
    np.testing.assert_allclose(
        value, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), rtol=1e-6, atol=1e-15
    )
    assert np.max(error) < 1e-12
    assert stieltjes.mass(transform, -1.0, 1.0).value == pytest.approx(special.erf(np.sqrt(0.5)))


def test_atoms_have_infinite_density_and_half_their_mass_at_an_end() -> None:
    def transform(z: np.ndarray) -> np.ndarray:
        return np.asarray(0.25 / (1.0 - z) + 0.75 / (3.0 - z))

    value, error = stieltjes.density(transform, [1.0, 2.0, 3.0])
    assert value.tolist() == [np.inf, 0.0, np.inf]
    assert error[1] < 1e-12
    assert stieltjes.mass(transform, 1.0, 2.0).value == pytest.approx(0.125, abs=1e-8)
    assert stieltjes.mass(transform, 0.0, 4.0).value == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    "transform",
    [
        lambda z: 1 / (z - 1.0),  # its imaginary part is negative
        lambda z: np.ones(3),
        lambda z: np.full(z.shape, np.nan),
    ],
)
def test_what_is_no_transform(transform: stieltjes.Transform) -> None:
    with pytest.raises(sl.InputError, match=r"^transform=.* transform must"):
        stieltjes.density(transform, [1.0, 2.0])
    with pytest.raises(sl.InputError, match=r"^transform=.* transform must"):
        stieltjes.mass(transform, 1.0, 2.0)


def test_an_empty_interval() -> None:
    with pytest.raises(sl.InputError, match=r"high=1.0 is not allowed: high must be above low=2.0"):
        stieltjes.mass(partial(mp.stieltjes, ratio=1.0), 2.0, 1.0)


def test_no_points_are_told() -> None:
    with pytest.raises(sl.InputError, match=r"x=\[\] is not allowed"):
        stieltjes.density(lambda z: -1 / z, [])

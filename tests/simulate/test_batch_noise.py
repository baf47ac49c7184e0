"""Normal numbers of batches: their law, and that of the pair that a word of 64 bits makes."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from sgdlimits.simulate import batch_noise
from tests.simulate.test_noise import KEY, logarithm

RUNS = 4000


def pairs(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and unit vectors (2, …) of words with these halves."""
    with jax.enable_x64(True):
        words = jnp.asarray((high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64))[None]
        lengths = batch_noise.radius(words)
        return np.asarray(lengths)[0], np.asarray(batch_noise.turned(jnp.ones_like(lengths), words))


@pytest.mark.parametrize(("count", "uniforms"), [(6, 0), (6, 2), (5, 3), (2, 4)])
def test_no_half_of_a_word_serves_twice(count: int, uniforms: int) -> None:
    """Numbers of a row are normal or uniform, and uncorrelated with others, their squares too."""
    with jax.enable_x64(True):
        normals, uniform = map(
            np.asarray, batch_noise.normals_and_uniforms(KEY, count, uniforms, RUNS)
        )
    assert normals.shape == (count, RUNS)
    assert uniform.shape == (uniforms, RUNS)
    rows = np.concatenate([normals, scipy.stats.norm.ppf(uniform)])
    for row in rows:
        assert scipy.stats.kstest(row, scipy.stats.norm.cdf).pvalue > 1e-3
    for powers in (rows, rows**2 - 1):
        near = [powers, np.roll(powers, 1, axis=1), np.roll(powers, RUNS // 2, axis=1)]
        correlation = np.corrcoef(np.concatenate(near)) - np.eye(3 * len(rows))
        assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(RUNS)


def test_angles_are_equally_spaced() -> None:
    rng = np.random.default_rng(1)
    low = np.concatenate([rng.integers(2**32, size=2**14), [0, 2**31 - 1, 2**31, 2**32 - 1]])
    _, (x, y) = pairs(np.zeros_like(low), low)
    angle = np.pi * ((low % 2**31 - 2.0**30 + 0.5) / 2**31 + (low >= 2**31))
    np.testing.assert_allclose(x, np.cos(angle), rtol=0, atol=1e-15)
    np.testing.assert_allclose(y, -np.sin(angle), rtol=0, atol=1e-15)


def test_moments_of_the_angle_are_exact() -> None:
    """Cosines of powers up to eight sum to their integrals on any equal grid of nine angles."""
    _, (x, y) = pairs(np.zeros(2**12), np.arange(2**12) * 2**20 + 2**19)
    for j, k in itertools.product(range(9), repeat=2):
        if j + k <= 8:
            even = j % 2 == k % 2 == 0
            beta = scipy.special.beta((j + 1) / 2, (k + 1) / 2) / math.pi if even else 0.0
            assert abs(np.mean(x**j * y**k) - beta) < 4e-16


def test_radii_are_those_of_a_uniform_number_of_64_bits() -> None:
    """Its last 32 bits are the angle times an odd number: each of them belongs to one angle."""
    rng = np.random.default_rng(2)
    high = np.concatenate([rng.integers(2**32, size=99), [0, 1, 2**31, 2**32 - 1]])
    high = (high >> rng.integers(32, size=len(high))).repeat(9)
    low = rng.integers(2**32, size=len(high))
    last = low * int(batch_noise.LATTICE) % 2**32
    words = [(int(first) << 32) + int(rest) for first, rest in zip(high, last, strict=True)]
    lengths, _ = pairs(high, low)
    exact = [-2 * logarithm(word) for word in words]
    np.testing.assert_allclose(lengths**2, exact, rtol=1e-15)
    assert int(batch_noise.LATTICE) % 2 == 1


def waves(multiplier: int, most: int = 8) -> int:
    """The least |k| with j + k·multiplier divisible by 2³² for some |j| up to ``most``, not 0."""
    inverse = pow(multiplier, -1, 2**32)
    numbers = [j * inverse % 2**32 for j in range(1, most + 1)]
    return min(min(k, 2**32 - k) for k in numbers)


def test_last_bits_of_a_radius_and_powers_of_its_angle_are_uncorrelated() -> None:
    """Negative control: the angle itself in place of its multiple."""
    assert waves(int(batch_noise.LATTICE)) > 2**27
    assert waves(1) == 1


def test_mixed_moments_in_the_far_tail() -> None:
    """Where the first 32 bits of u are zeros, beyond 6.6 standard deviations, all is in the others.

    Angles there are those of a random shift of an equal grid, whose means are much better known
    than those of as many random ones.
    """
    low = (np.arange(2**16) * 2**16 + np.random.default_rng(3).integers(2**16)) % 2**32
    lengths, (x, y) = pairs(np.zeros_like(low), low)
    ratios = lengths**2 / (64 * math.log(2))  # of −2 log u for u = 2⁻³²w
    for power, (j, k) in itertools.product([1, 4], [(0, 0), (2, 0), (2, 2), (1, 1), (8, 0)]):
        exact = sum(
            math.comb(power, i) * math.factorial(i) * (32 * math.log(2)) ** -float(i)
            for i in range(power + 1)
        )
        even = j % 2 == k % 2 == 0
        exact *= scipy.special.beta((j + 1) / 2, (k + 1) / 2) / math.pi if even else 0.0
        assert abs(np.mean(ratios**power * x**j * y**k) - exact) < 1e-4

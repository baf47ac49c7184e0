"""Normal numbers from words: how far their law is from the normal one, and words themselves."""

import itertools
import math

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from sgdlimits.simulate import noise

RUNS = 1024
KEY = (jnp.asarray(0, jnp.uint32), jnp.asarray(11, jnp.uint32))


def test_words_are_those_of_jax() -> None:
    """Threefry with twenty rounds, and its published answers (Random123, kat_vectors)."""
    rng = np.random.default_rng(0)
    key, numbers = rng.integers(2**32, size=2), rng.integers(2**32, size=(2, 64))
    k, (high, low) = key.astype(np.uint32), numbers.astype(np.uint32)
    ours = noise.threefry(
        (jnp.asarray(k[0]), jnp.asarray(k[1])), jnp.asarray(high), jnp.asarray(low)
    )
    theirs = jax.extend.random.threefry_2x32(jnp.asarray(k), jnp.concatenate([high, low]))
    np.testing.assert_array_equal(np.concatenate(ours), theirs)
    ones = np.uint32(2**32 - 1)
    for word, answer in ((np.uint32(0), "6b20015999ba4efe"), (ones, "1cb996fcbb002be7")):
        number = jnp.asarray(word)
        first, second = noise.threefry((number, number), number, number)
        assert f"{int(first):08x}{int(second):08x}" == answer


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """A million normal numbers, and uniform ones drawn with them."""
    with jax.enable_x64(True):
        draw = jax.jit(lambda key: noise.normals_and_uniform(key, 65, RUNS))
        parts = [draw(noise.derived(KEY, step)) for step in range(16)]
        normals = np.concatenate([np.asarray(part[0]) for part in parts])
        return normals, np.stack([np.asarray(part[1]) for part in parts])


@pytest.mark.parametrize("count", [2, 5, 6])
def test_no_half_of_a_word_serves_twice(count: int) -> None:
    """However many numbers are drawn together, those of a row are uncorrelated with the others."""
    with jax.enable_x64(True):
        normals, uniform = noise.normals_and_uniform(KEY, count, 4000)
        assert normals.shape == (count, 4000)
        assert uniform.shape == (4000,)
        rows = np.concatenate(
            [np.asarray(normals), scipy.stats.norm.ppf(np.asarray(uniform))[None]]
        )
    for powers in (rows, rows**2 - 1):
        correlation = np.corrcoef(powers) - np.eye(len(rows))
        assert np.max(np.abs(correlation)) < 4.5 / np.sqrt(4000)


def test_moments_and_law_of_draws(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    normals, uniform = drawn
    flat = normals.ravel()
    assert scipy.stats.kstest(flat, scipy.stats.norm.cdf).pvalue > 1e-3
    assert scipy.stats.kstest(uniform.ravel(), scipy.stats.uniform.cdf).pvalue > 1e-3
    for power in range(1, 9):
        values = flat**power
        mean = 0.0 if power % 2 else float(scipy.special.factorial2(power - 1))
        assert abs(values.mean() - mean) < 4.5 * values.std() / len(flat) ** 0.5


def test_draws_are_independent(drawn: tuple[np.ndarray, np.ndarray]) -> None:
    """Of one another, their squares too: in a pair, between runs, rows and steps."""
    normals, uniform = drawn
    bits = scipy.stats.norm.ppf(uniform)
    pairs = [(normals[:32], normals[33:65]), (normals[:, 1:], normals[:, :-1])]
    pairs += [(normals[1:], normals[:-1]), (bits, normals[64::65]), (bits, normals[32::65])]
    for (x, y), (f, g) in itertools.product(pairs, itertools.product([1, 2], repeat=2)):
        product = (x**f - f + 1) * (y**g - g + 1)
        assert abs(product.mean()) < 4.5 * product.std() / product.size**0.5


def test_moments_of_the_angle_are_exact() -> None:
    """Cosines of powers up to eight sum to their integrals on any equal grid of nine angles."""
    with jax.enable_x64(True):
        grid = jnp.asarray((np.arange(2**12) * 2**20 + 2**19).astype(np.uint32))
        x, y = (np.asarray(part) for part in noise.turned(jnp.ones(2**12), grid))
    np.testing.assert_allclose(x**2 + y**2, 1, rtol=1e-15)
    for j, k in itertools.product(range(9), repeat=2):
        if j + k <= 8:
            even = j % 2 == k % 2 == 0
            beta = scipy.special.beta((j + 1) / 2, (k + 1) / 2) / math.pi if even else 0.0
            assert abs(np.mean(x**j * y**k) - beta) < 4e-16


def test_angles_are_equally_spaced() -> None:
    """So the law of a number is within 2⁻³² of the normal one, in Kolmogorov's distance.

    Whatever the radius, a half-plane holds all but one of the angles that it ought to.
    """
    rng = np.random.default_rng(1)
    words = np.concatenate([rng.integers(2**32, size=2**14), [0, 2**31 - 1, 2**31, 2**32 - 1]])
    with jax.enable_x64(True):
        x, y = noise.turned(jnp.ones(len(words)), jnp.asarray(words.astype(np.uint32)))
    angle = np.pi * (((words % 2**31) - 2.0**30 + 0.5) / 2**31 + (words >= 2**31))
    np.testing.assert_allclose(x, np.cos(angle), rtol=0, atol=1e-15)
    np.testing.assert_allclose(y, np.sin(angle), rtol=0, atol=1e-15)


def test_radii_have_the_exponential_law_to_the_far_tail() -> None:
    """Moments of −2 log u by quadrature in each octave of u, down to 2⁻⁶⁴; the eighth moment of a
    normal number is made of the fourth of these."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    moments, mass = np.zeros(4), 0.0
    for octave in range(1, 65):
        top = 2 ** (64 - octave)  # words top, ..., 2·top − 1
        words = [int(top * (1.5 + node / 2)) for node in nodes]
        with jax.enable_x64(True):
            squares = np.asarray(noise.squared_radius(jnp.asarray(np.array(words, np.uint64))))
        np.testing.assert_allclose(squares, [-2 * logarithm(w) for w in words], rtol=1e-15)
        if octave <= 12:  # where rounding nodes to words does not matter
            moments += [top / 2**65 * (weights * squares**k).sum() for k in range(1, 5)]
            mass += top / 2**64
    u = 1 - mass  # the rest in closed form
    rest = [
        u * 2**k * sum(math.perm(k, j) * (-math.log(u)) ** (k - j) for j in range(k + 1))
        for k in range(1, 5)
    ]
    exact = [2**k * math.factorial(k) for k in range(1, 5)]
    np.testing.assert_allclose(moments + rest, exact, rtol=1e-12)


def logarithm(word: int) -> float:
    """log((word + ½)/2⁶⁴), without cancellation where it is near zero."""
    beyond = (2**65 - 2 * word - 1) / 2**65
    return math.log1p(-beyond) if beyond < 0.5 else math.log((2 * word + 1) / 2**65)


def test_coarser_numbers_are_told_apart() -> None:
    """Negative control: radii from 16 bits miss the tail, and their eighth moment shows it."""
    with jax.enable_x64(True):
        words = jnp.asarray((np.arange(2**16, dtype=np.uint64) << 48) + 2**47)
        squares = np.asarray(noise.squared_radius(words))
    assert abs(np.mean(squares**4) / (2**4 * 24) - 1) > 1e-4

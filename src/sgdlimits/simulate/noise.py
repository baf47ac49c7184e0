"""Normal numbers from a counter, by arithmetic that processors do for several runs at once.

Words are those of Threefry-2x32 with twenty rounds (Salmon, Moraes, Dror & Shaw, *Parallel random
numbers: as easy as 1, 2, 3*, 2011), the generator of ``jax.random``: which one is drawn depends on
its key and number alone. A pair of normal numbers is a vector (Box & Muller, 1958) whose radius
√(−2 log u) has a u of 64 bits and whose angle is one of 2³², equally spaced.

How far this is from the normal law: a half-plane through 2³² equally spaced angles holds all but
one of those it ought to, whatever the radius, so the distribution function of a number is within
2⁻³² = 2.3e-10 of the normal one. A mean over equally spaced angles of a polynomial of a lower
degree than their number is that over all angles, so moments, mixed ones of a pair too, are those of
the radius: 64 bits of u, which reach 9.4 standard deviations, leave those up to the eighth within
1e-12 of their values, and arithmetic in double precision within 1e-14.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32, UInt64

from sgdlimits._types import Index
from sgdlimits.simulate.kernel import computed_once

Key = tuple[UInt32[Array, ""], UInt32[Array, ""]]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of √½

# Taylor series in x² of cos πx and of sin(πx)/x, highest power first: for |x| ≤ 1/2 the first term
# that is left out is below 2e-17
_COS = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k) for k in range(11)][::-1]
_SIN = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)][::-1]
# of log((1 + s)/(1 − s))/s in s², for |s| ≤ (√2 − 1)/(√2 + 1)
_LOG = [2 / (2 * k + 1) for k in range(10)][::-1]


def threefry(
    key: Key, high: UInt32[Array, "..."], low: UInt32[Array, "..."]
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
    """Two random words for every number high·2³² + low."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    high, low = high + keys[0], low + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            high = high + low
            turned = (low << np.uint32(rotation)) | (low >> np.uint32(32 - rotation))
            low = turned ^ high
        high = high + keys[(group + 1) % 3]
        low = low + keys[(group + 2) % 3] + np.uint32(group + 1)
    return high, low


def derived(key: Key, number: Index) -> Key:
    """The key with this number, below 2⁶⁴, among those derived from ``key``."""
    number = jnp.asarray(number, jnp.uint64)
    return threefry(key, (number >> 32).astype(jnp.uint32), number.astype(jnp.uint32))


def words(key: Key, rows: int, runs: int, first: Index = 0) -> UInt64[Array, "rows runs"]:
    """Independent uniform words of 64 bits: rows first, first + 1, … of those of a key."""
    row = jax.lax.broadcasted_iota(jnp.uint32, (rows, runs), 0) + jnp.asarray(first, jnp.uint32)
    run = jax.lax.broadcasted_iota(jnp.uint32, (rows, runs), 1)
    high, low = threefry(key, row, run)
    return (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)


def normals_and_uniform(
    key: Key, count: int, runs: int
) -> tuple[Float[Array, "count runs"], Float[Array, " runs"]]:
    """``count`` standard normal numbers for every run, and a number that is uniform in (0, 1)."""
    pairs = (count + 1) // 2
    whole = pairs // 2 + 1  # a word for every radius, half a word for every angle and for the last
    drawn = computed_once(lambda key: words(key, pairs + whole, runs))(key)
    lengths = computed_once(radius)(drawn[:pairs])
    high, low = ((drawn[pairs:] >> shift).astype(jnp.uint32) for shift in (32, 0))
    some = min(pairs, whole)  # angles in upper halves; together with the others they would be slow
    parts = [computed_once(turned)(lengths[:some], high[:some])]
    if pairs > whole:
        parts.append(computed_once(turned)(lengths[some:], low[: pairs - some]))
    normals = jnp.concatenate([part[axis] for axis in (0, 1) for part in parts])
    return normals[:count], centred(low[-1])


def centred(word: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """The middle of the interval of length 2⁻³² in (0, 1) that belongs to a word."""
    return word.astype(float) * 2.0**-32 + 2.0**-33


def radius(word: UInt64[Array, "..."]) -> Float[Array, "..."]:
    """Length of a vector of two standard normal numbers."""
    return jnp.sqrt(squared_radius(word))


def squared_radius(word: UInt64[Array, "..."]) -> Float[Array, "..."]:
    """−2 log u for u = (word + ½)/2⁶⁴: a chi-square number with two degrees of freedom."""
    return -2 * _log((word.astype(float) + 0.5) * 2.0**-64)


def turned(
    length: Float[Array, "..."], angle: UInt32[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """A vector of this length in the direction 2π(angle + ½)/2³², up to a permutation of angles.

    One bit chooses the sign, the others an angle πx with |x| < 1/2, so that no quadrants are told
    apart.
    """
    signed = jax.lax.bitcast_convert_type(angle, jnp.int32)
    length = jnp.where(signed < 0, -length, length)
    x = ((signed & (2**31 - 1)) - 2**30).astype(float) * 2.0**-31 + 2.0**-32
    square = x**2
    return length * polynomial(_COS, square), length * (x * polynomial(_SIN, square))


def _log(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The logarithm of x = 2ⁿm with m in [√½, √2): a series in s for m = (1 + s)/(1 − s)."""
    bits = jax.lax.bitcast_convert_type(x, jnp.int64)
    exponent = (bits - _HALF_ROOT) >> 52
    m = jax.lax.bitcast_convert_type(bits - (exponent << 52), float)
    s = (m - 1) / (m + 1)
    return s * polynomial(_LOG, s**2) + exponent.astype(float) * math.log(2)


def polynomial(coefficients: list[float], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """By Horner's rule, highest power first."""
    total = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total

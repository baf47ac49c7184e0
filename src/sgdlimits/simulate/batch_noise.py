"""Normal numbers for batches of samples: one word of 64 bits for every pair of them.

A pair is a vector (Box & Muller, 1958). Half of its word is its angle, one of 2³², equally spaced;
the other half are the first 32 bits of the u of its radius √(−2 log u), and the angle times a
constant, modulo 2³², are 32 more. So u takes 2⁶⁴ values and reaches 9.4 standard deviations, as it
does for single samples, which take half a word more (see ``noise``).

How far this is from the normal law: at every angle u is one of 2³² equally spaced numbers, so a
half-plane holds, there, all but one of those that it ought to, and all but one of the angles. The
distribution function of a number is within 2⁻³¹ = 4.7e-10 of the normal one. Moments of the radius
are those of a u of 64 bits, moments of the angle are exact. Mixed ones are the products of both but
for what is left of waves e^{i(jθ + 2πkw)} in the angle θ and the fraction w that the last bits of u
are: they do not average out only where j + k times the constant is a multiple of 2³², and then k is
beyond 2²⁷ if |j| ≤ 8, while those of −log u fall with k (a lattice: Korobov, 1959). Moments up to
the eighth, mixed ones of a pair too, are within 1e-12 of their values.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt64

from sgdlimits.simulate import noise
from sgdlimits.simulate.kernel import computed_once

# near 2³² times the golden ratio, and 2³² over it has no partial quotient above 3
LATTICE = np.uint32(2654435521)
_LAST = np.uint64(2**32 - 1)
_HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of √½

# Best polynomials, highest power first: in x² for cos πx where |x| ≤ 1/2, off by less than 4e-18;
# in s² for −2 log((1 + s)/(1 − s))/s where |s| ≤ (√2 − 1)/(√2 + 1), off by less than 2e-16 of it
_COS = [
    *(4.1495917001716555e-06, -0.00010456658073600429, 0.0019295562835931208),
    *(-0.025806888739352957, 0.23533063012980837, -1.3352627688434646),
    *(4.058712126416498, -4.934802200544676, 1.0),
]
_LOG = [
    *(-0.33677109767133806, -0.36243710905381816, -0.4444687432181580, -0.5714283196251634),
    *(-0.8000000012403238, -1.3333333333310444, -4.000000000000001),
]


def normals_and_uniforms(
    key: noise.Key, count: int, uniforms: int, runs: int
) -> tuple[Float[Array, "count runs"], Float[Array, "uniforms runs"]]:
    """``count`` standard normal numbers for every run, and some that are uniform in (0, 1)."""
    pairs = (count + 1) // 2
    drawn = computed_once(lambda key: noise.words(key, pairs, runs))(key)
    normals = computed_once(turned)(computed_once(radius)(drawn), drawn)
    if not uniforms:
        return normals[:count], jnp.zeros((0, runs))
    half = (runs + 1) // 2
    both = computed_once(lambda key: noise.words(key, uniforms, half, first=pairs))(key)
    high, low = ((both >> shift).astype(jnp.uint32) for shift in (32, 0))
    both = jnp.concatenate([high, low], axis=1)[:, :runs]
    return normals[:count], computed_once(noise.centred)(both)


def radius(word: UInt64[Array, "pairs runs"]) -> Float[Array, "pairs runs"]:
    """Length of a vector of two standard normal numbers."""
    last = (word.astype(jnp.uint32) * LATTICE).astype(jnp.uint64)
    return jnp.sqrt(squared_radius((word & ~_LAST) | last))


def squared_radius(word: UInt64[Array, "..."]) -> Float[Array, "..."]:
    """−2 log u for u = (word + ½)/2⁶⁴, a series in s for u = 2ⁿ(1 + s)/(1 − s)."""
    bits = jax.lax.bitcast_convert_type(word.astype(float) + 0.5, jnp.int64)
    exponent = (bits - _HALF_ROOT) >> 52  # leaves a number in [√½, √2)
    m = jax.lax.bitcast_convert_type(bits - (exponent << 52), float)
    s = (m - 1) / (m + 1)
    return s * noise.polynomial(_LOG, s**2) - (exponent - 64).astype(float) * (2 * math.log(2))


def turned(
    length: Float[Array, "pairs runs"], word: UInt64[Array, "pairs runs"]
) -> Float[Array, "two_pairs runs"]:
    """Coordinates of vectors in the direction 2π(angle + ½)/2³², up to a permutation of angles.

    The angle are the last 32 bits of the word. Both are cosines, of angles a quarter apart. One bit
    chooses the sign, the others an angle πx with |x| < 1/2.
    """
    quarters = np.array([0, 2**30], np.uint32)[:, None, None]
    signed = jax.lax.bitcast_convert_type(word.astype(jnp.uint32) + quarters, jnp.int32)
    x = ((signed & (2**31 - 1)) - 2**30).astype(float) * 2.0**-31 + 2.0**-32
    cosine = noise.polynomial(_COS, x**2)
    return (jnp.where(signed < 0, -length, length) * cosine).reshape(-1, length.shape[-1])

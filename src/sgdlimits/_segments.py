"""Fresh noise for what starts where something random of the same seed has ended.

Noise is a function of the seed, the run and the step. So a simulation that starts from the end of
another one of the same seed would see the same noise once more. Where the start is a Dataset that
notes its seed, the new one is the next ``segment`` of it, and the key of its noise is that of the
pair (seed, segment): independent of those of all segments before.
"""

import numpy as np
import xarray as xr
from jaxtyping import UInt32

from sgdlimits._types import StateLike


def segment_of(init: StateLike | None, seed: int) -> int:
    """One more than that of the Dataset that is the start, if its noise has this seed."""
    if not isinstance(init, xr.Dataset) or init.attrs.get("seed") != seed:
        return 0
    return int(init.attrs.get("segment", 0)) + 1


def seed_words(seed: int, segment: int = 0) -> UInt32[np.ndarray, " 2"]:
    """The key of ``jax.random`` with this seed, as words: made by NumPy, nothing to compile.

    >>> seed_words(7)
    array([0, 7], dtype=uint32)
    """
    if segment:
        return np.random.SeedSequence([seed, segment]).generate_state(2)
    if seed >= 2**64:
        return np.random.SeedSequence(seed).generate_state(2)
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)

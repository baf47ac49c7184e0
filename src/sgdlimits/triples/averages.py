"""Means over independent batches of a triple's data, in memory that does not grow with them."""

import math
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sgdlimits._compiled import compiled
from sgdlimits._pieces import Pieces
from sgdlimits._precision import staged
from sgdlimits.triples.triple import Triple

BATCHES = 20  # independent batches of samples, whose spread is the standard error
ENTRIES = 2**18  # real numbers held at once: 2 MB, which caches hold; 2**21 is slower
LONGEST = 16  # samples in a chunk at most; a short batch has one chunk


def derived(seed: int, *purpose: str | int) -> int:
    """A seed of its own for each purpose: seeds next to one another share no samples."""
    words = [zlib.crc32(str(part).encode()) for part in purpose]
    return int(np.random.SeedSequence([seed, *words]).generate_state(1)[0])


def batch_size(samples: int) -> int:
    """Samples in each of the ``BATCHES`` batches: at least as many as asked for in all."""
    return math.ceil(samples / BATCHES)


def averages(
    function: Callable[..., Any], triple: Triple, dim: int, arguments: Any, samples: int, seed: int
) -> Any:
    """Means of ``function(triple, dim, arguments, datum)`` over independent batches of samples.

    Args:
        function: gives a pytree of arrays for one datum; a module's own function, so that it is
            compiled once.
        triple: whose data are sampled.
        dim: the dimension.
        arguments: a pytree of arrays.
        samples: in all batches together, rounded up to a multiple of their number.
        seed: of the data; sample i is the same whatever the size of the chunks.

    Returns:
        The pytree with a leading axis for the ``BATCHES`` batches. Memory does not grow with
        ``samples``: data are drawn, used and forgotten in chunks.
    """
    key = jax.random.key(seed)
    datum = jax.eval_shape(lambda: triple.sample(key, dim))
    result = jax.eval_shape(lambda x: function(triple, dim, arguments, x), datum)
    entries = sum(int(np.prod(x.shape)) for x in jax.tree.leaves((datum, result, arguments)))
    per_batch = batch_size(samples)
    chunk = max(1, min(ENTRIES // max(entries, 1), per_batch, LONGEST))
    totals = jax.tree.map(lambda x: np.zeros((BATCHES, *x.shape)), result)
    count = staged(per_batch)  # an array: one compilation serves all numbers of samples

    def some(first: int, last: int) -> None:
        nonlocal totals
        span = staged(first), staged(last)
        totals = _added(function, triple, dim, arguments, totals, key, count, span, chunk)
        jax.block_until_ready(totals)

    Pieces().of(BATCHES * -(-per_batch // chunk), some)
    return jax.tree.map(lambda x: np.asarray(x) / per_batch, totals)


@compiled
def _added(
    function: Callable[..., Any],
    triple: Triple,
    dim: int,
    arguments: Any,
    totals: Any,
    key: Any,
    per_batch: Array,
    span: tuple[Array, Array],
    chunk: int,
) -> Any:
    """The totals of all batches, and some more chunks of samples, which are counted over all."""
    chunks = (per_batch + chunk - 1) // chunk

    def one(index: Array) -> Any:
        datum = triple.sample(jax.random.fold_in(key, index), dim)
        return function(triple, dim, arguments, datum)

    def add(index: Array, totals: Any) -> Any:
        batch, number = jax.lax.div(index, chunks), jax.lax.rem(index, chunks)
        numbers = number * chunk + jnp.arange(chunk)
        values = jax.vmap(one)(batch * per_batch + numbers)

        def masked(value: Array) -> Array:  # the last chunk is padded
            inside = (numbers < per_batch).reshape((chunk,) + (1,) * (value.ndim - 1))
            return jnp.sum(jnp.where(inside, value, 0), axis=0)

        return jax.tree.map(lambda t, v: t.at[batch].add(masked(v)), totals, values)

    return jax.lax.fori_loop(*span, add, totals)

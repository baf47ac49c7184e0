"""Level sets enriched: parameters that differ in more ways than runs of SGD do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.triples.averages import averages
from sgdlimits.triples.triple import Params, Triple

BLOCKS = 4  # most blocks into which an axis is cut
FACTOR = 3.0  # by which a block is multiplied or divided at most


def enriched(triple: Triple, dim: int, pool: Params, samples: int, seed: int) -> Params:
    """Each state of the pool (along a leading axis), varied inside its arrays.

    Runs of SGD from one initial law differ little in where the mass of an array sits, and a drift
    that depends on it goes unseen. So the longest axis of every array is cut into two to four
    blocks at random fractions, and every block of every row is multiplied by a factor between ⅓
    and 3. Coordinates are taken in their own order for half of the states, and by the size of their
    gradients, E[(∂ᵢL)²], for the others: kinds of coordinates are found wherever they sit.

    Cuts and factors depend on ``seed`` only, so that state i at one dim can be compared with state
    i at another. Sizes of gradients come from ``samples`` data that no later estimate uses.
    """
    # of whatever statistics: they are left out, so that one program serves all sets of them
    bare = Triple(triple.loss, triple.sample, _none, _none)
    sizes = averages(_squares, bare, dim, pool, samples, seed)
    sizes = jax.tree.map(lambda x: x.mean(axis=(0, 1)), sizes)
    generator = np.random.default_rng(seed)
    return jax.tree.map(lambda x, g: _blocked(np.asarray(x), g, generator), pool, sizes)


def _blocked(
    leaf: np.ndarray, sizes: np.ndarray, generator: np.random.Generator
) -> Float[Array, "..."]:
    """An array (states along its first axis) times factors that are constant on blocks."""
    if leaf.ndim < 2:
        return jnp.asarray(leaf)
    axis = int(np.argmax(leaf.shape[1:])) + 1
    length = leaf.shape[axis]
    rows = np.moveaxis(leaf, axis, -1)
    total = np.moveaxis(sizes, axis - 1, -1).reshape(-1, length).sum(axis=0)
    rank = np.argsort(np.argsort(total, kind="stable"), kind="stable")
    factors = np.ones(rows.shape)
    for state in range(len(leaf)):
        order = rank if state % 2 else np.arange(length)
        cuts = np.sort(generator.uniform(0.1, 0.9, size=generator.integers(1, BLOCKS)))
        block = np.searchsorted(cuts, (order + 0.5) / length)
        drawn = generator.uniform(-1, 1, size=(*rows.shape[1:-1], BLOCKS))
        factors[state] = FACTOR ** drawn[..., block]
    return jnp.asarray(np.moveaxis(rows * factors, -1, axis))


def _none(*arguments: Any) -> Any:
    """No statistics and no initial law: nobody asks for them."""
    raise NotImplementedError(arguments)


def _squares(triple: Triple, dim: int, states: Params, datum: Any) -> Params:  # noqa: ARG001
    gradients = jax.vmap(lambda params: jax.grad(triple.loss)(params, datum))(states)
    return jax.tree.map(lambda g: g**2, gradients)

"""Data sets of a multi-index task in all dim coordinates, and training on them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits._precision import double_precision
from sgdlimits._types import State
from sgdlimits.simulate.multi_index_direct import MultiIndexDirect, make_direct
from sgdlimits.tasks import MultiIndexFamily

_TEST = 2**30  # a run number that training never uses: independent data


class DataSet(NamedTuple):
    """Samples as rows of x, and their labels."""

    x: np.ndarray
    labels: np.ndarray


class Weights(NamedTuple):
    """Weights W (width × dim) and the readout v, None where it is fixed."""

    W: np.ndarray
    v: np.ndarray | None


class Training:
    """One run of direct SGD that can be stopped at any time, with the data that it sees.

    The anchors lie in the first coordinates (:func:`anchors`).
    """

    @double_precision
    def __init__(self, task: MultiIndexFamily, dim: int, step: float, seed: int, start: State):
        self.step, self.dim = step, dim
        self.process: MultiIndexDirect = make_direct(task, dim, step, 0)
        self.key = jax.random.key(seed)
        self.start = {name: np.asarray(value)[None] for name, value in start.items()}

    def weights_at(self, times: np.ndarray) -> Iterator[Weights]:
        """Weights at increasing times, in units of dim/step samples."""
        carry, done = None, 0
        for steps in np.round(np.asarray(times) * self.dim / self.step).astype(int):
            carry = self._advance(carry, done, int(steps))
            done = int(steps)
            v, W = carry
            yield Weights(np.asarray(W[0]), None if v is None else np.asarray(v[0]))

    @double_precision
    def _advance(self, carry: Any, first: int, last: int) -> Any:
        if carry is None:
            carry = self.process.start(self.start)
        return _advance(self.process, carry, self.key, jnp.asarray(first), jnp.asarray(last))

    def seen(self, samples: int) -> DataSet:
        """The first samples that SGD steps on."""
        return self._draw(jax.random.fold_in(self.key, 0), samples)

    def unseen(self, samples: int) -> DataSet:
        """Independent samples."""
        return self._draw(jax.random.fold_in(self.key, _TEST), samples)

    @double_precision
    def _draw(self, key: Array, samples: int) -> DataSet:
        x, labels = _data(self.process, key, jnp.arange(samples))
        return DataSet(np.asarray(x), np.asarray(labels, dtype=float))


def anchors(task: MultiIndexFamily, dim: int) -> np.ndarray:
    """The anchors as rows in R^dim: the Cholesky factor of their Gram matrix, then zeros."""
    r = len(task.anchors)
    return np.concatenate([np.linalg.cholesky(task.gram), np.zeros((r, dim - r))], axis=1)


_advance = eqx.filter_jit(MultiIndexDirect.advance)


@eqx.filter_jit
def _data(
    process: MultiIndexDirect, key: Array, numbers: Int[Array, " n"]
) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    return jax.vmap(lambda i: process.datum(jax.random.fold_in(key, i)))(numbers)

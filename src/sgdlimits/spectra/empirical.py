"""The empirical Hessian and gradient second-moment matrix of a multi-index task, matrix-free.

    hessian = (1/n) Σ_l ∇²loss(x_l),   gradient = (1/n) Σ_l ∇loss(x_l) ∇loss(x_l)ᵀ

without the ridge. A block between rows of W is (1/n) Xᵀ diag(D) X (:mod:`blocks`): two products
with the data for a product with the block, never a loop over samples, never a matrix unless asked.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import as_arrays, double_precision
from sgdlimits._types import WholeNumber, Word
from sgdlimits.spectra.blocks import (
    MATRICES,
    Block,
    field_weights,
    find_block,
    readout_matrices,
)
from sgdlimits.spectra.data import DataSet, Weights
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature
from sgdlimits.tasks import MultiIndex


class Empirical:
    """Hessian and gradient matrix at given weights, on given data.

    Args:
        task: a multi-index task.
        data: samples as rows ``x``, and ``labels``.
        W: weights, width × dim.
        v: the readout, if it is trained.
    """

    def __init__(self, task: MultiIndex, data: DataSet, W: Any, v: Any = None):
        self.task = task
        x = _checks.array("x", data.x, None)
        if x.ndim != 2:
            raise ValueError(f"x has shape {x.shape}, which is not allowed: one sample per row")
        self.x, self.dim = x, x.shape[1]
        self.labels = _checks.array("labels", data.labels, (len(x),))
        self.W = _checks.array("W", W, (task.width, self.dim))
        if (v is None) == task.trained:
            wanted = "must be given" if task.trained else "must be None"
            raise ValueError(f"v={v!r} is not allowed: v {wanted} for {type(task).__name__}")
        self.v = None if v is None else _checks.array("v", v, (task.width,))
        self.fields = x @ self.W.T
        self._weights: dict[tuple[str, Block], np.ndarray] = {}

    @double_precision
    def weights(self, matrix: Word, block: Any) -> np.ndarray:
        """D of every sample, for a block between rows of W."""
        found = self._block(matrix, block)
        if found.i is None:
            raise ValueError("block='vv' is not allowed: it is no weighted data product")
        key = (str(matrix), found)
        if key not in self._weights:
            pair = jnp.asarray(found.i), jnp.asarray(found.j)
            seen = self._seen()
            self._weights[key] = np.asarray(
                field_weights(as_arrays(self.task), matrix, *pair, *seen)
            )
        return self._weights[key]

    def product(self, matrix: Word, block: Any, vectors: Any) -> np.ndarray:
        """A block times a vector, or times the columns of a matrix."""
        D = self.weights(matrix, block)
        columns = np.asarray(vectors, dtype=float)
        image = self.x @ columns
        return self.x.T @ (D.reshape(-1, *[1] * (columns.ndim - 1)) * image) / len(self.x)

    def whole_product(self, matrix: Word, vector: Any) -> np.ndarray:
        """The part of all rows of W, (width·dim)², times a vector of width·dim entries."""
        K, n = self.task.width, len(self.x)
        u = _checks.array("vector", vector, (K * self.dim,)).reshape(K, self.dim)
        seen = self.x @ u.T
        image = np.zeros((n, K))
        for i in range(K):
            for j in range(K):
                image[:, i] += self.weights(matrix, (i, j)) * seen[:, j]
        return np.asarray((image.T @ self.x).ravel() / n)

    @double_precision
    def dense(self, matrix: Word, block: Any) -> np.ndarray:
        """A block as an array."""
        found = self._block(matrix, block)
        if found.i is None:
            fields, readout, labels = self._seen()
            assert readout is not None
            even = jnp.full(len(self.x), 1 / len(self.x))
            task = as_arrays(self.task)
            return np.asarray(readout_matrices(task, matrix, fields, readout, labels, even))
        return self.product(matrix, found, np.eye(self.dim))

    def eigenvalues(self, matrix: Word, block: Any) -> np.ndarray:
        """All eigenvalues of a block, increasing; forms it."""
        return np.linalg.eigvalsh(self.dense(matrix, block))

    def leading(
        self,
        matrix: Word,
        blocks: Sequence[Any],
        rank: WholeNumber,
        start: np.ndarray | None = None,
        tolerance: float = 1e-8,
    ) -> Pairs:
        """Leading eigenpairs, by absolute value, of several blocks between rows of W at once."""
        k = _checks.integer("rank", rank, least=1)
        D = np.stack([self.weights(matrix, block) for block in blocks], axis=1) / len(self.x)

        def apply(vectors: np.ndarray) -> np.ndarray:
            count, size, columns = vectors.shape
            image = self.x @ np.moveaxis(vectors, 0, 1).reshape(size, -1)
            image = image.reshape(-1, count, columns) * D[:, :, None]
            result = self.x.T @ image.reshape(len(self.x), -1)
            return np.moveaxis(result.reshape(size, count, columns), 1, 0)

        return leading_pairs(apply, len(blocks), self.dim, k, start=start, tolerance=tolerance)

    def density(
        self, matrix: Word, block: Any, probes: WholeNumber = 8, steps: WholeNumber = 60
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of the spectral measure, by stochastic Lanczos quadrature."""
        probes = _checks.integer("probes", probes, least=1)
        steps = _checks.integer("steps", steps, least=2)
        nodes, weights = quadrature(
            lambda u: self.product(matrix, block, u), self.dim, probes=probes, steps=steps, seed=0
        )
        return nodes.ravel(), weights.ravel()

    def _block(self, matrix: Word, block: Any) -> Block:
        _checks.choice("matrix", matrix, MATRICES)
        return block if isinstance(block, Block) else find_block(self.task, block)

    def _seen(self) -> tuple[Any, Any, Any]:
        readout = None if self.v is None else jnp.asarray(self.v)
        return jnp.asarray(self.fields), readout, jnp.asarray(self.labels)


def at(task: MultiIndex, data: DataSet, weights: Weights) -> Empirical:
    """The matrices at the weights of a training run."""
    return Empirical(task, data, weights.W, weights.v)

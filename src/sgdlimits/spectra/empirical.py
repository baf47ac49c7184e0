"""The empirical Hessian and gradient second-moment matrix of a multi-index task, matrix-free.

    hessian = (1/n) Σ_l ∇²loss(x_l),   gradient = (1/n) Σ_l ∇loss(x_l) ∇loss(x_l)ᵀ

without the ridge. A block between rows of W is (1/n) Xᵀ diag(D) X (:mod:`blocks`): two products
with the data for a product with the block, never a loop over samples; and so is the whole matrix,
which is never formed unless asked.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.linalg.blas import dsyrk

from sgdlimits import _checks
from sgdlimits._precision import as_arrays, double_precision
from sgdlimits._types import WholeNumber, Word
from sgdlimits.spectra.blocks import (
    MATRICES,
    Block,
    cross_weights,
    field_weights,
    find_block,
    readout_matrices,
    whole_products,
)
from sgdlimits.spectra.data import DataSet, Weights
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature, top_pairs
from sgdlimits.tasks import MultiIndexFamily

ALL = "all"
DENSE = 1500  # rows of a block up to which it is formed to find its leading eigenpairs
CHUNK = 4096  # samples


class Empirical:
    """Hessian and gradient matrix at given weights, on given data.

    Args:
        task: a multi-index task.
        data: samples as rows ``x``, and ``labels``.
        W: weights, width × dim.
        v: the readout, if it is trained.
    """

    def __init__(self, task: MultiIndexFamily, data: DataSet, W: Any, v: Any = None):
        self.task = task
        x = _checks.array("x", data.x, None)
        if x.ndim != 2:
            raise _checks.InputError(
                f"x has shape {x.shape}, which is not allowed: one sample per row"
            )
        self.x, self.dim = x, x.shape[1]
        self.labels = _checks.array("labels", data.labels, (len(x),))
        self.W = _checks.array("W", W, (task.width, self.dim))
        if (v is None) == task.trained:
            wanted = "must be given" if task.trained else "must be None"
            raise _checks.InputError(
                f"v={v!r} is not allowed: v {wanted} for {type(task).__name__}"
            )
        self.v = None if v is None else _checks.array("v", v, (task.width,))
        self.size = self.W.size + (0 if v is None else task.width)
        self.fields = x @ self.W.T
        self._weights: dict[tuple[str, Block], np.ndarray] = {}

    @double_precision
    def weights(self, matrix: Word, block: Any) -> np.ndarray:
        """D of every sample, for a block between rows of W."""
        found = self._block(matrix, block)
        if found.i is None:
            raise _checks.InputError(
                f"block={found.name!r} is not allowed: it must be between rows of W"
            )
        key = (str(matrix), found)
        if key not in self._weights:
            pair = jnp.asarray(found.i), jnp.asarray(found.j)
            seen = self._seen()
            self._weights[key] = np.asarray(
                field_weights(as_arrays(self.task), matrix, *pair, *seen)
            )
        return self._weights[key]

    def product(self, matrix: Word, block: Any, vectors: Any) -> np.ndarray:
        """A block, or "all", times a vector or times the columns of a matrix."""
        columns = np.asarray(vectors, dtype=float)
        if block == ALL:
            each = [self._whole_product(matrix, u) for u in columns.reshape(len(columns), -1).T]
            return np.stack(each, axis=1).reshape(-1, *columns.shape[1:])
        found = self._block(matrix, block)
        if found.i is None:
            return self.dense(matrix, found) @ columns
        D = self.weights(matrix, found)
        image = self.x @ columns
        return self.x.T @ (D.reshape(-1, *[1] * (columns.ndim - 1)) * image) / len(self.x)

    @double_precision
    def _whole_product(self, matrix: Word, vector: np.ndarray) -> np.ndarray:
        _checks.choice("matrix", matrix, MATRICES)
        u = _checks.array("vectors", vector, (self.size,))
        rows = u[: self.W.size].reshape(self.W.shape)
        readout = None if self.v is None else jnp.asarray(u[self.W.size :])
        along = (jnp.asarray(self.x @ rows.T), readout)
        of_s, of_v = whole_products(as_arrays(self.task), matrix, *self._seen(), along)
        parts = [(np.asarray(of_s).T @ self.x).ravel() / len(self.x)]
        if of_v is not None:
            parts.append(np.asarray(of_v).mean(axis=0))
        return np.concatenate(parts)

    @double_precision
    def dense(self, matrix: Word, block: Any) -> np.ndarray:
        """A block as an array; "all" is the whole matrix, rows of W one after another, then v."""
        if block == ALL:
            return self._assembled(matrix)
        found = self._block(matrix, block)
        n, task = len(self.x), as_arrays(self.task)
        if found.i is not None:
            return _weighted(self.x, self.weights(matrix, found)) / n
        fields, readout, labels = self._seen()
        if found.j is None:
            even = jnp.full(n, 1 / n)
            return np.asarray(readout_matrices(task, matrix, fields, readout, labels, even))
        each = cross_weights(task, matrix, jnp.asarray(found.j), fields, readout, labels)
        return np.asarray(each).T @ self.x / n

    def _assembled(self, matrix: Word) -> np.ndarray:
        K = self.task.width
        rows = [[self.dense(matrix, (i, j)) for j in range(K)] for i in range(K)]
        if self.v is not None:
            across = [self.dense(matrix, Block(None, j)) for j in range(K)]
            rows = [[*row, below.T] for row, below in zip(rows, across, strict=True)]
            rows.append([*across, self.dense(matrix, "vv")])
        return np.block(rows)

    def eigenvalues(self, matrix: Word, block: Any) -> np.ndarray:
        """All eigenvalues of a block, increasing; forms it."""
        A = self.dense(matrix, block)
        if A.shape[0] != A.shape[1]:
            raise _checks.InputError(f"block={block!r} is not allowed: it is not square")
        return np.linalg.eigvalsh(A)

    def leading(
        self,
        matrix: Word,
        blocks: Sequence[Any],
        rank: WholeNumber,
        start: np.ndarray | None = None,
        tolerance: float = 1e-8,
    ) -> Pairs:
        """Leading eigenpairs, by absolute value, of several blocks between rows of W, or of "all".

        Blocks of at most ``DENSE`` rows are formed one at a time: that is faster. Larger ones are
        never formed: all take the steps of a block Lanczos method together, from ``start`` if
        given, until residuals are below ``tolerance`` times the largest eigenvalue.
        """
        k = _checks.integer("rank", rank, least=1)
        if k > len(self.x):
            raise _checks.InputError(
                f"rank={k} is not allowed: {len(self.x)} samples make at most {len(self.x)} "
                "eigenvalues other than 0"
            )
        if list(blocks) == [ALL]:

            def whole(vectors: np.ndarray) -> np.ndarray:
                return self.product(matrix, ALL, vectors[0])[None]

            return leading_pairs(whole, 1, self.size, k, start=start, tolerance=tolerance)
        if k > self.dim:
            raise _checks.InputError(
                f"rank={k} is not allowed: blocks have only {self.dim} eigenvalues"
            )
        if self.dim <= DENSE:
            pairs = [
                top_pairs(
                    self.dense(matrix, block),
                    k,
                    positive=bool(np.all(self.weights(matrix, block) >= 0)),
                )
                for block in blocks
            ]
            return Pairs(np.stack([p.values for p in pairs]), np.stack([p.vectors for p in pairs]))
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
        size = self.size if block == ALL else self.dim
        nodes, weights = quadrature(
            lambda u: self.product(matrix, block, u), size, probes=probes, steps=steps, seed=0
        )
        return nodes.ravel(), weights.ravel()

    def _block(self, matrix: Word, block: Any) -> Block:
        _checks.choice("matrix", matrix, MATRICES)
        return block if isinstance(block, Block) else find_block(self.task, block)

    def _seen(self) -> tuple[Any, Any, Any]:
        readout = None if self.v is None else jnp.asarray(self.v)
        return jnp.asarray(self.fields), readout, jnp.asarray(self.labels)


def _weighted(x: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Xᵀ diag(D) X, a few thousand samples at a time; half the work where D has one sign."""
    one_sign = bool(np.all(D >= 0) or np.all(D <= 0))
    total = np.zeros((x.shape[1], x.shape[1]), order="F")
    for first in range(0, len(x), CHUNK):
        part, weights = x[first : first + CHUNK], D[first : first + CHUNK, None]
        if one_sign:
            scaled = np.sqrt(np.abs(weights)) * part
            total = dsyrk(1.0, scaled.T, beta=1.0, c=total, overwrite_c=True)
        else:
            total += part.T @ (weights * part)
    if not one_sign:
        return (total + total.T) / 2
    sign = 1.0 if D.sum() >= 0 else -1.0
    return sign * (np.triu(total) + np.triu(total, 1).T)


def at(task: MultiIndexFamily, data: DataSet, weights: Weights) -> Empirical:
    """The matrices at the weights of a training run."""
    return Empirical(task, data, weights.W, weights.v)

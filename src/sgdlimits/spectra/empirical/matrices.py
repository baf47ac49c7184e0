"""The empirical Hessian and gradient second-moment matrix of a multi-index task, matrix-free.

    hessian = (1/n) Σ_ℓ ∇²loss(x_ℓ),   gradient = (1/n) Σ_ℓ ∇loss(x_ℓ) ∇loss(x_ℓ)ᵀ

without the ridge. A block between rows of W is (1/n) Xᵀ diag(D) X, with the samples as rows of X
and their weights D (:mod:`sgdlimits.spectra.derivatives`): a product with it takes two products
with X, never a loop over samples. The same holds for the matrix of all parameters; it is formed
only where ``dense`` asks for it.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.linalg.blas import dsyrk

from sgdlimits import _checks
from sgdlimits._precision import as_arrays, double_precision
from sgdlimits._types import WholeNumber, Word
from sgdlimits.simulate import DataSet
from sgdlimits.spectra.blocks import MATRICES, Block, BlockLike, find_block, multi_index
from sgdlimits.spectra.derivatives import cross_weights, field_weights, products, readout_matrix
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature, top_pairs
from sgdlimits.tasks import MultiIndexFamily

ALL = "all"
DENSE = 1500  # rows of a block up to which it is formed to find its leading eigenpairs
CHUNK = 4096  # samples whose weighted copies are held at a time


class Empirical:
    """Hessian and gradient matrix at given weights, on given data.

    In all methods ``matrix`` is "hessian" or "gradient", and ``block`` is a name such as "W0W1",
    "vv" or "vW0", a pair of rows such as (0, 1), or one number i for (i, i). Some methods also take
    "all", the matrix of all parameters: rows of W one after another, then v.

    Args:
        task: a multi-index task.
        data: samples as rows ``x``, and ``labels``.
        W: weights, width × dim.
        v: the readout, if it is trained.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.GaussianMixture(classes=2)
    >>> training = sl.spectra.Training(task, dim=20)
    >>> start = next(training.weights_at([0.0]))
    >>> Empirical(task, training.unseen(100), start.W).eigenvalues("hessian", 0).shape
    (20,)
    """

    def __init__(self, task: MultiIndexFamily, data: DataSet, W: Any, v: Any = None):
        task = multi_index(task)
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
    def weights(self, matrix: Word, block: BlockLike) -> np.ndarray:
        """D of every sample, for a block between rows of W."""
        chosen = self._block(matrix, block)
        if chosen.i is None:
            raise _checks.InputError(
                f"block={chosen.name!r} is not allowed: it must be between rows of W"
            )
        key = (str(matrix), chosen)
        if key not in self._weights:
            pair = jnp.asarray(chosen.i), jnp.asarray(chosen.j)
            self._weights[key] = np.asarray(
                field_weights(as_arrays(self.task), matrix, *pair, *self._samples())
            )
        return self._weights[key]

    def product(self, matrix: Word, block: BlockLike, vectors: Any) -> np.ndarray:
        """A block, or "all", times a vector or times the columns of a matrix."""
        columns = _checks.array("vectors", vectors, None)
        length = self._shape(matrix, block)[1]
        if columns.ndim not in (1, 2) or len(columns) != length:
            raise _checks.InputError(
                f"vectors has shape {columns.shape}, which is not allowed: a vector must have "
                f"length {length}, a matrix as many rows"
            )
        if block == ALL:
            each = [self._whole_product(matrix, u) for u in columns.reshape(len(columns), -1).T]
            return np.stack(each, axis=1).reshape(-1, *columns.shape[1:])
        chosen = self._block(matrix, block)
        if chosen.i is None:
            return self.dense(matrix, chosen) @ columns
        D = self.weights(matrix, chosen)
        image = self.x @ columns
        return self.x.T @ (D.reshape(-1, *[1] * (columns.ndim - 1)) * image) / len(self.x)

    @double_precision
    def _whole_product(self, matrix: Word, vector: np.ndarray) -> np.ndarray:
        _checks.choice("matrix", matrix, MATRICES)
        u = _checks.array("vectors", vector, (self.size,))
        rows = u[: self.W.size].reshape(self.W.shape)
        readout = None if self.v is None else jnp.asarray(u[self.W.size :])
        moved = (jnp.asarray(self.x @ rows.T), readout)
        along_s, along_v = products(as_arrays(self.task), matrix, *self._samples(), *moved)
        parts = [(np.asarray(along_s).T @ self.x).ravel() / len(self.x)]
        if along_v is not None:
            parts.append(np.asarray(along_v).mean(axis=0))
        return np.concatenate(parts)

    @double_precision
    def dense(self, matrix: Word, block: BlockLike) -> np.ndarray:
        """A block, or "all", as an array."""
        if block == ALL:
            return self._assembled(matrix)
        chosen = self._block(matrix, block)
        n, task = len(self.x), as_arrays(self.task)
        if chosen.i is not None:
            return _weighted(self.x, self.weights(matrix, chosen)) / n
        fields, readout, labels = self._samples()
        if chosen.j is None:
            even = jnp.full(n, 1 / n)
            return np.asarray(readout_matrix(task, matrix, fields, readout, labels, even))
        each = cross_weights(task, matrix, jnp.asarray(chosen.j), fields, readout, labels)
        return np.asarray(each).T @ self.x / n

    def _assembled(self, matrix: Word) -> np.ndarray:
        K = self.task.width
        rows = [[self.dense(matrix, (i, j)) for j in range(K)] for i in range(K)]
        if self.v is not None:
            across = [self.dense(matrix, Block(None, j)) for j in range(K)]
            rows = [[*row, below.T] for row, below in zip(rows, across, strict=True)]
            rows.append([*across, self.dense(matrix, "vv")])
        return np.block(rows)

    def eigenvalues(self, matrix: Word, block: BlockLike) -> np.ndarray:
        """All eigenvalues of a block, or of "all", increasing; the matrix is formed."""
        self._square(matrix, block)
        return np.linalg.eigvalsh(self.dense(matrix, block))

    def leading(
        self,
        matrix: Word,
        blocks: Sequence[BlockLike],
        rank: WholeNumber,
        start: np.ndarray | None = None,
        tolerance: float = 1e-8,
    ) -> Pairs:
        """Leading eigenpairs, by absolute value, of several blocks between rows of W, or of "all".

        Blocks of at most 1500 rows are formed one at a time: that is faster. Larger ones are never
        formed: all take the steps of a block Lanczos method together.

        Args:
            matrix: "hessian" or "gradient".
            blocks: blocks between rows of W, or ["all"].
            rank: how many pairs of each.
            start: approximate eigenvectors from which Lanczos starts, (blocks, size, columns).
            tolerance: of the residuals |S u − x u|, relative to the largest eigenvalue.

        Returns:
            Values (blocks, rank), and vectors in columns (blocks, size, rank).
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
        self, matrix: Word, block: BlockLike, probes: WholeNumber = 8, steps: WholeNumber = 60
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of the spectral measure, by stochastic Lanczos quadrature.

        Args:
            matrix: "hessian" or "gradient".
            block: a square block, or "all".
            probes: random vectors; the error falls as 1/√probes.
            steps: of Lanczos with each of them, which gives as many nodes.
        """
        probes = _checks.integer("probes", probes, least=1)
        steps = _checks.integer("steps", steps, least=2)
        size = self._square(matrix, block)
        nodes, weights = quadrature(
            lambda u: self.product(matrix, block, u), size, probes=probes, steps=steps, seed=0
        )
        return nodes.ravel(), weights.ravel()

    def _block(self, matrix: Word, block: BlockLike) -> Block:
        _checks.choice("matrix", matrix, MATRICES)
        return block if isinstance(block, Block) else find_block(self.task, block)

    def _shape(self, matrix: Word, block: BlockLike) -> tuple[int, int]:
        if block == ALL:
            return self.size, self.size
        rows, columns = (
            self.task.width if k is None else self.dim for k in self._block(matrix, block)
        )
        return rows, columns

    def _square(self, matrix: Word, block: BlockLike) -> int:
        """The number of rows of a block, if it has as many columns."""
        rows, columns = self._shape(matrix, block)
        if rows != columns:
            raise _checks.InputError(
                f"block={block!r} is not allowed: it is not square, so it has no eigenvalues"
            )
        return rows

    def _samples(self) -> tuple[Any, Any, Any]:
        """Fields, readout and labels as JAX arrays."""
        readout = None if self.v is None else jnp.asarray(self.v)
        return jnp.asarray(self.fields), readout, jnp.asarray(self.labels)


def _weighted(x: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Xᵀ diag(D) X, a few thousand samples at a time.

    Where D has one sign, it is ± a product of √|D| X with itself, of which BLAS computes one half.
    """
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

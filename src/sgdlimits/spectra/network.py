"""Hessian and gradient matrix of any JAX loss on any data, by blocks of its parameter tree.

    hessian = (1/n) Σ_l ∇²loss(params, x_l, y_l),   gradient = (1/n) Σ_l ∇loss_l ∇loss_lᵀ

A block is a subtree of the parameters, named by its path such as ``"0/weight"``. Products with a
block are derivatives along a direction: a Hessian product is one derivative of the gradient of the
mean loss, a product with the gradient matrix is Jᵀ(Ju)/n, J the derivative of all n losses.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import WholeNumber, Word
from sgdlimits.spectra.alignment import alignment
from sgdlimits.spectra.blocks import MATRICES
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature

Loss = Callable[[Any, Any, Any], Any]


class Network:
    """The matrices of a loss(params, x, y) of one sample, on a data set.

    Args:
        loss: of one sample.
        x: inputs, samples along the first axis.
        y: labels, samples along the first axis.

    >>> network = Network(lambda p, x, y: (x @ p["w"] - y) ** 2 / 2, np.eye(2), np.zeros(2))
    >>> network.dense({"w": np.ones(2)}, "hessian", "w").tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(self, loss: Loss, x: Any, y: Any):
        self.loss = loss
        self.x, self.y = np.asarray(x), np.asarray(y)
        if len(self.x) == 0 or len(self.x) != len(self.y):
            raise ValueError(
                f"x and y have {len(self.x)} and {len(self.y)} samples, which is not allowed: they "
                "must have as many, at least one"
            )
        self._products: dict[tuple[str, str], Any] = {}

    def blocks(self, params: Any) -> list[str]:
        """Names of all leaves, whose paths are joined by slashes; "all" is the whole tree."""
        return [*_leaves(params), "all"]

    def product(self, params: Any, matrix: Word, block: Word, vector: Any) -> np.ndarray:
        """A block times a vector of its flattened parameters."""
        return self._product(params, matrix, block)(np.asarray(vector, dtype=float))

    def dense(self, params: Any, matrix: Word, block: Word) -> np.ndarray:
        """A block as an array."""
        apply = self._product(params, matrix, block)
        size = self.size(params, block)
        return np.stack([apply(row) for row in np.eye(size)], axis=1)

    def leading(
        self, params: Any, matrix: Word, block: Word, rank: WholeNumber, tolerance: float = 1e-6
    ) -> Pairs:
        """Leading eigenpairs of a block, by absolute value."""
        apply = self._product(params, matrix, block)
        size = self.size(params, block)
        k = _checks.integer("rank", rank, least=1)
        if k > size:
            raise ValueError(f"rank={k} is not allowed: block {block!r} has only {size} parameters")

        def columns(vectors: np.ndarray) -> np.ndarray:
            return np.stack([apply(u) for u in vectors[0].T], axis=1)[None]

        found = leading_pairs(columns, 1, size, k, tolerance=tolerance)
        return Pairs(found.values[0], found.vectors[0])

    def density(
        self,
        params: Any,
        matrix: Word,
        block: Word,
        probes: WholeNumber = 4,
        steps: WholeNumber = 60,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of the spectral measure, by stochastic Lanczos quadrature."""
        probes = _checks.integer("probes", probes, least=1)
        steps = _checks.integer("steps", steps, least=2)
        apply, size = self._product(params, matrix, block), self.size(params, block)
        nodes, weights = quadrature(apply, size, probes=probes, steps=steps, seed=0)
        return nodes.ravel(), weights.ravel()

    def alignment(self, params: Any, matrix: Word, block: Word, rank: WholeNumber) -> float:
        """How far the parameters of a block lie in the span of its leading eigenvectors."""
        pairs = self.leading(params, matrix, block, rank)
        return alignment(self.flat(params, block), pairs.vectors)

    def size(self, params: Any, block: Word) -> int:
        """The number of parameters of a block."""
        return len(self.flat(params, block))

    def flat(self, params: Any, block: Word) -> np.ndarray:
        """The parameters of a block as one vector."""
        chosen = _select(params, self._known(params, block))
        return np.concatenate([np.ravel(leaf) for leaf in chosen.values()])

    def _known(self, params: Any, block: str) -> str:
        return _checks.choice("block", block, self.blocks(params))

    def _product(self, params: Any, matrix: str, block: str) -> Callable[[np.ndarray], np.ndarray]:
        _checks.choice("matrix", matrix, MATRICES)
        self._known(params, block)
        if (matrix, block) not in self._products:
            self._products[matrix, block] = jax.jit(_operator(self.loss, matrix, block))
        compiled = self._products[matrix, block]

        @double_precision
        def apply(vector: np.ndarray) -> np.ndarray:
            tree = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), params)
            return np.asarray(compiled(tree, self.x, self.y, jnp.asarray(vector)))

        return apply


def _operator(loss: Loss, matrix: str, block: str) -> Callable[..., Any]:
    def product(params: Any, x: Any, y: Any, vector: Any) -> Any:
        chosen = _select(params, block)
        flat, restore = ravel_pytree(chosen)

        def losses(flat: Any) -> Any:
            whole = _replace(params, restore(flat))
            return jax.vmap(lambda a, b: loss(whole, a, b))(x, y)

        if matrix == "hessian":
            gradient = jax.grad(lambda flat: jnp.mean(losses(flat)))
            return jax.jvp(gradient, (flat,), (vector,))[1]
        values, along = jax.jvp(losses, (flat,), (vector,))
        return jax.vjp(losses, flat)[1](along)[0] / len(values)

    return product


def _leaves(params: Any) -> dict[str, Any]:
    found = jax.tree_util.tree_flatten_with_path(params)[0]
    return {_name(path): leaf for path, leaf in found}


def _name(path: Any) -> str:
    return "/".join(
        str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path
    )


def _select(params: Any, block: str) -> dict[str, Any]:
    leaves = _leaves(params)
    return leaves if block == "all" else {block: leaves[block]}


def _replace(params: Any, chosen: dict[str, Any]) -> Any:
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: chosen.get(_name(path), leaf), params
    )

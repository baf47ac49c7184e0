"""Hessian and gradient matrix of any JAX loss on any data, by blocks of its parameter tree.

    hessian = (1/n) Σ_l ∇²loss(params, x_l, y_l),   gradient = (1/n) Σ_l ∇loss_l ∇loss_lᵀ

A block is a part of the parameters, named by its path: a leaf such as ``"0/weight"``, or all leaves
below a path such as ``"0"``. Products with a block are derivatives along a direction: a Hessian
product is one derivative of the gradient of the mean loss, a product with the gradient matrix is
Jᵀ(Ju)/n, J the derivative of all n losses.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.spectra.alignment import alignment
from sgdlimits.spectra.blocks import MATRICES
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature
from sgdlimits.spectra.network_track import Tracker

Loss = Callable[[Any, Any, Any], Any]

AT_ONCE = 2**17  # samples times columns in one product: bounds the memory, and is enough for speed


class Network:
    """The matrices of a loss(params, x, y) of one sample, on a data set.

    Parameters are any tree of real arrays; they are taken as float64.

    Args:
        loss: of one sample, a number.
        x: inputs, samples along the first axis.
        y: labels, samples along the first axis.

    >>> network = Network(lambda p, x, y: (x @ p["w"] - y) ** 2 / 2, np.eye(2), np.zeros(2))
    >>> network.dense({"w": np.ones(2)}, "hessian", "w").tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    def __init__(self, loss: Loss, x: Any, y: Any):
        self.loss = loss
        self.x, self.y = _real("x", x), _real("y", y)
        for name, values in (("x", self.x), ("y", self.y)):
            if values.ndim == 0:
                raise _checks.InputError(
                    f"{name} is one number, which is not allowed: it must be an array"
                )
        if len(self.x) == 0 or len(self.x) != len(self.y):
            raise _checks.InputError(
                f"x and y have {len(self.x)} and {len(self.y)} samples, which is not allowed: they "
                "must have as many, at least one"
            )
        self._products: dict[tuple[str, tuple[int, ...]], Any] = {}

    def blocks(self, params: Any) -> list[str]:
        """Names of all leaves, of subtrees with several leaves but not all, and "all".

        A name is a path, whose parts are joined by slashes.

        >>> network = Network(lambda p, x, y: 0.0 * y, np.zeros(1), np.zeros(1))
        >>> network.blocks({"hidden": [np.ones((2, 3)), np.ones(2)], "out": np.ones(2)})
        ['hidden/0', 'hidden/1', 'out', 'hidden', 'all']
        """
        places = _places(params)
        leaves = [_name(path) for path, _ in _leaves(params) if path]
        several = [name for name, own in places.items() if 1 < len(own) < len(places["all"])]
        return [*leaves, *several, "all"]

    def product(self, params: Any, matrix: Word, block: Word, vector: Any) -> np.ndarray:
        """A block times a vector of its flattened parameters."""
        apply = self._product(params, matrix, block)
        given = _checks.array("vector", vector, (self.size(params, block),))
        return apply(given[:, None])[:, 0]

    def dense(self, params: Any, matrix: Word, block: Word) -> np.ndarray:
        """A block as an array."""
        return self._product(params, matrix, block)(np.eye(self.size(params, block)))

    def leading(
        self,
        params: Any,
        matrix: Word,
        block: Word,
        rank: WholeNumber,
        tolerance: Number = 1e-6,
        start: Any = None,
    ) -> Pairs:
        """Leading eigenpairs of a block, by absolute value.

        Args:
            params: where the matrix is taken.
            matrix: "hessian" or "gradient".
            block: one of :meth:`blocks`.
            rank: how many pairs.
            tolerance: of the residuals, relative to the largest eigenvalue.
            start: approximate eigenvectors in columns to start from, random ones by default.
                Exact eigenvectors count as found, even if others have larger eigenvalues.
        """
        apply = self._product(params, matrix, block)
        size = self.size(params, block)
        k = _checks.integer("rank", rank, least=1)
        if k > size:
            raise _checks.InputError(
                f"rank={k} is not allowed: block {block!r} has only {size} parameters"
            )
        given = None if start is None else _checks.array("start", start, None)
        if given is not None and (given.ndim != 2 or len(given) != size):
            raise _checks.InputError(
                f"start has shape {given.shape}, which is not allowed: it must have {size} rows"
            )
        found = leading_pairs(
            lambda vectors: apply(vectors[0])[None],
            1,
            size,
            k,
            start=None if given is None else given[None],
            tolerance=_checks.positive("tolerance", tolerance),
        )
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
        nodes, weights = quadrature(
            lambda vector: apply(vector[:, None])[:, 0], size, probes=probes, steps=steps, seed=0
        )
        return nodes.ravel(), weights.ravel()

    def alignment(self, params: Any, matrix: Word, block: Word, rank: WholeNumber) -> float:
        """How far the parameters of a block lie in the span of its leading eigenvectors."""
        pairs = self.leading(params, matrix, block, rank)
        return alignment(self.flat(params, block), pairs.vectors)

    def tracker(
        self,
        blocks: Sequence[Word] | None = None,
        rank: WholeNumber = 10,
        matrices: Sequence[Word] = MATRICES,
        tolerance: Number = 1e-6,
    ) -> Tracker:
        """A callback ``tracker(time, params)`` for your training loop, see :class:`Tracker`.

        Args:
            blocks: names of blocks, all of them by default.
            rank: how many leading eigenvectors.
            matrices: of "hessian" and "gradient".
            tolerance: of the residuals, relative to the largest eigenvalue.
        """
        return Tracker(self, blocks, rank, matrices, tolerance)

    def size(self, params: Any, block: Word) -> int:
        """The number of parameters of a block."""
        return len(self.flat(params, block))

    def flat(self, params: Any, block: Word) -> np.ndarray:
        """The parameters of a block as one vector."""
        places = self._find(params, block)
        leaves = _checked(params)
        return np.concatenate([leaves[place].ravel() for place in places])

    def _find(self, params: Any, block: str) -> tuple[int, ...]:
        places = _places(params)
        if not isinstance(block, str) or block not in places:
            _checks.choice("block", block, self.blocks(params))
        return places[block]

    def _product(self, params: Any, matrix: str, block: str) -> Callable[[np.ndarray], np.ndarray]:
        """From vectors in columns to the block times each."""
        _checks.choice("matrix", matrix, MATRICES)
        places = self._find(params, block)
        if (matrix, places) not in self._products:
            self._products[matrix, places] = jax.jit(_operator(self.loss, matrix, places))
        compiled = self._products[matrix, places]
        tree = jax.tree.unflatten(jax.tree.structure(params), _checked(params))
        most = max(1, AT_ONCE // len(self.x))

        @double_precision
        def apply(vectors: np.ndarray) -> np.ndarray:
            count = vectors.shape[1]
            width = min(count, most)
            full = np.pad(vectors, ((0, 0), (0, -count % width)))  # one shape, one compilation
            images = [
                compiled(tree, self.x, self.y, full[:, at : at + width])
                for at in range(0, full.shape[1], width)
            ]
            return np.concatenate(images, axis=1)[:, :count]

        return apply


def _operator(loss: Loss, matrix: str, places: tuple[int, ...]) -> Callable[..., Any]:
    def product(params: Any, x: Any, y: Any, vectors: Any) -> Any:
        leaves, tree = jax.tree.flatten(params)
        flat, restore = ravel_pytree([leaves[place] for place in places])

        def losses(flat: Any) -> Any:
            parts = dict(zip(places, restore(flat), strict=True))
            whole = jax.tree.unflatten(tree, [parts.get(k, leaf) for k, leaf in enumerate(leaves)])
            values = jax.vmap(lambda a, b: loss(whole, a, b))(x, y)
            if values.ndim != 1:
                raise _checks.InputError(
                    f"loss gives an array of shape {values.shape[1:]}, which is not allowed: the "
                    "loss of one sample must be a number"
                )
            return values

        def hessian(vector: Any) -> Any:
            gradient = jax.grad(lambda flat: jnp.mean(losses(flat)))
            return jax.jvp(gradient, (flat,), (vector,))[1]

        def gradient(vector: Any) -> Any:
            along = jax.jvp(losses, (flat,), (vector,))[1]
            return jax.vjp(losses, flat)[1](along)[0] / len(along)

        along = hessian if matrix == "hessian" else gradient
        return jax.vmap(along, in_axes=1, out_axes=1)(vectors)

    return product


def _leaves(params: Any) -> list[tuple[Any, Any]]:
    """Paths and leaves, in the order of the tree."""
    found = jax.tree_util.tree_flatten_with_path(params)[0]
    if not found:
        raise _checks.InputError(
            f"params={params!r} is not allowed: it must have at least one array"
        )
    return found


def _places(params: Any) -> dict[str, tuple[int, ...]]:
    """Names of all parts of a tree, and which of its leaves they have."""
    found: dict[Any, tuple[int, ...]] = {}
    for place, (path, _) in enumerate(_leaves(params)):
        for length in range(1, len(path) + 1):
            found[path[:length]] = (*found.get(path[:length], ()), place)
    named: dict[str, tuple[int, ...]] = {}
    for path, places in found.items():
        name = _name(path)
        if name in named or name == "all":
            raise _checks.InputError(
                f"params has a second part named {name!r}, which is not allowed: names of blocks "
                'must differ, and "all" is the whole tree'
            )
        named[name] = places
    return {**named, "all": tuple(range(place + 1))}


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _checked(params: Any) -> list[np.ndarray]:
    """The leaves as float64."""
    return [
        _real(f"params at {_name(path)!r}" if path else "params", leaf).astype(float)
        for path, leaf in _leaves(params)
    ]


def _real(name: str, values: Any) -> np.ndarray:
    """Values as an array of whole numbers or float64, all finite."""
    try:
        found = np.asarray(values)
        if not jnp.issubdtype(found.dtype, np.integer) and found.dtype != bool:
            if not jnp.issubdtype(found.dtype, np.floating):
                raise TypeError(f"{found.dtype} is not real")
            found = found.astype(float)
    except (TypeError, ValueError) as error:
        raise _checks.InputError(
            f"{name} has entries that are not real numbers, which is not allowed"
        ) from error
    if not np.all(np.isfinite(found)):
        raise _checks.InputError(f"{name} has entries that are not finite, which is not allowed")
    return found

"""Hessian and gradient matrix of any JAX loss on any data, by blocks of its parameter tree.

    hessian = (1/n) Σ_ℓ ∇²loss(params, x_ℓ, y_ℓ),   gradient = (1/n) Σ_ℓ ∇loss_ℓ ∇loss_ℓᵀ

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
import xarray as xr
from jax.flatten_util import ravel_pytree

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.spectra.alignment import alignment
from sgdlimits.spectra.blocks import MATRICES
from sgdlimits.spectra.krylov import Pairs, leading_pairs, quadrature
from sgdlimits.spectra.parameter_tree import leaf_values, part_names, parts, real_array

Loss = Callable[[Any, Any, Any], Any]

AT_ONCE = 2**17  # samples times columns in one product: bounds the memory, and is enough for speed


class Network:
    """The matrices of a loss(params, x, y) of one sample, on a data set.

    Parameters are any tree of real arrays; they are taken as float64. In all methods ``matrix`` is
    "hessian" or "gradient", and ``block`` one of :meth:`blocks`.

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
        self.x, self.y = real_array("x", x), real_array("y", y)
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
        return part_names(params)

    def size(self, params: Any, block: Word) -> int:
        """The number of parameters of a block."""
        return len(self.flat(params, block))

    def flat(self, params: Any, block: Word) -> np.ndarray:
        """The parameters of a block as one vector."""
        leaves = leaf_values(params)
        return np.concatenate([leaves[number].ravel() for number in _leaf_numbers(params, block)])

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
            start: approximate eigenvectors in columns to start from, random ones by default. A
                little noise is added to them, so that others with larger eigenvalues are not
                missed.
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
        pairs = leading_pairs(
            lambda vectors: apply(vectors[0])[None],
            1,
            size,
            k,
            start=None if given is None else given[None],
            tolerance=_checks.positive("tolerance", tolerance),
        )
        return Pairs(pairs.values[0], pairs.vectors[0])

    def density(
        self,
        params: Any,
        matrix: Word,
        block: Word,
        probes: WholeNumber = 4,
        steps: WholeNumber = 60,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of the spectral measure, by stochastic Lanczos quadrature.

        Args:
            params: where the matrix is taken.
            matrix: "hessian" or "gradient".
            block: one of :meth:`blocks`.
            probes: random vectors; the error falls as 1/√probes.
            steps: of Lanczos with each of them, which gives as many nodes.
        """
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
    ) -> "Tracker":
        """A callback ``tracker(time, params)`` for your training loop, see :class:`Tracker`.

        Args:
            blocks: names of blocks, all of them by default.
            rank: how many leading eigenvectors.
            matrices: of "hessian" and "gradient".
            tolerance: of the residuals, relative to the largest eigenvalue.
        """
        return Tracker(self, blocks, rank, matrices, tolerance)

    def _product(self, params: Any, matrix: str, block: str) -> Callable[[np.ndarray], np.ndarray]:
        """The function from vectors in columns to the block times each."""
        _checks.choice("matrix", matrix, MATRICES)
        numbers = _leaf_numbers(params, block)
        if (matrix, numbers) not in self._products:
            self._products[matrix, numbers] = jax.jit(_operator(self.loss, matrix, numbers))
        compiled = self._products[matrix, numbers]
        tree = jax.tree.unflatten(jax.tree.structure(params), leaf_values(params))
        most = max(1, AT_ONCE // len(self.x))

        @double_precision
        def apply(vectors: np.ndarray) -> np.ndarray:
            count = vectors.shape[1]
            width = min(count, most)
            full = np.pad(vectors, ((0, 0), (0, -count % width)))  # one shape, one compilation
            images = [
                compiled(tree, self.x, self.y, full[:, first : first + width])
                for first in range(0, full.shape[1], width)
            ]
            return np.concatenate(images, axis=1)[:, :count]

        return apply


class Tracker:
    """Records leading eigenvalues and alignment of a network, whenever it is called.

    Made by :meth:`Network.tracker`; call it as ``tracker(time, params)`` at increasing times, in
    any units, then ask for :meth:`dataset`.

    >>> import sgdlimits as sl
    >>> loss = lambda p, x, y: (x @ p["w"] - y) ** 2 / 2
    >>> tracker = sl.spectra.Network(loss, np.eye(2), np.zeros(2)).tracker(rank=1)
    >>> for step in range(3):
    ...     tracker(step, {"w": np.array([1.0, 0.5**step])})
    >>> tracker.dataset().norm.sel(block="w").values.round(3).tolist()
    [1.414, 1.118, 1.031]
    """

    def __init__(
        self,
        network: Network,
        blocks: Sequence[Word] | None,
        rank: WholeNumber,
        matrices: Sequence[Word],
        tolerance: Number,
    ):
        self.network = network
        self.blocks = None if blocks is None else _words("blocks", blocks)
        self.rank = _checks.integer("rank", rank, least=1)
        self.matrices = _words("matrices", matrices)
        for matrix in self.matrices:
            _checks.choice("matrix", matrix, MATRICES)
        self.tolerance = _checks.positive("tolerance", tolerance)
        self._times: list[float] = []
        self._looks: list[dict[str, np.ndarray]] = []
        self._vectors: dict[tuple[str, str], np.ndarray] = {}  # of the last call, to start from

    def __call__(self, time: Number, params: Any) -> None:
        """Look at the matrices at these parameters.

        Args:
            time: in the units of your choice, later than at the last call.
            params: the tree of parameters, of the same shapes at every call.
        """
        now = float(_checks.array("time", time, ()))
        if self._times and now <= self._times[-1]:
            raise _checks.InputError(
                f"time={now:g} is not allowed: times must increase, the last was "
                f"{self._times[-1]:g}"
            )
        blocks = self.network.blocks(params) if self.blocks is None else self.blocks
        flat = [self.network.flat(params, block) for block in blocks]
        self._check_sizes(blocks, flat)
        shape = (len(self.matrices), len(blocks))
        values, aligned = np.full((*shape, self.rank), np.nan), np.full(shape, np.nan)
        vectors = {}
        for column, (block, own) in enumerate(zip(blocks, flat, strict=True)):
            count = min(self.rank, len(own))
            if count == 0:
                continue
            for row, matrix in enumerate(self.matrices):
                last = self._vectors.get((matrix, block))
                pairs = self.network.leading(params, matrix, block, count, self.tolerance, last)
                values[row, column, :count] = pairs.values
                if np.any(own):
                    aligned[row, column] = alignment(own, pairs.vectors)
                vectors[matrix, block] = pairs.vectors
        norm = np.array([np.linalg.norm(own) for own in flat])
        self.blocks, self._vectors = tuple(blocks), vectors  # only now: an error records nothing
        self._times.append(now)
        self._looks.append({"eigenvalues": values, "alignment": aligned, "norm": norm})

    def dataset(self) -> xr.Dataset:
        """All that was recorded, over ``time``, ``matrix``, ``block`` and ``rank``.

        Returns:
            ``eigenvalues`` by decreasing absolute value, NaN beyond the parameters of a block;
            ``alignment``, the part of a block's parameters in the span of its ``rank`` leading
            eigenvectors: 1 if it has no more parameters than that, NaN if all are zero; and their
            ``norm``.
        """
        if not self._looks:
            raise _checks.InputError(
                "nothing was recorded: call tracker(time, params) before dataset()"
            )
        values = {name: np.stack([look[name] for look in self._looks]) for name in self._looks[0]}
        lead = ("time", "matrix", "block")
        dims = {"eigenvalues": (*lead, "rank"), "alignment": lead, "norm": ("time", "block")}
        coords = {
            "time": np.array(self._times),
            "matrix": list(self.matrices),
            "block": list(self.blocks or ()),
        }
        settings = {"samples": len(self.network.x), "rank": self.rank}
        attrs = {
            "kind": "spectra",
            "task": "Network",
            "parameters": settings,
            "tolerance": self.tolerance,
            "time_label": "time of the training loop",
        }
        return results.build(values, dims, coords, attrs)

    def _check_sizes(self, blocks: Sequence[str], flat: Sequence[np.ndarray]) -> None:
        for block, own in zip(blocks, flat, strict=True):
            for matrix in self.matrices:
                last = self._vectors.get((matrix, block))
                if last is not None and len(last) != len(own):
                    raise _checks.InputError(
                        f"params at {block!r} has {len(own)} entries, which is not allowed: "
                        f"it had {len(last)} at the last time"
                    )


def _leaf_numbers(params: Any, block: str) -> tuple[int, ...]:
    """Which leaves of the tree a block has."""
    known = parts(params)
    if not isinstance(block, str) or block not in known:
        _checks.choice("block", block, part_names(params))
    return known[block]


def _operator(loss: Loss, matrix: str, numbers: tuple[int, ...]) -> Callable[..., Any]:
    """The product of a block with vectors in columns, as a function of params, x, y and them."""

    def product(params: Any, x: Any, y: Any, vectors: Any) -> Any:
        leaves, tree = jax.tree.flatten(params)
        flat, restore = ravel_pytree([leaves[number] for number in numbers])

        def losses(flat: Any) -> Any:
            own = dict(zip(numbers, restore(flat), strict=True))
            whole = jax.tree.unflatten(tree, [own.get(k, leaf) for k, leaf in enumerate(leaves)])
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


def _words(name: str, given: Any) -> tuple[str, ...]:
    words = (given,) if isinstance(given, str) else tuple(given)
    if not words or len(set(words)) != len(words):
        raise _checks.InputError(f"{name}={given!r} is not allowed: {name} must be different names")
    return words

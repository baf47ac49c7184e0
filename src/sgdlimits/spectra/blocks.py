"""Blocks of the Hessian and of the gradient second-moment matrix of a multi-index task.

Every block between rows of W is a weighted data product: with s = Wx,

    d²loss / dW_i dW_j = D_ij x xᵀ,   D_ij = d²loss / ds_i ds_j      (hessian)
    grad_i gradᵀ_j     = D_ij x xᵀ,   D_ij = dloss/ds_i dloss/ds_j   (gradient)

and the block "vv" of a trained readout is a small matrix of its own. Second derivatives are almost
sure ones: a kink contributes nothing.
"""

import re
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index, Real
from sgdlimits.tasks import MultiIndex

MATRICES = ("hessian", "gradient")


class Block(NamedTuple):
    """Rows i and j of W, or None for the readout."""

    i: int | None
    j: int | None

    @property
    def name(self) -> str:
        """``"W0W1"`` or ``"vv"``."""
        return "".join("v" if k is None else f"W{k}" for k in self)


def blocks_of(task: MultiIndex) -> list[Block]:
    """All symmetric blocks of a task: W_i W_j with i <= j, and vv if the readout is trained."""
    K = task.width
    found = [Block(i, j) for i in range(K) for j in range(i, K)]
    return [*found, Block(None, None)] if task.trained else found


def diagonal_blocks(task: MultiIndex) -> list[Block]:
    """W_0 W_0, W_1 W_1, ..., and vv if the readout is trained."""
    return [block for block in blocks_of(task) if block.i == block.j]


def find_block(task: MultiIndex, block: Any) -> Block:
    """A block by name (``"W0W1"``, ``"vv"``), by pair (0, 1) or by one number, 0 for (0, 0)."""
    known = blocks_of(task)
    if isinstance(block, int) and not isinstance(block, bool):
        block = (block, block)
    for candidate in known:
        pair = (candidate.i, candidate.j)
        if block in (candidate.name, pair, pair[::-1], list(pair)):
            return candidate
    if isinstance(block, str) and (found := re.fullmatch(r"W(\d+)W(\d+)", block)):
        swapped = Block(int(found[2]), int(found[1]))
        if swapped in known:
            return swapped
    names = [candidate.name for candidate in known]
    listed = ", ".join(names if len(names) <= 12 else [*names[:8], "...", *names[-2:]])
    raise ValueError(f"block={block!r} is not allowed: the blocks of this task are {listed}")


@eqx.filter_jit
def field_weights(
    task: MultiIndex,
    matrix: str,
    i: Index,
    j: Index,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"] | None,
    labels: Float[Array, " n"],
) -> Float[Array, " n"]:
    """D_ij of every sample."""

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, ""]:
        gradient = jax.grad(task.loss)
        if matrix == "hessian":
            return jax.grad(lambda s: gradient(s, readout, y)[i])(s)[j]
        g = gradient(s, readout, y)
        return g[i] * g[j]

    return jax.vmap(one)(fields, labels)


@eqx.filter_jit
def readout_matrices(
    task: MultiIndex,
    matrix: str,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"],
    labels: Float[Array, " n"],
    weights: Float[Array, " n"],
) -> Float[Array, "K K"]:
    """The block vv, averaged with the given weights of the samples."""

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, "K K"]:
        def loss(v: Float[Array, " K"]) -> Float[Array, ""]:
            return task.loss(s, v, y)

        if matrix == "hessian":
            return jax.hessian(loss)(readout)
        gradient = jax.grad(loss)(readout)
        return jnp.outer(gradient, gradient)

    return jnp.tensordot(weights, jax.vmap(one)(fields, labels), axes=1)

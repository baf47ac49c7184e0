"""Blocks of the Hessian and of the gradient second-moment matrix of a multi-index task.

Every block between rows of W is a weighted data product: with s = Wx,

    d²loss / dW_i dW_j = D_ij x xᵀ,   D_ij = d²loss / ds_i ds_j      (hessian)
    grad_i gradᵀ_j     = D_ij x xᵀ,   D_ij = dloss/ds_i dloss/ds_j   (gradient)

The blocks "vv" and "vW_j" of a trained readout average small matrices, and small ones times xᵀ.
Second derivatives are almost sure ones: a kink contributes nothing.
"""

import re
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Index, Real
from sgdlimits.tasks import MultiIndexFamily

MATRICES = ("hessian", "gradient")


class Block(NamedTuple):
    """Rows i and j of W, or None for the readout."""

    i: int | None
    j: int | None

    @property
    def name(self) -> str:
        """``"W0W1"``, ``"vv"`` or ``"vW0"``."""
        return "".join("v" if k is None else f"W{k}" for k in self)


def blocks_of(task: MultiIndexFamily) -> list[Block]:
    """All blocks: W_i W_j with i <= j; vv and the rectangular vW_j if the readout is trained."""
    K = task.width
    found = [Block(i, j) for i in range(K) for j in range(i, K)]
    if not task.trained:
        return found
    return [*found, Block(None, None), *(Block(None, j) for j in range(K))]


def diagonal_blocks(task: MultiIndexFamily) -> list[Block]:
    """W_0 W_0, W_1 W_1, ..., and vv if the readout is trained."""
    return [block for block in blocks_of(task) if block.i == block.j]


def expected_outliers(task: MultiIndexFamily, block: Block) -> int:
    """How many outliers a block is expected to have: as many as anchors; in vv, as components."""
    return min(len(task.means), task.width) if block.i is None else len(task.anchors)


def find_block(task: MultiIndexFamily, block: Any) -> Block:
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
    if len(names) > 15:
        kinds = [[n for n in names if (n[0] == "v") is readout] for readout in (False, True)]
        names = [n for kind in kinds if kind for n in (*kind[:4], "...", kind[-1])]
    listed = ", ".join(names)
    raise _checks.InputError(
        f"block={block!r} is not allowed: the blocks of this task are {listed}"
    )


@eqx.filter_jit
def field_weights(
    task: MultiIndexFamily,
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
def cross_weights(
    task: MultiIndexFamily,
    matrix: str,
    j: Index,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"],
    labels: Float[Array, " n"],
) -> Float[Array, "n K"]:
    """What stands before xᵀ in the block vW_j, of every sample."""

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, " K"]:
        if matrix == "hessian":
            return jax.grad(lambda v: jax.grad(task.loss)(s, v, y)[j])(readout)
        along_s, along_v = jax.grad(task.loss, (0, 1))(s, readout, y)
        return along_s[j] * along_v

    return jax.vmap(one)(fields, labels)


Directions = tuple[Float[Array, "n K"], Float[Array, " K"] | None]


@eqx.filter_jit
def whole_products(
    task: MultiIndexFamily,
    matrix: str,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"] | None,
    labels: Float[Array, " n"],
    along: Directions,
) -> tuple[Float[Array, "n K"], Float[Array, "n K"] | None]:
    """The matrix of a single sample in (s, v), times a direction: of s its own, of v the same."""
    direction, of_readout = along

    def one(
        s: Float[Array, " K"], y: Real, ds: Float[Array, " K"]
    ) -> tuple[Float[Array, " K"], Float[Array, " K"] | None]:
        def gradient(s: Any, v: Any) -> Any:
            if v is None:
                return jax.grad(task.loss)(s, v, y), None
            return jax.grad(task.loss, (0, 1))(s, v, y)

        if matrix == "hessian":
            return jax.jvp(gradient, (s, readout), (ds, of_readout))[1]
        of_s, of_v = gradient(s, readout)
        size = of_s @ ds + (0.0 if of_v is None else of_v @ of_readout)
        return of_s * size, None if of_v is None else of_v * size

    return jax.vmap(one)(fields, labels, direction)


@eqx.filter_jit
def readout_matrices(
    task: MultiIndexFamily,
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

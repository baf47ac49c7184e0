"""The blocks of the Hessian and of the gradient matrix of a multi-index task, and their names.

Both matrices act on all parameters, the rows W_0, …, W_{K−1} of the weights and the readout v where
it is trained. A block is what stands between two of these: "W0W1" (d × d), "vv" (K × K) or "vW0"
(K × d).
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits.tasks import MultiIndexFamily

MATRICES = ("hessian", "gradient")
_LISTED = 15  # names of blocks in an error message


class Block(NamedTuple):
    """Numbers of two rows of W; None stands for the readout."""

    i: int | None
    j: int | None

    @property
    def name(self) -> str:
        """``"W0W1"``, ``"vv"`` or ``"vW0"``."""
        return "".join("v" if k is None else f"W{k}" for k in self)

    @property
    def diagonal(self) -> bool:
        """Whether it belongs to the same parameters twice: W_i W_i or vv."""
        return self.i == self.j


if TYPE_CHECKING:
    BlockLike = str | int | tuple[int, int] | Block
else:
    BlockLike = Any  # wrong input meets our own error, also where annotations are enforced


def multi_index(task: Any) -> MultiIndexFamily:
    """The task itself if its matrices have blocks; an error that names it otherwise."""
    if not isinstance(task, MultiIndexFamily):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be a multi-index task, whose loss depends on "
            "the data through the fields Wx"
        )
    return task


def blocks_of(task: MultiIndexFamily) -> list[Block]:
    """Every block once: W_i W_j for i ≤ j; if the readout is trained also vv and all vW_j.

    The blocks that are left out, W_j W_i and W_j v, are transposes of these.
    """
    K = task.width
    first_layer = [Block(i, j) for i in range(K) for j in range(i, K)]
    if not task.trained:
        return first_layer
    return [*first_layer, Block(None, None), *(Block(None, j) for j in range(K))]


def diagonal_blocks(task: MultiIndexFamily) -> list[Block]:
    """W_0 W_0, W_1 W_1, …, and vv if the readout is trained."""
    return [block for block in blocks_of(task) if block.diagonal]


def most_outliers(task: MultiIndexFamily, block: Block) -> int:
    """How many outliers a block has at most when the data are nearly noiseless.

    At λ = ∞ a sample is the mean of its component. The block W_i W_j then lives on the span of the
    means, hence of the anchors, and vv on the span of one vector for each component. BGHJ23 takes
    alignment with as many leading eigenvectors: k of k class means (Theorem 2.3), and for XOR two
    in the first layer, four in the second (Theorem 2.6).
    """
    return min(len(task.means), task.width) if block.i is None else len(task.anchors)


def find_block(task: MultiIndexFamily, block: BlockLike) -> Block:
    """The block that a user means.

    Args:
        task: whose blocks they are.
        block: a name such as "W0W1", "vv" or "vW0"; a pair of rows such as (0, 1); or one number i
            for the diagonal block (i, i).

    >>> import sgdlimits as sl
    >>> find_block(sl.tasks.XorMixture(), 2).name, find_block(sl.tasks.XorMixture(), (1, 0)).name
    ('W2W2', 'W0W1')
    """
    known = blocks_of(task)
    if isinstance(block, int | np.integer) and not isinstance(block, bool):
        block = (int(block), int(block))
    for candidate in known:
        pair = (candidate.i, candidate.j)
        if block in (candidate.name, pair, pair[::-1], list(pair)):
            return candidate
    if isinstance(block, str) and (name := re.fullmatch(r"W(\d+)W(\d+)", block)):
        swapped = Block(int(name[2]), int(name[1]))
        if swapped in known:
            return swapped
    names = [candidate.name for candidate in known]
    if len(names) > _LISTED:
        kinds = [[n for n in names if (n[0] == "v") is readout] for readout in (False, True)]
        names = [n for kind in kinds if kind for n in (*kind[:4], "...", kind[-1])]
    raise _checks.InputError(
        f"block={block!r} is not allowed: the blocks of this task are {', '.join(names)}"
    )

"""Blocks by name, by pair and by number."""

from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.spectra.blocks import Block, blocks_of, diagonal_blocks, find_block, most_outliers

XOR = sl.tasks.XorMixture(width=3)


@pytest.mark.parametrize(
    ("asked", "block"),
    [
        (0, Block(0, 0)),
        (np.int64(2), Block(2, 2)),
        ("W0W1", Block(0, 1)),
        ("W1W0", Block(0, 1)),
        ((2, 1), Block(1, 2)),
        ([0, 2], Block(0, 2)),
        ("vv", Block(None, None)),
        ("vW2", Block(None, 2)),
        (Block(None, 1), Block(None, 1)),
    ],
)
def test_what_a_user_may_say(asked: Any, block: Block) -> None:
    assert find_block(XOR, asked) == block


@pytest.mark.parametrize("asked", [3, -1, "W0W3", "W0", "v", (0, 3), True, None, 0.5])
def test_everything_else_is_refused(asked: Any) -> None:
    with pytest.raises(sl.InputError, match=r"block=.* is not allowed: .* W0W0, W0W1, .* vv, vW0"):
        find_block(XOR, asked)


def test_every_block_once() -> None:
    names = [block.name for block in blocks_of(XOR)]
    first = ["W0W0", "W0W1", "W0W2", "W1W1", "W1W2", "W2W2"]
    assert names == [*first, "vv", "vW0", "vW1", "vW2"]
    assert [block.name for block in diagonal_blocks(XOR)] == ["W0W0", "W1W1", "W2W2", "vv"]
    softmax = sl.tasks.GaussianMixture(classes=2)
    assert [block.name for block in blocks_of(softmax)] == ["W0W0", "W0W1", "W1W1"]


def test_most_outliers_are_those_of_the_theorems() -> None:
    """BGHJ23: k in softmax regression; two and four for XOR, if the network is that wide."""
    assert most_outliers(sl.tasks.GaussianMixture(classes=5), Block(1, 1)) == 5
    assert most_outliers(XOR, Block(0, 0)) == 2
    assert most_outliers(sl.tasks.XorMixture(width=9), Block(None, None)) == 4
    assert most_outliers(XOR, Block(None, None)) == 3

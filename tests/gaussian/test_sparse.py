"""Sparse grids against exact moments, and against a tensor grid where there is little to save."""

import math

import numpy as np
import pytest
from scipy.special import factorial2

from sgdlimits import gaussian
from sgdlimits._checks import InputError


def moment(powers: np.ndarray) -> float:
    """E Π zᵢ^pᵢ."""
    return math.prod(0.0 if p % 2 else float(factorial2(p - 1)) if p else 1.0 for p in powers)


@pytest.mark.parametrize(("dim", "level"), [(1, 3), (2, 4), (6, 3), (10, 2), (20, 2)])
def test_total_degree(dim: int, level: int) -> None:
    rule, rng = gaussian.sparse_grid([level] * dim), np.random.default_rng(0)
    for degree in range(2 * level + 2):
        powers = np.bincount(rng.integers(0, dim, degree), minlength=dim)
        found = rule.weights @ np.prod(rule.nodes**powers, axis=1)
        assert abs(found - moment(powers)) < 1e-10


def test_levels_are_of_each_direction() -> None:
    """z₀⁹ z₁⁰ and z₀¹ z₁⁵ are exact, z₀⁶z₁⁶ is not, and direction 2 has one node."""
    rule = gaussian.sparse_grid([2, 1, 0])
    assert np.all(rule.nodes[:, 2] == 0)
    for powers in ([8, 0, 0], [0, 4, 0], [2, 0, 0], [9, 1, 0]):
        found = rule.weights @ np.prod(rule.nodes ** np.array(powers), axis=1)
        assert abs(found - moment(np.array(powers))) < 1e-9
    missed = rule.weights @ (rule.nodes[:, 0] * rule.nodes[:, 1]) ** 2
    assert abs(missed - 1) > 0.5


@pytest.mark.parametrize("levels", [[2] * 10, [3] * 5, [3, 3, 2, 1, 0], [4, 4, 3, 3, 1, 1], [0]])
def test_count(levels: list[int]) -> None:
    rule = gaussian.sparse_grid(levels)
    assert len(rule.weights) == gaussian.sparse_count(levels)
    assert len(np.unique(rule.nodes.round(9), axis=0)) == len(rule.nodes)


def test_many_levels_in_few_directions_need_fewer_nodes() -> None:
    assert len(gaussian.sparse_grid([6]).weights) == 13 < gaussian.sparse_count([6])


def test_smooth_functions_of_ten_variables() -> None:
    """E exp(a·z) = exp(|a|²/2): what is missed is less than its terms beyond the exact degree."""
    a = np.random.default_rng(1).normal(size=10)
    a *= 0.7 / np.linalg.norm(a)
    half = 0.49 / 2
    for level in (1, 2, 3):
        rule = gaussian.sparse_grid([level] * 10)
        beyond = math.exp(half) - sum(half**n / math.factorial(n) for n in range(level + 1))
        assert abs(rule.weights @ np.exp(rule.nodes @ a) - math.exp(half)) < beyond


def test_levels_must_be_whole_numbers() -> None:
    with pytest.raises(InputError, match=r"levels=-1 is not allowed"):
        gaussian.sparse_grid([2, -1])

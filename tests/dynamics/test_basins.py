"""Which starts go where, against what the papers prove."""

import math
from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits import theory
from sgdlimits.dynamics.rest.basins import exact_interval

XOR = sl.tasks.XorMixture(precision=math.inf, ridge=0.05)


@pytest.fixture(scope="module")
def limit() -> Any:
    return sl.effective_dynamics(XOR)


def roles(v: np.ndarray, M: np.ndarray) -> np.ndarray:
    """The set of aligned neurons that each neuron joins from 0±, by the signs it starts with."""
    return np.where(v > 0, np.where(M[..., 0] > 0, 0, 1), np.where(M[..., 1] > 0, 2, 3))


def learned(state: dict[str, np.ndarray]) -> int:
    """How many of the four means a network tells apart from nothing."""
    v, M = state["v"], state["M"]
    margins = [y * v @ np.maximum(s * M[:, a], 0) for a, y in ((0, 1), (1, -1)) for s in (1, -1)]
    return int(np.sum(np.array(margins) > 0.1))


@pytest.mark.timeout(300)
def test_xor_starts_go_where_their_signs_say(limit: Any) -> None:
    """Proposition 5.2 of BGJ22, start by start, for 512 starts in one solve."""
    starts = XOR.random_state(10**6, 1, runs=512)
    found = limit.basins(starts, into=learned)
    assert found.attrs["not_arrived"] == 0
    expected = [len(set(row)) for row in roles(starts["v"], starts["M"]).tolist()]
    np.testing.assert_array_equal(found.basin.values[found.reached.values], expected)
    success = found.sel(basin=4)
    assert success.low < theory.xor.success_probability(4) < success.high
    assert found.hits.sum() == 512
    # SGD in dimension 500 is sorted by the same solver, before it has arrived
    runs = sl.simulate(XOR, dim=500, runs=256, time=20.0, points=2, seed=3)
    ends = limit.basins(runs, into=learned)
    assert ends.attrs["not_arrived"] == 0
    error = math.sqrt(3 / 32 * 29 / 32 / 256)
    assert abs(float(ends.probability.sel(basin=4)) - 3 / 32) < 4 * error


def test_the_two_halves_of_the_binary_mixture() -> None:
    """Proposition 4.2: one half of the starts find a classifier, one quarter each ring."""
    task = sl.tasks.BinaryMixture(precision=math.inf, ridge=0.1)
    limit = sl.effective_dynamics(task)

    def law(count: int, seed: int) -> dict[str, np.ndarray]:
        return task.random_state(10**8, seed, runs=count)

    found = limit.basins(law, count=256, seed=2)
    assert found.sizes["basin"] == 4
    v = law(256, 2)["v"]
    opposite = np.mean(v[:, 0] * v[:, 1] < 0)
    stable = found.where(found.stability == "stable", drop=True)
    np.testing.assert_allclose(stable.probability.sum(), opposite)
    np.testing.assert_array_equal(found.kernel_dimension.values[found.stability == "marginal"], 1)
    assert abs(opposite - 1 / 2) < 4 * math.sqrt(0.25 / 256)


def test_exact_symmetry_stays_at_the_saddle_and_divergence_is_counted() -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=4.0))
    starts = {"m": np.array([0.0, 0.0, 2.0, -2.0]), "r2": np.array([1.0, 2.0, 1.0, 300.0])}
    found = limit.basins(starts, time=20.0)
    assert found.sizes["basin"] == 2
    np.testing.assert_allclose(found.m[0], 0.0, atol=1e-12)
    weak = limit.basins({"m": np.full(2, 1e-9), "r2": np.ones(2)}, time=1e-3)
    assert weak.probability.values.tolist() == [1.0]


def test_starts_that_do_not_come_to_rest_are_counted(limit: Any) -> None:
    starts = XOR.random_state(100, 1, runs=3)
    found = limit.basins({name: 20 * x for name, x in starts.items()}, time=0.01)
    assert found.attrs["not_arrived"] == 3
    assert found.sizes["basin"] == 0
    assert found.reached.values.tolist() == [-1, -1, -1]


@pytest.mark.parametrize(
    ("sample", "options", "message"),
    [
        ({"m": 0.0, "r2": 1.0}, {}, "one leading axis"),
        ({"m": np.zeros(2), "r2": np.ones(3)}, {}, "one leading axis"),
        ({"m": np.zeros(2)}, {}, r"init=\['m'\]"),
        (3, {}, "init=int"),
        ({"m": np.zeros(2), "r2": -np.ones(2)}, {}, "r2"),
        ({"m": np.zeros(2), "r2": np.ones(2)}, {"time": 0}, "time=0"),
        ({"m": np.zeros(2), "r2": np.ones(2)}, {"confidence": 1.0}, "confidence=1.0"),
        (lambda count, seed: None, {}, "init=NoneType"),
        (lambda count, seed: None, {"count": 0}, "count=0"),
    ],
)
def test_wrong_input(sample: Any, options: Any, message: str) -> None:
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor())
    with pytest.raises(ValueError, match=message):
        limit.basins(sample, **options)


def test_a_dataset_of_another_task_is_refused(limit: Any) -> None:
    runs = sl.simulate(sl.tasks.SpikedTensor(), dim=100, runs=2, time=0.1, points=2)
    with pytest.raises(ValueError, match="must hold runs, over time"):
        limit.basins(runs)


def test_intervals_cover() -> None:
    """Exact: at every probability, the chance to miss on one side is at most 2.5 %."""
    from scipy.stats import binom

    low, high = exact_interval(np.arange(21), 20, 0.95)
    for p in np.linspace(0.01, 0.99, 25):
        weights = binom.pmf(np.arange(21), 20, p)
        assert weights[low > p].sum() <= 0.025
        assert weights[high < p].sum() <= 0.025
    assert low[0] == 0
    assert high[-1] == 1

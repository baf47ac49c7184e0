"""When SGD passes, by the chain, by paths of its SDE, and in the limit."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

import sgdlimits as sl

TASK = sl.tasks.SpikedTensor(order=2, snr=2.0)
LIMIT = sl.effective_dynamics(TASK)
EVENT = ("m", ">", 0.5)
RUNS = 1500


def test_chain_and_paths_have_the_same_law() -> None:
    """From a start with m of the order of the noise; paths in another dimension do not."""
    dim, start = 2000, {"m": 0.02, "r2": 1.0}
    chain = sl.first_passage(TASK, EVENT, dim, RUNS, 3.0, init=start)
    paths = LIMIT.sample_paths(start, dim, time=3.0, runs=RUNS, points=7, until=EVENT, seed=1)
    others = LIMIT.sample_paths(start, dim // 2, time=3.0, runs=RUNS, points=7, until=EVENT)
    times = [np.asarray(x) for x in (chain.time, paths.passage_time, others.passage_time)]
    assert ks_2samp(times[0], times[1]).pvalue > 0.01
    assert ks_2samp(times[0], times[2]).pvalue < 1e-3


def test_runs_pass_at_the_time_of_the_limit() -> None:
    """Within 1/√dim, from a start of order one."""
    start, event = {"m": 0.4, "r2": 1.0}, ("m", ">", 0.7)
    expected = float(LIMIT.first_passage(event, start, 5.0).time)
    gaps = []
    dims = np.array([1000, 4000, 16000])
    for dim in dims:
        passage = sl.first_passage(TASK, event, int(dim), RUNS, 5.0, init=start)
        gaps.append(np.std(passage.time.values - expected))
        bias = passage.time.values.mean() - expected
        assert abs(bias) < 8 / dim + 4 * gaps[-1] / np.sqrt(RUNS)
    slope = np.polyfit(np.log(dims), np.log(gaps), 1)[0]
    assert abs(slope + 0.5) < 0.08


def test_risk_by_its_name_is_the_risk_that_is_measured() -> None:
    """Of the limit, of its paths, and as a function for SGD."""
    task, start = sl.tasks.PhaseRetrieval(noise=0.1), {"M": [[0.3]], "R": [[0.91]]}
    limit = sl.effective_dynamics(task, step=0.05)
    passage = limit.first_passage(("risk", "<", 0.3), start)
    there = {name: passage[name].values for name in start}
    assert float(limit.risk(there)) == pytest.approx(0.3, abs=1e-6)
    event = (limit.quantity("risk"), "<", 0.3)
    same: dict[str, Any] = {"step": 0.05, "init": start}
    runs = sl.first_passage(task, event, 4000, runs=64, max_time=60.0, **same)
    spread = float(runs.time.std()) / 8
    assert abs(float(runs.time.mean()) - float(passage.time)) < 4 * spread + 20 / 4000
    paths = limit.sample_paths(start, dim=4000, time=60.0, runs=64, until=("risk", "<", 0.3))
    assert not paths.censored.any()
    named = sl.first_passage(task, ("risk", "<", 0.3), 4000, runs=8, max_time=60.0, **same)
    assert np.array_equal(named.step, runs.step[:8])

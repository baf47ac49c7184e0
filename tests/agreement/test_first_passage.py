"""When SGD passes, by the chain, by paths of its SDE, and in the limit."""

import numpy as np
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

"""SGD approaches its limit at the rate the theory gives, and fluctuates as it predicts."""

from typing import NamedTuple

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.dynamics import EffectiveDynamics
from sgdlimits.tasks import Task


class Setting(NamedTuple):
    task: Task
    state: State
    step: float
    time: float
    runs: int  # enough for the gap to the limit to stand out at every dim

    def __repr__(self) -> str:
        return type(self.task).__name__


def warm(task: Task, overlap: float) -> State:
    """A state with given first overlap, far from symmetric points, the same in every dimension."""
    state = task.random_state(40, seed=8)
    state["M"] = state["M"] + overlap
    return state


SETTINGS = [
    Setting(
        sl.tasks.SpikedTensor(order=2, snr=2.0),
        {"m": np.asarray(0.5), "r2": np.asarray(0.6)},
        step=0.5,
        time=0.3,
        runs=20_480,
    ),
    Setting(
        sl.tasks.PhaseRetrieval(noise=0.3),
        {"M": np.array([[0.5]]), "R": np.array([[0.75]])},
        step=0.1,
        time=0.4,
        runs=8192,
    ),
    Setting(
        sl.tasks.XorMixture(precision=1.0),
        warm(sl.tasks.XorMixture(), 0.3),
        step=3.0,
        time=3.0,
        runs=20_480,
    ),
]
DIMS = (25, 50, 150)


def end_of_solution(limit: EffectiveDynamics, setting: Setting) -> np.ndarray:
    solution = limit.solve(setting.state, time=setting.time, points=2)
    return np.array([sl.results.select(solution, name)[-1] for name in limit.coordinates])


def ends_of_runs(setting: Setting, dim: int, names: list[str]) -> np.ndarray:
    runs = sl.simulate(
        setting.task,
        dim=dim,
        runs=setting.runs,
        time=setting.time,
        step=setting.step,
        init=setting.state,
        points=2,
    )
    return np.stack([sl.results.select(runs, name).values[:, -1] for name in names], axis=1)


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_mean_approaches_the_limit_like_one_over_dim(setting: Setting) -> None:
    limit = sl.effective_dynamics(setting.task, setting.step)
    ends = [ends_of_runs(setting, dim, limit.coordinates) for dim in DIMS]
    errors = np.array([np.linalg.norm(x.std(0)) for x in ends]) / setting.runs**0.5

    def gaps_and_slope(target: np.ndarray) -> tuple[np.ndarray, float]:
        gaps = np.array([np.linalg.norm(x.mean(0) - target) for x in ends])
        return gaps, np.polyfit(np.log(DIMS), np.log(gaps), 1)[0]

    gaps, slope = gaps_and_slope(end_of_solution(limit, setting))
    assert np.all(gaps > 4 * errors), "the gap must stand out of the sampling noise"
    assert -1.3 < slope < -0.75

    # negative control: without the corrector, which is the limit of a vanishing step
    without = sl.effective_dynamics(setting.task, 1e-9)
    gaps, slope = gaps_and_slope(end_of_solution(without, setting))
    assert slope > -0.4
    assert gaps[-1] > 20 * errors[-1]


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_fluctuations_have_the_predicted_covariance(setting: Setting) -> None:
    """Over a short time, dim · Cov(u) / time is the diffusion matrix."""
    dim, runs, time = 4000, 8192, 0.004 * setting.step
    limit = sl.effective_dynamics(setting.task, setting.step)
    simulated = sl.simulate(
        setting.task,
        dim=dim,
        runs=runs,
        time=time,
        step=setting.step,
        init=setting.state,
        points=2,
        seed=3,
    )
    ends = np.stack(
        [sl.results.select(simulated, name).values[:, -1] for name in limit.coordinates], axis=1
    )
    centred = (ends - ends.mean(0)) * (dim / time) ** 0.5
    products = centred[:, :, None] * centred[:, None, :]
    found, error = products.mean(0), products.std(0) / runs**0.5
    predicted = limit.diffusion(setting.state)
    slack = 0.03 * np.sqrt(np.outer(np.diag(predicted), np.diag(predicted)))  # u moves a little
    assert np.all(np.abs(found - predicted) < 4.5 * error + slack + 1e-12)


def test_paths_of_the_sde_spread_like_sgd() -> None:
    """Matrix PCA: mean and deviation of paths and of the chain, over time."""
    task, dim, runs = sl.tasks.SpikedTensor(order=2, snr=1.5), 1000, 2048
    start = {"m": 0.1, "r2": 0.9}
    limit = sl.effective_dynamics(task)
    paths = limit.sample_paths(start, dim=dim, time=1.0, runs=runs, seed=1, points=6)
    chain = sl.simulate(task, dim=dim, time=1.0, runs=runs, seed=2, init=start, points=6)
    for name in ("m", "r2"):
        x, y = paths[name].values[:, 1:], chain[name].values[:, 1:]
        error = np.hypot(x.std(0), y.std(0)) / runs**0.5
        assert np.all(np.abs(x.mean(0) - y.mean(0)) < 4.5 * error + 1 / dim)
        np.testing.assert_allclose(x.std(0), y.std(0), rtol=0.08)


def test_noiseless_phase_retrieval_never_freezes() -> None:
    """1 − m² is resolved far below the rounding error of m."""
    runs = sl.simulate(sl.tasks.PhaseRetrieval(), dim=200, runs=128, time=30.0, step=0.1, points=61)
    R = runs.R.values[:, :, 0, 0]
    assert np.max(R[:, -1]) < 1e-28
    np.testing.assert_allclose(np.abs(runs.M.values[:, -1]), 1.0, rtol=1e-15)
    slopes = []
    for path in R:  # from 1e-4 down to 1e-26
        (falling,) = np.nonzero((path < 1e-4) & (path > 1e-26))
        slopes.append(np.polyfit(runs.time.values[falling], np.log(path[falling]), 1)[0])
    # next to m = 1 the limit has d(1 − m²)/dt = −8 (1 − 6c)(1 − m²), and runs differ by O(1/dim)
    rate = -8 * (1 - 6 * 0.1)
    allowed = 4 * np.std(slopes, ddof=1) / len(slopes) ** 0.5 + 5 * abs(rate) / 200
    assert abs(np.mean(slopes) - rate) < allowed

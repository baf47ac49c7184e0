"""Paths that stop at an event: what happens between steps counts, and what does not."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.stats import invgauss, kstest

import sgdlimits as sl
from sgdlimits._events import event_of
from sgdlimits.dynamics.noise.integrator import Grid, path_keys
from sgdlimits.dynamics.noise.until import Waiting
from tests.dynamics.test_first_passage import LIMIT, START

DIM, PATHS = 400, 2048
REST = {"m": 1.0, "r2": 1.0}
DEVIATION = np.sqrt(LIMIT.diffusion(REST)[0, 0] / 16 / DIM)  # of m: its rate there is −8
EXIT = ("m", "<", 1.0 - 1.5 * float(DEVIATION))


def passed(steps: int, merged: int, time: float = 3.0, dim: float = DIM) -> np.ndarray:
    """Times of exit, of paths along the same Brownian motions if steps × merged is the same."""
    with jax.enable_x64(True):
        starts = np.repeat(LIMIT.ravel(REST)[None], PATHS, 0)
        waiting = Waiting(event_of(EXIT, LIMIT.task.layout), LIMIT.task.layout, starts)
        grid, keys = Grid.of(time / 16, steps, merged), path_keys(0, 0, PATHS)
        waiting.followed(LIMIT.model, jnp.asarray(starts), keys, 16, grid, dim, 0)
    return np.minimum(waiting.passed, time)


def test_halving_the_step_does_not_move_the_mean() -> None:
    """By 0.5 % at most, though noise alone takes paths across.

    Without bridges, a path counts when it is seen across, and halving moves the mean by far more.
    """
    fine, coarse = passed(60, 1), passed(30, 2)
    error = np.std(fine - coarse) / np.sqrt(PATHS) / fine.mean()
    assert error < 0.012
    assert abs(np.mean(coarse - fine)) < (0.005 + 2 * error) * fine.mean()
    paths = LIMIT.sample_paths(REST, DIM, time=3.0, runs=512, points=961)

    def seen(every: int) -> float:
        across = paths.m.values[:, ::every] < EXIT[2]
        times = paths.time.values[::every]
        return float(np.mean(np.where(across.any(1), times[np.argmax(across, 1)], times[-1])))

    assert seen(2) - seen(1) > 0.02 * seen(1)
    # what is seen is late; it tends to what bridges say as the root of the spacing
    extrapolated = seen(1) - (seen(4) - seen(1))
    assert abs(extrapolated - fine.mean()) < 4 * np.std(fine) / np.sqrt(512)


def test_the_law_without_drift_is_inverse_gaussian() -> None:
    """Brownian motion with a drift, in few steps: bridges are exact, whatever the step."""
    task = sl.tasks.SpikedTensor(order=2, snr=2.0)
    limit = sl.effective_dynamics(task)
    tiny, dim = 1e-5, 10**6
    level = 0.1 + 8e-6
    paths = limit.sample_paths(
        {"m": 0.1, "r2": 1.0}, dim, time=tiny, runs=2000, points=3, until=("m", ">", level)
    )
    drift = float(limit.drift({"m": 0.1, "r2": 1.0})["m"])
    variance = limit.diffusion({"m": 0.1, "r2": 1.0})[0, 0] / dim
    a = level - 0.1
    mean, shape = a / drift, a**2 / variance
    law = invgauss(mean / shape, scale=shape)
    times = paths.passage_time.values[~paths.censored.values]
    share = law.cdf(tiny)
    error = np.sqrt(share * (1 - share) / 2000)
    assert abs(len(times) / 2000 - share) < 3.5 * error
    assert kstest(times, lambda t: law.cdf(t) / share).pvalue > 1e-3
    assert kstest(times, lambda t: law.cdf(0.8 * t) / law.cdf(0.8 * tiny)).pvalue < 1e-3


def test_a_path_stops_at_its_event() -> None:
    runs = LIMIT.sample_paths(START, 1000, time=3.0, runs=70, points=31, until=("m", ">", 0.5))
    after = runs.time.values >= runs.passage_time.values[:, None]
    after &= ~runs.censored.values[:, None]
    np.testing.assert_allclose(runs.m.values[after], 0.5, rtol=1e-9)
    assert np.all(runs.m.values[~after] < 0.5)
    assert runs.attrs["event"] == "m > 0.5"
    free = LIMIT.sample_paths(START, 1000, time=3.0, runs=70, points=31)
    assert "passage_time" not in free
    started = LIMIT.sample_paths(
        {"m": 0.6, "r2": 1.0}, 1000, time=0.1, runs=2, points=3, until=("m", ">", 0.5)
    )
    assert started.at_start.values.all()
    np.testing.assert_array_equal(started.passage_time, 0.0)
    assert sl.results.survival(runs).median.value > 1.0


def test_without_noise_it_is_the_solution() -> None:
    runs = LIMIT.sample_paths(START, 10**14, time=3.0, runs=1, points=31, until=("m", ">", 0.5))
    expected = float(LIMIT.first_passage(("m", ">", 0.5), START, 3.0).time)
    np.testing.assert_allclose(runs.passage_time, expected, rtol=1e-3)


@pytest.mark.parametrize("step", [[(0.0, 1.0), (0.45, 0.2)], lambda t: 1.0 / (1.0 + t)])
def test_with_a_schedule(step: Any) -> None:
    """In each stretch of time as in the solution."""
    limit = sl.effective_dynamics(LIMIT.task, step=step)
    runs = limit.sample_paths(START, 10**14, time=3.0, runs=1, points=31, until=("r2", "<", 0.9))
    expected = limit.first_passage(("r2", "<", 0.9), START, 3.0)
    assert not bool(expected.censored)
    np.testing.assert_allclose(runs.passage_time, float(expected.time), rtol=1e-3)


def test_paths_that_go_on_have_fresh_noise() -> None:
    """At a rest point; where it is not told what the start is from, noise is replayed."""
    options: dict[str, Any] = {"dim": 1000, "time": 0.2, "runs": 64, "points": 21}
    first = LIMIT.sample_paths(REST, **options)
    second = LIMIT.sample_paths(first.isel(time=-1), **options)
    trap = LIMIT.sample_paths(sl.results.state(first), **options)

    def moves(paths: xr.Dataset) -> np.ndarray:
        m = paths.m.values
        return np.asarray(np.diff(m, axis=1) + 8 * (m[:, :-1] - 1) * 0.01).ravel()

    error = 1 / np.sqrt(moves(first).size)
    assert abs(np.corrcoef(moves(first), moves(second))[0, 1]) < 3.5 * error
    assert np.corrcoef(moves(first), moves(trap))[0, 1] > 0.9
    assert second.attrs["segment"] == 1

"""When SGD leaves an unstable rest point: the exact chain against ``limit.escape``.

The prediction is right to O(1/dim) for thresholds of order one, so that at these dimensions and
numbers of runs only sampling errors are left.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

import sgdlimits as sl

RUNS = 1000


def square(state: dict[str, Any]) -> Any:
    """What both signs of an overlap lead to."""
    return jnp.sum(state["M"] ** 2)


def chain(task: Any, event: Any, dim: int, step: float, start: Any = None) -> np.ndarray:
    passage = sl.first_passage(task, event, dim, RUNS, 200.0, step=step, init=start, seed=1)
    assert not passage.censored.any()
    return np.asarray(passage.time)


def check_law(times: np.ndarray, law: Any) -> None:
    """Mean, both tail quantiles, and the whole law."""
    spread = times.std() / RUNS**0.5
    assert abs(times.mean() - law.mean) < 4 * (spread + law.error)
    assert kstest(times, lambda t: 1 - law.survival(t)).pvalue > 1e-3
    for part in (0.1, 0.9):
        passed = np.mean(times <= law.quantile(part))
        assert abs(passed - part) < 4 * (0.09 / RUNS) ** 0.5


@pytest.mark.parametrize("dim", [300, 1500])
def test_a_link_that_no_paper_treats(dim: int) -> None:
    """Even, so that its information exponent is 2; at the step that is fastest."""
    task = sl.tasks.SingleIndex(jnp.cos, noise=0.1)
    equator, event = {"M": [[0.0]], "R": [[1.0]]}, (square, ">", 0.25)
    step = sl.effective_dynamics(task, step=0.5).escape(equator).fastest_step
    assert step is not None
    found = sl.effective_dynamics(task, step=step).escape(equator)
    assert found.gain == pytest.approx(1.0)
    times, law = chain(task, event, dim, step), found.exit_time(dim, event)
    check_law(times, law)
    # controls: without the noise of SGD, and with linear growth up to the threshold
    error, rate = times.std() / RUNS**0.5, found.rate
    noise = np.log(1 + found.noise[0, 0] / (2 * rate)) / (2 * rate)
    assert times.mean() < law.mean + noise - 6 * error
    second = -np.log(2) - np.euler_gamma  # E log N² for a standard normal N
    spread = 1 + found.noise[0, 0] / (2 * rate)
    linear = (np.log(0.25 * dim / spread) - second) / (2 * rate)
    assert times.mean() > linear + 3 * error


def test_from_the_rest_point_itself() -> None:
    task = sl.tasks.SingleIndex(jnp.cos, noise=0.1)
    equator, event = {"M": [[0.0]], "R": [[1.0]]}, (square, ">", 0.25)
    found = sl.effective_dynamics(task, step=0.8).escape(equator)
    law = found.exit_time(800, event, start="rest")
    check_law(chain(task, event, 800, 0.8, equator), law)
    assert law.mean > found.exit_time(800, event).mean


def test_two_neurons_and_the_risk() -> None:
    """Both overlaps grow at one rate, in a random direction, of which the flow's time depends."""
    task, step, dim = sl.tasks.PhaseRetrieval(width=2, noise=0.5), 0.2, 600
    limit = sl.effective_dynamics(task, step=step)
    found = limit.escape({"M": np.zeros((2, 1)), "R": np.eye(2)})
    assert len(found.rates) == 2
    law = found.exit_time(dim, ("risk", "<", 1.0), directions=32)
    check_law(chain(task, (limit.quantity("risk"), "<", 1.0), dim, step), law)


def test_an_event_on_one_side() -> None:
    """Half of the starts go to the other side, where it never happens."""
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(snr=2.0))
    law = limit.escape({"m": 0.0, "r2": 1.0}).exit_time(2000, ("m", ">", 0.5))
    assert law.reached == 0.5
    assert law.quantile(0.6) == np.inf
    passage = sl.first_passage(limit.task, ("m", ">", 0.5), 2000, RUNS, 8.0, seed=2)
    there = np.asarray(passage.time)[~passage.censored.values]
    assert abs(len(there) / RUNS - 0.5) < 4 * 0.5 / RUNS**0.5
    assert abs(there.mean() - law.mean) < 4 * there.std() / len(there) ** 0.5


@pytest.mark.parametrize("step", [1.0, 0.5])
def test_matrix_pca_above_the_transition(step: float) -> None:
    """The chain from random starts, whose r² is 1 and not the step, against the closed form."""
    dim, snr, level = 1000, 2.0, 0.4
    task, theory = sl.tasks.SpikedTensor(snr=snr), sl.theory.spiked_tensor
    event = (lambda s: s["m"] ** 2, ">", level**2)
    times = chain(task, event, dim, step)
    mean = theory.escape_time(level, dim, snr=snr, step=step)
    error = times.std() / RUNS**0.5
    assert abs(times.mean() - mean) < 4 * error
    law = kstest(times, lambda t: theory.escape_probability(t, level, dim, snr=snr, step=step))
    assert law.pvalue > 1e-3
    if step == 1.0:
        # control: the start alone, without SGD's noise
        assert times.mean() < mean + np.log(snr / (snr - step)) / 8 - 4 * error
        found = sl.effective_dynamics(task).escape({"m": 0.0, "r2": 1.0})
        assert found.exit_time(dim, event).mean == pytest.approx(mean, rel=5e-3)


def test_matrix_pca_below_the_transition() -> None:
    """To 2.5 standard deviations; a boundary that is watched all the time is reached earlier."""
    dim, snr = 150, 0.5
    task, theory = sl.tasks.SpikedTensor(snr=snr), sl.theory.spiked_tensor
    level = 2.5 / (dim * (1 - snr)) ** 0.5
    event = (lambda s: s["m"] ** 2, ">", level**2)
    times = chain(task, event, dim, 1.0, {"m": 0.0, "r2": 1.0})
    error = times.std() / RUNS**0.5
    mean = theory.climbing_time(level, dim, snr=snr)
    assert abs(times.mean() - mean) < 4 * error + 3 * mean / dim
    assert times.mean() > theory.climbing_time(level, dim, snr=snr, watched=False) + 2 * error

"""First passage of runs: the step itself, stopped runs, the law, and wrong input."""

import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ks_2samp

import sgdlimits as sl

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)
XOR = sl.tasks.XorMixture(width=3)
EVENT = ("m", ">", 0.3)


def every_step(task: Any, event: Any, dim: int, runs: int, steps: int, **more: Any) -> Any:
    """The whole trajectory and, read off it, when the event first holds: −1 for never."""
    path = sl.simulate(task, dim, runs=runs, time=steps / dim, points=steps + 1, **more)
    holds = event(path)
    first = np.argmax(holds, axis=1)
    return path, np.where(holds.any(axis=1), first, -1)


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_the_step_is_that_of_the_trajectory(method: str) -> None:
    """Of an independent look at every step; the state is that of then."""
    dim, steps = 40, 80
    path, first = every_step(PCA, lambda p: p.m.values > 0.3, dim, 140, steps, method=method)
    passage = sl.first_passage(PCA, EVENT, dim, 140, steps / dim, method=method)
    assert 10 < np.sum(first > 0) < 130
    np.testing.assert_array_equal(passage.censored, first < 0)
    at = np.where(first < 0, steps, first)
    np.testing.assert_array_equal(passage.step, at)
    np.testing.assert_allclose(passage.time, at / dim, rtol=1e-14)
    for name in ("m", "r2"):
        expected = path[name].values[np.arange(140), at]
        np.testing.assert_allclose(passage[name], expected, rtol=1e-12)


def test_of_matrices_and_with_a_schedule() -> None:
    """R of a layer with a readout; time is the sum of steps that change."""
    schedule = [(0.0, 1.0), (0.5, 0.25)]
    dim, steps = 50, 100
    state = XOR.random_state(dim, 3)
    path = sl.simulate(XOR, dim, runs=20, time=1.0, step=schedule, init=state, times=None)
    passage = sl.first_passage(
        XOR, ("R[0,1]", ">", float(state["R"][0, 1])), dim, 20, 1.0, step=schedule, init=state
    )
    assert path.samples.values[-1] < 2 * steps
    below = np.asarray(passage.step) <= 25
    np.testing.assert_allclose(passage.time.values[below], passage.step.values[below] / dim)
    late = ~below & ~passage.censored.values
    expected = 0.5 + (passage.step.values - 25) * 0.25 / dim
    np.testing.assert_allclose(passage.time.values[late], expected[late], rtol=1e-12)
    assert np.any(late)


def test_of_a_velocity_with_batches() -> None:
    """What is observed besides the statistics of the task has events too."""
    moves: dict[str, Any] = {"momentum": ("slow", 2.0), "batch": 3}
    path, first = every_step(XOR, lambda p: p.velocity_v[..., 0].values > 0.02, 50, 20, 60, **moves)
    passage = sl.first_passage(XOR, ("velocity_v[0]", ">", 0.02), 50, 20, 60 / 50, **moves)
    np.testing.assert_array_equal(passage.step, np.where(first < 0, 60, first))
    np.testing.assert_array_equal(passage.censored, first < 0)
    assert np.any(first > 0)
    at = passage.step.values
    np.testing.assert_allclose(passage.R, path.R.values[np.arange(20), at], rtol=1e-9)


def test_run_is_the_same_whatever_the_others() -> None:
    few, many = (sl.first_passage(PCA, EVENT, 40, runs, 2.0) for runs in (3, 300))
    for name in ("step", "m", "r2"):
        np.testing.assert_array_equal(few[name], many[name][:3])


def test_a_run_stops_at_its_event() -> None:
    free = sl.simulate(PCA, 40, runs=130, time=2.0, points=9)
    runs = sl.simulate(PCA, 40, runs=130, time=2.0, points=9, until=EVENT)
    passage = sl.first_passage(PCA, EVENT, 40, 130, 2.0)
    np.testing.assert_array_equal(runs.passage_step, passage.step)
    np.testing.assert_array_equal(runs.passage_time, passage.time)
    np.testing.assert_array_equal(runs.censored, passage.censored)
    after = runs.time.values >= passage.time.values[:, None]
    np.testing.assert_allclose(runs.m.values[~after], free.m.values[~after], rtol=1e-12)
    there = np.broadcast_to(passage.m.values[:, None], after.shape)
    np.testing.assert_array_equal(runs.m.values[after], there[after])
    assert sl.results.statistics(runs) == ["m", "r2"]


def test_runs_at_the_start_are_marked() -> None:
    start = {"m": [0.0, 0.5, 0.1], "r2": [1.0, 1.0, 1.0]}
    passage = sl.first_passage(PCA, EVENT, 40, 3, 2.0, init=start)
    assert passage.at_start.values.tolist() == [False, True, False]
    assert not passage.censored.values[1]
    assert (passage.step.values[1], passage.time.values[1], passage.m.values[1]) == (0, 0.0, 0.5)
    assert np.all(passage.step.values[[0, 2]] > 0)


def test_a_function_crosses_zero_from_either_side() -> None:
    start = {"m": [0.0, 0.5], "r2": [1.0, 1.0]}
    with pytest.warns(RuntimeWarning, match="1 runs start above zero"):
        passage = sl.first_passage(PCA, lambda s: s["m"] - 0.3, 40, 2, 9.0, init=start)
    up = sl.first_passage(PCA, EVENT, 40, 2, 9.0, init=start)
    down = sl.first_passage(PCA, ("m", "<", 0.3), 40, 2, 9.0, init=start)
    assert passage.step.values.tolist() == [up.step.values[0], down.step.values[1]]
    assert down.at_start.values.tolist() == [True, False]


def test_divergence_is_told_apart() -> None:
    """A run that is no longer finite is censored when its quantity is no longer a number."""
    task = sl.tasks.SpikedTensor(order=3, snr=1.0)
    with pytest.warns(RuntimeWarning, match="diverged"):
        passage = sl.first_passage(task, ("r2", "<", 0.0), 20, 8, 20.0, step=2.0)
    lost = passage.diverged.values
    assert lost.any()
    np.testing.assert_array_equal(~np.isfinite(passage.r2), lost)
    assert np.all(passage.censored.values)
    assert np.all((passage.time.values < 20.0) == lost)


def test_a_quantity_that_is_no_number_is_not_an_event() -> None:
    """The state is finite, the logarithm of a negative overlap is not a number."""
    start, event = {"m": -0.2, "r2": 1.0}, (lambda state: jnp.log(state["m"]), ">", -1.0)
    with pytest.warns(RuntimeWarning, match="3 of 3 runs the quantity ceased to be a number"):
        passage = sl.first_passage(PCA, event, 200, runs=3, max_time=1.0, init=start)
    assert passage.censored.all()
    limit = sl.effective_dynamics(PCA)
    assert limit.first_passage(event, start, 5.0).censored
    later = limit.first_passage(lambda state: jnp.sqrt(state["m"] + 0.5) - 2.0, start, 5.0)
    assert later.censored
    assert float(later.m) == pytest.approx(-0.5, abs=1e-6)


def test_runs_that_still_wait_may_go_on() -> None:
    never = ("m", ">", 50.0)
    waiting = sl.simulate(PCA, 60, runs=2, time=1.0, points=3, until=never)
    whole = sl.simulate(PCA, 60, runs=2, time=2.0, points=5)
    np.testing.assert_allclose(sl.extend(waiting, 1.0).m, whole.m, rtol=1e-12)
    some = sl.simulate(PCA, 60, runs=2, time=1.0, points=3, until=("m", "<", 50.0))
    with pytest.raises(sl.InputError, match="some of its runs stand still"):
        sl.extend(some, 1.0)


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_the_law_of_brownian_passage(method: str) -> None:
    """Without signal and at a tiny step m is a random walk: the reflection principle.

    P(max m > a) = 2 P(m > a), with the overshoot of a discrete walk, 0.5826 of a step's deviation
    (Chernoff 1965); without it the same test fails.
    """
    task = sl.tasks.SpikedTensor(order=2, snr=0.0)
    dim, step, steps, runs = 30, 1e-3, 400, 2000
    init = {"m": 0.0, "r2": 1.0}
    # Var of a step of m: δ²·4k‖x‖^{2k−2} + δ²·4k(k−1)‖x‖^{2k−4}m² at ‖x‖ = 1, m = 0
    deviation = step / dim * np.sqrt(8.0)
    level = 1.0 * deviation * np.sqrt(steps)
    time = steps * step / dim
    passage = sl.first_passage(
        task, ("m", ">", level), dim, runs, time, step=step, init=init, method=method
    )

    def expected(shift: float) -> float:
        from scipy.stats import norm

        return float(2 * norm.sf((level + shift * deviation) / (deviation * np.sqrt(steps))))

    share = float(np.mean(~passage.censored.values))
    error = np.sqrt(share * (1 - share) / runs)
    assert abs(share - expected(0.5826)) < 3.5 * error
    wrong = float(np.mean(passage.m.values > level)) - expected(0.5826) / 2
    assert abs(wrong) > 3.5 * error  # stopped runs are all above, free ones would be half


def test_chain_and_direct_have_the_same_law() -> None:
    times = [
        sl.first_passage(PCA, EVENT, 30, 700, 3.0, method=method, seed=seed).step.values
        for method, seed in (("chain", 1), ("direct", 2))
    ]
    assert ks_2samp(*times).pvalue > 0.01
    slower = sl.first_passage(PCA, ("m", ">", 0.6), 30, 700, 3.0, seed=1).step.values
    assert ks_2samp(slower, times[1]).pvalue < 1e-3


def test_passage_is_a_start() -> None:
    """The states at the event, and noise that is not that of the runs before."""
    passage = sl.first_passage(PCA, EVENT, 40, 8, 50.0)
    runs = sl.simulate(PCA, 40, runs=8, time=1.0, points=3, init=passage)
    np.testing.assert_array_equal(runs.m.values[:, 0], passage.m)
    assert runs.attrs["segment"] == 1


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"event": ("q", ">", 0.3)}, ["event[0]='q'", "m, r2, risk"]),
        ({"event": lambda s: jnp.stack([s["m"], s["m"]])}, ["shape (2,)"]),
        ({"max_time": 0.0}, ["max_time=0.0", "positive"]),
        ({"max_time": 1e-9}, ["max_time=1e-09", "one step"]),
        ({"runs": 0}, ["runs=0"]),
        ({"dim": 1}, ["dim=1"]),
        ({"batch": 0}, ["batch=0"]),
    ],
)
def test_wrong_input(arguments: dict[str, Any], parts: list[str]) -> None:
    valid: dict[str, Any] = {"task": PCA, "event": EVENT, "dim": 40, "runs": 2, "max_time": 1.0}
    with pytest.raises(sl.InputError, match="not allowed") as caught:
        sl.first_passage(**(valid | arguments))
    assert all(re.search(re.escape(part), str(caught.value)) for part in parts), str(caught.value)

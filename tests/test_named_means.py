"""Risk and error as events of simulations, by name."""

import inspect
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.simulate import first_passage

RETRIEVAL = sl.tasks.PhaseRetrieval(noise=0.5)
PCA = sl.tasks.SpikedTensor(order=3, snr=2.0)
MIXTURE = sl.tasks.GaussianMixture(classes=2, precision=np.inf)


def excess(state: Any) -> Any:
    """The risk of phase retrieval with one neuron on the sphere, without that of the noise."""
    return 2 * state["R"][0, 0]


def tensor_loss(state: Any) -> Any:
    """R⁶ − 2 snr m³."""
    return (state["m"] ** 2 + state["r2"]) ** 3 - 4.0 * state["m"] ** 3


@pytest.mark.parametrize(
    ("task", "level", "function", "shift", "moves"),
    [
        (RETRIEVAL, 0.8, excess, 0.25, {"step": 0.1}),
        (RETRIEVAL, 0.8, excess, 0.25, {"step": [(0.0, 0.1), (1.0, 0.05)], "batch": 2}),
        (RETRIEVAL, 0.8, excess, 0.25, {"step": 0.1, "momentum": ("slow", 3.0)}),
        (PCA, -1.1, tensor_loss, 0.0, {"step": 0.1}),
    ],
)
def test_it_is_the_event_of_the_function(
    task: Any, level: float, function: Any, shift: float, moves: dict[str, Any]
) -> None:
    """How SGD moves does not matter to the mean; the statistics of a velocity are beside it."""
    init = {"M": [[0.5]], "R": [[0.75]]} if task is RETRIEVAL else {"m": 0.8, "r2": 0.4}
    named, told = (
        sl.first_passage(task, event, 60, 8, 4.0, init=init, **moves)
        for event in (("risk", "<", level), (function, "<", level - shift))
    )
    assert named.attrs["event"] == f"risk < {level}"
    assert not named.at_start.any()
    assert not named.censored.all()
    np.testing.assert_array_equal(named.step, told.step)
    np.testing.assert_array_equal(named.censored, told.censored)
    runs = sl.simulate(
        task, 60, runs=8, time=4.0, points=5, init=init, until=("risk", "<", level), **moves
    )
    assert runs.attrs["event"] == f"risk < {level}"
    np.testing.assert_array_equal(runs.passage_step, named.step)


def test_the_error_has_its_name_too() -> None:
    """Two classes without noise: the error falls to zero when both means are on their sides."""
    start, dim = {"M": [[-0.1, 0.1], [0.0, 0.0]], "R": np.zeros((2, 2))}, 50
    passage = sl.first_passage(MIXTURE, ("error", "<", 0.1), dim, 4, 2.0, init=start)
    runs = sl.simulate(MIXTURE, dim, runs=4, time=2.0, points=2 * dim + 1, init=start)
    right = np.all((runs.M.values[:, :, 0] - runs.M.values[:, :, 1]) * [1, -1] > 0, axis=2)
    np.testing.assert_array_equal(passage.step, np.argmax(right, axis=1))
    assert passage.step.values.min() > 0


def test_work_goes_on(tmp_path: Path) -> None:
    """In a folder that has all of it, and of runs that still wait."""
    words: dict[str, Any] = {"runs": 4, "points": 3, "step": 0.1, "until": ("risk", "<", 0.3)}
    first = sl.simulate(RETRIEVAL, 100, time=1.0, checkpoint=tmp_path, **words)
    again = sl.simulate(RETRIEVAL, 100, time=1.0, checkpoint=tmp_path, **words)
    xr.testing.assert_identical(first, again)
    assert first.censored.all()
    more = sl.simulate(RETRIEVAL, 100, time=1.0, continue_from=first, **words)
    whole = sl.simulate(RETRIEVAL, 100, time=2.0, **words)
    np.testing.assert_array_equal(more.M.values[:, -1], whole.M.values[:, -1])
    assert sl.extend(first, 1.0).time.values[-1] == 2.0


def test_functions_are_made_once() -> None:
    """Or every call would compile its program anew."""
    from sgdlimits import named_means

    _, told = (named_means._told(("risk", "<", 0.1), RETRIEVAL) for _ in range(2))
    assert told[0] is named_means._told(("risk", ">", 0.3), RETRIEVAL)[0]
    assert told[0] is not named_means._told(("risk", ">", 0.3), PCA)[0]


def test_they_look_like_the_functions_they_call() -> None:
    assert inspect.signature(sl.first_passage) == inspect.signature(first_passage)
    assert sl.simulate.__doc__
    assert sl.simulate.__module__ == "sgdlimits.named_means"


any_passage: Any = sl.first_passage


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: any_passage(RETRIEVAL, ("error", "<", 0.1)), "no decision rule"),
        (lambda: any_passage("xor", ("risk", "<", 0.1)), "task='xor'"),
        (lambda: any_passage(RETRIEVAL, ("risk", "<=", 0.1)), "event[1]='<='"),
        (lambda: any_passage(RETRIEVAL, ("rsk", "<", 0.1)), "risk, error"),
        (lambda: any_passage(RETRIEVAL, ("risk", "<", 0.1), rns=3), "rns=3"),
        (lambda: any_passage(RETRIEVAL), "event"),
        (lambda: any_passage(RETRIEVAL, (jnp.ones(2), "<", 0.1)), "event[0]"),
        (lambda: first_passage(RETRIEVAL, ("risk", "<", 0.1)), "limit.quantity('risk')"),
    ],
)
def test_wrong_input(call: Any, part: str) -> None:
    with pytest.raises((sl.InputError, TypeError)) as caught:
        call()
    assert part in str(caught.value), str(caught.value)

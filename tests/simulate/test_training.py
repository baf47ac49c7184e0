"""One run of direct SGD with its weights and data: that of simulate, step by step."""

from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.simulate import DataSet, Training, Weights, anchors

GRAM = [[1.0, 0.3], [0.3, 1.5]]
SOFTMAX = sl.tasks.GaussianMixture(classes=2, means_gram=GRAM, precision=3.0, ridge=0.0)


@pytest.mark.parametrize(
    "task",
    [
        sl.tasks.XorMixture(width=3),
        SOFTMAX,
        sl.tasks.PhaseRetrieval(width=2, noise=0.1, readout="trained"),
    ],
    ids=lambda task: type(task).__name__,
)
@pytest.mark.parametrize("given", [True, False])
def test_the_run_is_that_of_simulate(task: Any, given: bool) -> None:
    dim, step = 30, 0.5
    init = task.random_state(dim, seed=1) if given else None
    times = np.linspace(0, 1, 3)
    runs = sl.simulate(
        task, dim, runs=2, time=1.0, step=step, seed=4, init=init, method="direct", points=3
    )
    A = anchors(task, dim)
    assert pytest.approx(np.asarray(task.gram)) == A @ A.T
    last = None
    for k, weights in enumerate(Training(task, dim, step, 4, init).weights_at(times)):
        overlaps = weights.W @ A.T
        assert overlaps == pytest.approx(runs.M.values[0, k], abs=1e-12)
        if task.trained:
            assert weights.v == pytest.approx(runs.v.values[0, k], abs=1e-12)
        else:
            assert weights.v is None
        assert last is None or not np.allclose(weights.W, last)
        last = weights.W


def test_stopping_on_the_way_changes_nothing() -> None:
    training = Training(SOFTMAX, 20, seed=3)
    (direct,) = training.weights_at([2.0])
    *_, stopped = training.weights_at([0.0, 0.3, 1.0, 2.0])
    assert isinstance(direct, Weights)
    assert np.array_equal(direct.W, stopped.W)


def test_seen_data_are_what_sgd_steps_on() -> None:
    """The first steps are minus step/dim times the gradients at the first samples."""
    dim, step = 20, 0.7
    training = Training(SOFTMAX, dim, step, seed=5)
    weights = list(training.weights_at(np.arange(4) * step / dim))
    data = training.seen(3)
    assert isinstance(data, DataSet)
    for k in range(3):
        p = np.exp(weights[k].W @ data.x[k])
        residual = p / p.sum() - (np.arange(2) == data.labels[k])
        moved = weights[k + 1].W - weights[k].W
        gradient = np.outer(residual, data.x[k])
        assert moved == pytest.approx(-step / dim * gradient, abs=1e-12)


def test_unseen_data_are_others_from_the_same_law() -> None:
    training = Training(SOFTMAX, 20, seed=5)
    test, train = training.unseen(4000), training.seen(4000)
    assert np.array_equal(test.x[:10], training.unseen(10).x)
    assert not np.any(np.all(np.isclose(test.x[:100, None], train.x[None, :100]), axis=-1))
    A = anchors(SOFTMAX, 20)
    for data in (test, train):
        for label in (0, 1):
            own = data.x[data.labels == label]
            error = (len(own) * SOFTMAX.precision) ** -0.5
            assert np.max(np.abs(own.mean(axis=0) - A[label])) < 4.5 * error
        assert abs(np.mean(data.labels) - 0.5) < 4 * 0.5 / 4000**0.5


def test_divergence_is_not_silent() -> None:
    task = sl.tasks.PhaseRetrieval(width=1, spherical=False)
    training = Training(task, 20, step=50.0, init={"M": [[5.0]], "R": [[5.0]]})
    with pytest.raises(sl.InputError, match=r"step=50\.0 is not allowed: .* diverged.* time 500"):
        list(training.weights_at([0.0, 500.0]))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"task": "xor"}, "task='xor' is not allowed: task must be a multi-index task"),
        ({"task": sl.tasks.SpikedTensor()}, r"task=SpikedTensor\(.*must be a multi-index task"),
        ({"dim": 1}, "dim=1 is not allowed: GaussianMixture needs dim >= 2"),
        ({"dim": 20.5}, r"dim=20\.5 is not allowed"),
        ({"step": 0}, "step=0 is not allowed: step must be a positive"),
        ({"step": np.nan}, "step=nan is not allowed"),
        ({"seed": -1}, "seed=-1 is not allowed"),
        ({"init": {"M": np.eye(2)}}, r"state=\['M'\] is not allowed: .*\['M', 'R'\]"),
        ({"init": {"M": np.eye(2), "R": -np.eye(2)}}, "R must be positive semidefinite"),
        ({"init": {"M": np.eye(3), "R": np.eye(2)}}, r"state\['M'\] has shape \(3, 3\)"),
    ],
)
def test_wrong_input_is_named(arguments: Any, said: str) -> None:
    with pytest.raises(sl.InputError, match=said):
        Training(**{"task": SOFTMAX, "dim": 20} | arguments)


@pytest.mark.parametrize("times", [[], 1.0, [-0.1, 1.0], [1.0, 0.5], [1.0, 1.0], [np.nan], ["a"]])
def test_times_increase(times: Any) -> None:
    """Said when they are given, not when the first weights are asked for."""
    with pytest.raises(sl.InputError, match=r"^times="):
        Training(SOFTMAX, 20).weights_at(times)


def test_too_many_steps_and_samples() -> None:
    training = Training(SOFTMAX, 20)
    with pytest.raises(sl.InputError, match=r"times=\[1e\+20\] is not allowed: .* 2e\+21 steps"):
        training.weights_at([1e20])
    for draw in (training.seen, training.unseen):
        wrong: list[Any] = [0, 2.5, True]
        for samples in wrong:
            with pytest.raises(sl.InputError, match=r"samples=.* is not allowed"):
                draw(samples)
    with pytest.raises(sl.InputError, match="dim=1 is not allowed"):
        anchors(SOFTMAX, 1)
    with pytest.raises(sl.InputError, match="must be a multi-index task"):
        anchors(sl.tasks.SpikedTensor(), 20)  # type: ignore[arg-type]

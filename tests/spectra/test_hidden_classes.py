"""A component is discerned if the task's own loss, at its mean, decides for its label."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.spectra import hidden_classes
from tests.spectra.effective.test_readout import tanh_network

RNG = np.random.default_rng(0)


def by_relu(state: Any, means: np.ndarray, labels: np.ndarray, margin: float) -> int:
    """For ReLU and labels 0, 1 only: outputs v · relu(Wμ) on the right side."""
    outputs = np.maximum(means @ state["M"].T, 0) @ state["v"]
    return int(np.sum((2 * labels - 1) * outputs > margin))


def test_two_of_four() -> None:
    task = sl.tasks.XorMixture(width=4)
    M = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    state = {"v": np.array([1, 1, -1, -1.0]), "M": M, "R": np.eye(4)}
    assert hidden_classes(task, state) == 2


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
def test_xor_by_its_output(margin: float) -> None:
    task = sl.tasks.XorMixture(width=4)
    counts = set()
    for _ in range(40):
        state = {"v": RNG.normal(size=4), "M": RNG.normal(size=(4, 2)), "R": np.eye(4)}
        expected = by_relu(state, np.asarray(task.means), np.asarray(task.labels), margin)
        assert hidden_classes(task, state, margin) == expected
        counts.add(expected)
    assert len(counts) >= 3


def test_tanh_with_labels_of_both_signs() -> None:
    """The activation and the labels are the task's: ReLU and labels 0, 1 would count wrongly."""
    task = tanh_network(width=3)
    means, labels = np.eye(4), np.array([1, 1, -1, -1.0])
    wrong = 0
    for _ in range(40):
        state = {"v": RNG.normal(size=3), "M": RNG.normal(size=(3, 4)), "R": np.eye(3)}
        outputs = np.tanh(means @ state["M"].T) @ state["v"]
        count = hidden_classes(task, state)
        assert count == np.sum(labels * outputs > 0.1)
        wrong += count != by_relu(state, means, labels, 0.1)
    assert wrong > 20


def test_squared_loss_and_unequal_labels() -> None:
    """Three labels: the loss decides for the nearest, ½(y' − f)² − ½(y − f)² beyond the margin."""

    def loss(s: Any, v: Any, y: Any) -> Any:
        return (y - v @ jnp.tanh(s)) ** 2 / 2

    labels = np.array([0.0, 1.0, 3.0])
    task = sl.tasks.MultiIndexTask(
        loss=loss, width=3, anchors=["a", "b", "c"], means=np.eye(3), labels=labels,
        readout="trained",
    )  # fmt: skip
    ones = np.arctanh([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]])
    for f, expected in (([0.1, 1.1, 2.5], 3), ([0.45, 1.1, 1.9], 1), ([3.0, 3.0, 3.0], 1)):
        state = {"v": 2 * np.array(f), "M": ones, "R": np.eye(3)}
        assert hidden_classes(task, state, margin=0.1) == expected


def test_softmax_counts_classes() -> None:
    task = sl.tasks.GaussianMixture(classes=3)
    M = np.array([[2.0, 0, 0], [0, 0, 2.0], [0, 1.0, 2.05]])  # row 2 wins at μ₁ and, barely, at μ₂
    assert hidden_classes(task, {"M": M, "R": np.eye(3)}, margin=0.0) == 2
    assert hidden_classes(task, {"M": M, "R": np.eye(3)}, margin=0.1) == 1
    assert hidden_classes(task, {"M": np.zeros((3, 3)), "R": np.eye(3)}, margin=0.0) == 0


def test_tasks_without_hidden_classes_are_refused() -> None:
    teacher = sl.tasks.TeacherStudent(readout="trained")
    with pytest.raises(sl.InputError, match=r"task=TeacherStudent\(.*labels that vary within a"):
        hidden_classes(teacher, teacher.random_state(20, seed=0))
    likelihood = sl.tasks.MixtureLikelihood()
    with pytest.raises(sl.InputError, match=r"task=MixtureLikelihood\(.* is not allowed"):
        hidden_classes(likelihood, likelihood.random_state(20, seed=0))
    single = sl.tasks.MultiIndexTask(loss=lambda s, v, y: jax.nn.relu(1 - y * s[0]), labels=[1])
    with pytest.raises(sl.InputError, match=r"task=MultiIndexTask\(.*one label only"):
        hidden_classes(single, {"M": [[1.0]], "R": [[1.0]]})
    with pytest.raises(sl.InputError, match=r"task=SpikedTensor\(.*must be a multi-index task"):
        hidden_classes(sl.tasks.SpikedTensor(), {"m": 0.0, "r2": 1.0})  # type: ignore[arg-type]
    xor = sl.tasks.XorMixture()
    with pytest.raises(sl.InputError, match="margin=-1 is not allowed"):
        hidden_classes(xor, xor.random_state(20, seed=0), margin=-1)

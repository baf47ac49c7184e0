"""Derivatives of the drift in a task's parameters, through ``limit.model``."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.tasks import Task
from tests.dynamics.flat import flatten

TANH: dict[str, Any] = {"activation": "tanh", "teacher_width": 1, "student_width": 1, "noise": 0.2}
SMOOTH: list[tuple[Task, str]] = [
    (sl.tasks.BinaryMixture(precision=4.0, ridge=0.1), "precision"),  # orthants
    (sl.tasks.BinaryMixture(precision=math.inf, ridge=0.1), "ridge"),  # nothing to average over
    (sl.tasks.GaussianMixture(classes=2, precision=3.0), "precision"),  # Gauss–Hermite
    (sl.tasks.GaussianMixture(classes=4, precision=3.0), "precision"),  # Sobol
    (sl.tasks.TeacherStudent(noise=0.2), "noise"),  # a closed form
    (sl.tasks.TeacherStudent(**TANH), "noise"),
    (sl.tasks.PhaseRetrieval(noise=0.3), "noise"),
    (sl.tasks.SingleIndex("tanh", student="erf", noise=0.1), "noise"),
    (sl.tasks.SpikedTensor(order=3, snr=2.0, ridge=0.3), "ridge"),
    (sl.tasks.SpikedTensor(order=3, snr=2.0, ridge=0.3), "snr"),
]


def derivative(task: Task, name: str, state: Any, nodes: int = 2**10) -> np.ndarray:
    """∂h/∂p by forward differentiation of the model."""
    limit = sl.effective_dynamics(task, step=0.5, nodes=nodes)
    with jax.enable_x64(True):
        u = jnp.asarray(limit.ravel(state))

        def drift(value: jax.Array) -> jax.Array:
            model = eqx.tree_at(lambda model: getattr(model.task, name), limit.model, value)
            return model.drift(u)

        value = jnp.asarray(getattr(task, name))
        return np.asarray(eqx.filter_jit(jax.jacfwd(drift))(value))


def difference(
    task: Task, name: str, state: Any, nodes: int = 2**10, h: float = 1e-4
) -> np.ndarray:
    """The same by central differences between limits at changed parameters."""
    value = getattr(task, name)
    ends = []
    for shift in (-h * value, h * value):
        moved = task.replace(**{name: value + shift})
        limit = sl.effective_dynamics(moved, step=0.5, nodes=nodes)
        ends.append(flatten(limit.drift(state)))
    return (ends[1] - ends[0]) / (2 * h * value)


@pytest.mark.parametrize(("task", "name"), SMOOTH, ids=lambda x: getattr(type(x), "__name__", x))
def test_parameters_can_be_differentiated(task: Task, name: str) -> None:
    state = task.random_state(30, seed=1)
    expected = difference(task, name, state)
    found = derivative(task, name, state)
    scale = np.max(np.abs(expected))
    assert scale > 1e-3  # the drift depends on it
    np.testing.assert_allclose(found, expected, atol=1e-6 * scale)


HINGE = sl.tasks.MultiIndexTask(
    loss=lambda s, v, y: jax.nn.relu(1 - y * s[0]),
    anchors=["mu"],
    means=[[1.0], [-1.0]],
    labels=[1, -1],
    precision=2.0,
    ridge=0.1,
)


@pytest.mark.parametrize(
    "name",
    [
        "precision",
        "ridge",
    ],
)
def test_a_kink_away_from_zero(name: str) -> None:
    """Nodes that move across a jump of the gradient: the derivative must see the jump."""
    state = {"M": [[0.7]], "R": [[0.5]]}
    # a difference wide enough that many nodes cross
    expected = difference(HINGE, name, state, nodes=2**13, h=0.05)
    np.testing.assert_allclose(derivative(HINGE, name, state, 2**13), expected, atol=5e-3)

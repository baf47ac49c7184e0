"""Statistics of weights and their velocity: one Gram matrix, at rest where none is given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.tasks.with_velocity import WithVelocity

TASKS = [
    WithVelocity(sl.tasks.PhaseRetrieval(width=2), 1.5),
    WithVelocity(sl.tasks.BinaryMixture(width=3), 0.5, 0.3),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task.base).__name__)
def test_random_states_are_at_rest(task: WithVelocity) -> None:
    state = task.random_state(30, seed=1)
    weights = task.base.random_state(30, seed=1)
    assert list(state) == list(task.shapes)
    for name, value in state.items():
        np.testing.assert_array_equal(value, weights.get(name, np.zeros(task.shapes[name])))
    checked = task.check_state(weights)
    for name, value in checked.items():
        np.testing.assert_array_equal(value, state[name])
    many = task.check_state(task.base.random_states(30, 1, range(4)), runs=4)
    assert all(value.shape == (4, *task.shapes[name]) for name, value in many.items())


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task.base).__name__)
def test_the_nearest_state_is_a_state(task: WithVelocity) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(5, len(task.layout.coordinates)))
    states = task.project(task.layout.unravel(vectors))
    task.check_state(states, runs=5)
    again = task.project(states)
    for name, value in states.items():
        np.testing.assert_allclose(again[name], value, atol=1e-12)
    with jax.enable_x64(True):
        traced = jax.jit(jax.vmap(lambda u: task.project(task.layout.unravel(u))))
        for name, value in traced(jnp.asarray(vectors)).items():
            np.testing.assert_allclose(value, states[name], atol=1e-12)
    K, part = task.base.width, states["cross_R"][0]
    joint = np.block([[states["R"][0], part], [part.T, states["velocity_R"][0]]])
    assert np.linalg.eigvalsh(joint)[0] > -1e-12
    assert joint.shape == (2 * K, 2 * K)


def test_parameters_are_changed_in_the_task() -> None:
    task = TASKS[1].replace(friction=2.0)
    assert isinstance(task, WithVelocity)
    assert task.friction == 2.0
    assert task.base.width == 3
    with pytest.raises(sl.InputError, match=r"friction=0\.0 is not allowed"):
        TASKS[1].replace(friction=0.0)

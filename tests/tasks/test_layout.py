"""The layout of statistics: flat names, flattening, and what makes arrays a state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.tasks.layout import Layout, Statistic
from tests.tasks.instances import IDS, TASKS

GRAM = Statistic("G", ("a", "b"), (("x", "y"), ("x", "y")), symmetric=True, nonnegative=True)
MIXED = Layout((Statistic("s"), GRAM, Statistic("n", ("a",), (("x", "y"),), nonnegative=True)))


def test_flat_names_in_order() -> None:
    assert MIXED.coordinates == ["s", "G[x,x]", "G[x,y]", "G[y,y]", "n[x]", "n[y]"]
    assert MIXED.nonnegative == ["G[x,x]", "G[y,y]", "n[x]", "n[y]"]
    assert MIXED.symmetric == ["G"]
    assert MIXED.coords == {"a": ["x", "y"], "b": ["x", "y"]}
    # of a symmetric matrix both indices count, whatever its second axis is called
    assert MIXED.indices("a", "y").tolist() == [2, 3, 5]


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_flattening_and_back(task: sl.tasks.Task) -> None:
    state = task.random_state(60, seed=2)
    with jax.enable_x64(True):
        vector = task.layout.ravel(state)
        assert vector.shape == (len(task.layout.coordinates),)
        again = task.layout.unravel(vector)
    assert list(again) == list(state)
    for name, value in state.items():
        np.testing.assert_allclose(np.asarray(again[name]), value, rtol=1e-12)


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_the_nearest_state_of_a_state_is_itself(task: sl.tasks.Task) -> None:
    """In NumPy with leading axes, and in JAX; and what is no state becomes one."""
    states = task.random_state(60, 2, runs=4)
    for name, value in task.project(states).items():
        np.testing.assert_allclose(value, states[name], rtol=1e-12)
    generator = np.random.default_rng(1)
    shaken = {name: x + 0.3 * generator.normal(size=x.shape) for name, x in states.items()}
    for name in task.layout.symmetric:
        shaken[name] = (shaken[name] + np.swapaxes(shaken[name], -1, -2)) / 2
    nearest = task.project(shaken)
    task.check_state(nearest, runs=4)
    with jax.enable_x64(True):
        for run in range(4):
            one = task.project({name: jnp.asarray(x[run]) for name, x in shaken.items()})
            for name, value in one.items():
                np.testing.assert_allclose(np.asarray(value), nearest[name][run], atol=1e-12)


def test_what_is_not_finite_stays() -> None:
    R = np.stack([np.eye(2), np.full((2, 2), np.nan), -np.eye(2)])
    clipped = MIXED.clip({"s": np.zeros(3), "G": R, "n": np.array([[1.0, -1.0]] * 3)})
    np.testing.assert_array_equal(clipped["G"][0], np.eye(2))
    assert np.all(np.isnan(clipped["G"][1]))
    np.testing.assert_allclose(clipped["G"][2], 0.0, atol=1e-15)
    np.testing.assert_array_equal(clipped["n"], [[1.0, 0.0]] * 3)


def test_errors_name_the_argument() -> None:
    good = {"s": np.zeros(()), "G": np.eye(2), "n": np.ones(2)}
    MIXED.check(good, "init")
    for name, value, message in (
        ("G", np.array([[1.0, 0.1], [0.2, 1.0]]), r"init\['G'\]=.*symmetric"),
        ("G", np.array([[1.0, 2.0], [2.0, 1.0]]), r"init\['G'\]=.*semidefinite .* is -1\)"),
        ("n", np.array([1.0, -0.1]), r"init\['n'\]=.*n must be >= 0"),
    ):
        with pytest.raises(sl.InputError, match=message):
            MIXED.check(good | {name: value}, "init")

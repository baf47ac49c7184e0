"""What every task promises, over every public task and several parameters of each."""

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.tasks import MultiIndexFamily, SpikedTensor, Task
from sgdlimits.tasks.base import BLOCK
from tests.families.two_variances import TwoVariances
from tests.tasks.instances import ARGUMENTS, CONCRETE, IDS, PARAMETERS, TASKS

DRAWS = 1000
SPARE = 2  # dimensions beyond the least: corrections of order 1/dim are large there
every_task = pytest.mark.parametrize("task", TASKS, ids=IDS)
every_network = pytest.mark.parametrize(
    "task", [task for task in TASKS if isinstance(task, MultiIndexFamily)]
)


def test_every_public_task_is_here_and_away_from_its_defaults() -> None:
    assert set(PARAMETERS) == set(CONCRETE)
    assert all(len(many) >= 2 for many in PARAMETERS.values())


# --- one draw -----------------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize("extra", [0, 100])
def test_a_random_state_is_a_state(task: Task, extra: int) -> None:
    state = task.random_state(task.least_dim + extra, seed=1)
    assert {name: value.shape for name, value in state.items()} == task.shapes
    assert list(state) == list(task.shapes)
    assert all(value.dtype == np.float64 for value in state.values())
    checked = task.check_state(state)
    for name in task.shapes:
        np.testing.assert_array_equal(checked[name], state[name])


@every_task
def test_axes_are_named_and_labelled(task: Task) -> None:
    for name, shape in task.shapes.items():
        assert tuple(len(task.layout.coords[axis]) for axis in task.layout.dims[name]) == shape


@every_task
def test_lists_and_integers_are_states_too(task: Task) -> None:
    state = {name: value.tolist() for name, value in task.random_state(50, seed=0).items()}
    checked = task.check_state(state)
    assert all(isinstance(value, np.ndarray) for value in checked.values())


@every_task
def test_draws_depend_on_the_seed_and_on_nothing_else(task: Task) -> None:
    first, again, other = (task.random_state(50, seed) for seed in (3, 3, 4))
    for name in task.shapes:
        np.testing.assert_array_equal(first[name], again[name])
        assert np.any(first[name] != other[name])


@every_task
def test_a_run_is_the_same_whatever_the_others_are(task: Task) -> None:
    count = 2 * BLOCK + 3  # the first by itself, two blocks, and two runs of a third
    many = task.random_state(50, 3, runs=count)
    part = task.random_state(50, 3, runs=range(BLOCK - 1, count, 2))
    alone = task.random_state(50, 3)
    for name, shape in task.shapes.items():
        assert many[name].shape == (count, *shape)
        np.testing.assert_array_equal(many[name][BLOCK - 1 :: 2], part[name])
        np.testing.assert_array_equal(many[name][0], alone[name])
        assert len(np.unique(many[name].reshape(count, -1)[:, 0])) == count
    assert {name: value.shape for name, value in task.check_state(many, runs=count).items()} == {
        name: (count, *shape) for name, shape in task.shapes.items()
    }


@every_task
def test_too_small_a_dimension_is_refused(task: Task) -> None:
    with pytest.raises(
        ValueError, match=rf"dim={task.smallest_dim - 1} .*dim >= {task.smallest_dim}"
    ):
        task.random_state(task.smallest_dim - 1, seed=0)
    assert task.random_state(np.int64(task.least_dim), seed=0)  # type: ignore[arg-type]


@every_task
def test_whole_numbers_may_be_written_as_floats(task: Task) -> None:
    wide, written = task.random_state(10_000, seed=2), task.random_state(1e4, seed=2.0)
    for name in task.shapes:
        np.testing.assert_array_equal(wide[name], written[name])
    whole = {name: x for name, x in task.parameters().items() if type(x) is int}
    again = task.replace(**{name: float(x) for name, x in whole.items()})
    assert again.parameters() == task.parameters()
    assert all(type(again.parameters()[name]) is int for name in whole)


@every_network
def test_weights_and_anchors_fit_side_by_side(task: MultiIndexFamily) -> None:
    assert task.least_dim == task.width + len(task.anchors)


@every_task
@pytest.mark.parametrize(
    ("dim", "seed", "message"),
    [
        (50.5, 0, r"dim=50\.5 .*integer"),
        ("50", 0, r"dim='50' .*integer"),
        (50, -1, r"seed=-1 .*integer >= 0"),
        (50, 0.5, r"seed=0\.5 .*integer >= 0"),
        (50, None, r"seed=None .*integer >= 0"),
    ],
)
def test_dimension_and_seed_are_whole_numbers(
    task: Task, dim: Any, seed: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        task.random_state(dim, seed)


# --- the law of many draws ----------------------------------------------------------------------


class Law(NamedTuple):
    """Draws in the words of multi-index tasks, and the Gram matrix P of the anchors."""

    M: np.ndarray
    R: np.ndarray
    P: np.ndarray


@functools.singledispatch
def law(task: Task, states: dict[str, np.ndarray]) -> Law:
    raise NotImplementedError(type(task))


@law.register
def _(task: MultiIndexFamily, states: dict[str, np.ndarray]) -> Law:
    return Law(states["M"], states["R"], task.gram)


@law.register
def _(task: SpikedTensor, states: dict[str, np.ndarray]) -> Law:
    return Law(states["m"][:, None, None], states["r2"][:, None, None], np.eye(1))


@law.register
def _(task: TwoVariances, states: dict[str, np.ndarray]) -> Law:
    total = states["r2"].sum(axis=1)[:, None, None]
    return Law(states["m"][:, None, :], total, np.eye(2))


@functools.cache
def draws(number: int) -> dict[str, np.ndarray]:
    """Many states of the task with this number, in a dimension where 1/dim is not small."""
    task = TASKS[number]
    return task.random_state(task.least_dim + SPARE, seed=7, runs=DRAWS)


def scores(samples: np.ndarray, expected: np.ndarray | float) -> np.ndarray:
    """Distance of the mean over the first axis from what is expected, in standard errors."""
    error = samples.std(axis=0, ddof=1) / len(samples) ** 0.5
    return np.abs(samples.mean(axis=0) - expected) / error


@pytest.mark.parametrize("number", range(len(TASKS)), ids=IDS)
def test_the_law_of_the_weights(number: int) -> None:
    task = TASKS[number]
    dim = task.least_dim + SPARE
    M, R, P = law(task, draws(number))
    K, r = M.shape[1:]
    across = np.einsum("nia,njb->niajb", M, M).reshape(DRAWS, K * r, K * r)
    upper, diagonal = np.triu_indices(K, 1), np.arange(K)
    inside = np.einsum("nia,ab,nib->ni", M, np.linalg.inv(P), M)
    assert np.max(scores(M, 0.0)) < 4.5
    assert np.max(scores(across, np.kron(np.eye(K), P) / dim)) < 4.5
    assert np.max(scores(R[:, *upper], 0.0), initial=0.0) < 4.5
    assert np.max(scores(R[:, diagonal, diagonal], (dim - r) / dim)) < 4.5
    # control: M of another dimension, and R without the anchors' share, are noticed
    assert np.max(scores(inside, r / (dim - 2))) > 4.5
    assert np.max(scores(R[:, diagonal, diagonal], 1.0)) > 4.5


def squared_norms(number: int) -> np.ndarray:
    M, R, P = law(TASKS[number], draws(number))
    return np.einsum("nia,ab,nib->ni", M, np.linalg.inv(P), M) + np.einsum("nii->ni", R)


def on_sphere(task: Task) -> bool:
    return isinstance(task, MultiIndexFamily) and task.spherical


@pytest.mark.parametrize("number", [i for i, task in enumerate(TASKS) if on_sphere(task)])
def test_norms_are_one_on_the_sphere(number: int) -> None:
    np.testing.assert_allclose(squared_norms(number), 1.0, rtol=1e-13)


@pytest.mark.parametrize("number", [i for i, task in enumerate(TASKS) if not on_sphere(task)])
def test_norms_are_chi_square_elsewhere(number: int) -> None:
    dim, norms = TASKS[number].least_dim + SPARE, squared_norms(number)
    assert np.max(scores(norms, 1.0)) < 4.5
    assert np.max(scores((norms - 1) ** 2, 2 / dim)) < 4.5


@pytest.mark.parametrize("number", [i for i, task in enumerate(TASKS) if "v" in task.shapes])
def test_the_readout_is_standard_normal(number: int) -> None:
    v = draws(number)["v"]
    square = np.einsum("ni,nj->nij", v, v)
    assert np.max(scores(v, 0.0)) < 4.5
    assert np.max(scores(square, np.eye(v.shape[1]))) < 4.5
    assert np.max(scores(v**4, 3.0)) < 4.5


# --- provenance and immutability ----------------------------------------------------------------


@every_task
def test_parameters_are_json(task: Task) -> None:
    assert json.loads(json.dumps(task.parameters())) is not None


@pytest.mark.parametrize(
    ("task", "arguments"),
    [(task, arguments) for task, (_, arguments) in zip(TASKS, ARGUMENTS, strict=True)],
    ids=IDS,
)
def test_parameters_say_what_was_given(task: Task, arguments: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(task.parameters()))
    given = {name: value for name, value in arguments.items() if name != "parameters"}
    for name, value in (given | arguments.get("parameters", {})).items():
        expected = value.__name__ if callable(value) else value
        found = plain[name]
        if isinstance(found, list) and not isinstance(found[0], str):
            np.testing.assert_allclose(found, expected, rtol=1e-15)
        else:
            assert found == (list(expected) if isinstance(expected, tuple) else expected)


@every_task
def test_a_task_can_be_made_again_with_another_parameter(task: Task) -> None:
    again = task.replace()
    structures: list[Any] = [jax.tree.structure(task), jax.tree.structure(again)]
    assert structures[0] == structures[1]
    jax.tree.map(np.testing.assert_array_equal, task, again)
    with pytest.raises(ValueError, match="colour=1 is not allowed: the parameters of"):
        task.replace(colour=1)
    names = [name for name, value in task.parameters().items() if isinstance(value, float)]
    for name in names:
        assert task.replace(**{name: 0.3}).parameters() == task.parameters() | {name: 0.3}
    name = names[0]
    with pytest.raises(ValueError, match=f"{name}=-1.0 is not allowed"):
        task.replace(**{name: -1.0})


@every_task
def test_repr_shows_the_parameters(task: Task) -> None:
    text = repr(task)
    assert text.startswith(f"{type(task).__name__}(")
    for name, value in task.parameters().items():
        assert f"{name}={value!r}" in text or f"{name!r}: {value!r}" in text


@pytest.mark.parametrize(("task", "arguments"), ARGUMENTS, ids=IDS)
def test_the_same_arguments_give_the_same_task(
    task: Callable[..., Task], arguments: dict[str, Any]
) -> None:
    first, second = task(**arguments), task(**arguments)
    structures: list[Any] = [jax.tree.structure(first), jax.tree.structure(second)]
    assert structures[0] == structures[1]  # so that one compilation serves both
    assert repr(first) == repr(second)


@every_task
def test_tasks_are_frozen(task: Task) -> None:
    for field in dataclasses.fields(task):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(task, field.name, getattr(task, field.name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.something_new = 1  # type: ignore[attr-defined]


@every_task
def test_real_parameters_are_leaves_and_sizes_are_structure(task: Task) -> None:
    for leaf in jax.tree.leaves(task):
        assert isinstance(leaf, float | np.ndarray)


# --- the loss -----------------------------------------------------------------------------------


@every_network
def test_the_loss_is_a_finite_differentiable_number(task: MultiIndexFamily) -> None:
    generator = np.random.default_rng(0)
    loss = jax.jit(lambda s, v, y: task.loss(s, v, y))  # one program, not one for each operation
    with jax.enable_x64(True):
        for component in range(len(task.weights)):
            fields = jnp.asarray(generator.normal(size=task.width))
            readout = jnp.asarray(generator.normal(size=task.width)) if task.trained else None
            anchors = jnp.asarray(generator.normal(size=len(task.anchors)))
            noise = jnp.asarray(generator.normal())
            label = task.label(component, anchors, noise)
            value = loss(fields, readout, label)
            assert value.shape == ()
            assert np.isfinite(value)
            assert_gradient(lambda s: loss(s, readout, label), fields)
            if readout is not None:
                assert_gradient(lambda v: loss(fields, v, label), readout)


@every_network
def test_every_task_has_labels(task: MultiIndexFamily) -> None:
    """A real number for every component, at once or one by one, whatever labels are made of."""
    generator = np.random.default_rng(2)
    k, r = len(task.weights), len(task.anchors)
    with jax.enable_x64(True):
        anchors, noise = (
            jnp.asarray(generator.normal(size=(k, r))),
            jnp.asarray(generator.normal(size=k)),
        )
        together = np.asarray(jax.jit(jax.vmap(task.label))(jnp.arange(k), anchors, noise))
        alone = [task.label(c, anchors[c], noise[c]) for c in range(k)]
    assert all(label.shape == () and label.dtype == np.float64 for label in alone)
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    if task.labels is not None:
        np.testing.assert_array_equal(together, task.labels)
    assert task.label(0, jnp.zeros(r), 0.5).shape == ()  # in the caller's own precision


@every_network
def test_labels_without_noise_do_not_move_with_it(task: MultiIndexFamily) -> None:
    """And whoever has a noise of some size says so."""
    anchors = jnp.linspace(0.3, 1.1, len(task.anchors))
    labels = {float(task.label(0, anchors, noise)) for noise in (-2.0, 0.5, 3.0)}
    assert task.noisy or len(labels) == 1
    if "noise" in task.arguments():
        assert type(task)(**task.arguments() | {"noise": 0.1}).noisy
        assert not type(task)(**task.arguments() | {"noise": 0.0}).noisy


@pytest.mark.parametrize("task", [task for task in TASKS if isinstance(task, SpikedTensor)])
def test_the_population_loss_of_spiked_tensors_is_differentiable(task: SpikedTensor) -> None:
    with jax.enable_x64(True):
        point = jnp.array([0.4, 0.9])
        assert_gradient(lambda x: jnp.asarray(task.population_loss(x[0], x[1])), point)


def assert_gradient(function: Callable[[jax.Array], jax.Array], point: jax.Array) -> None:
    """The gradient exists, is not identically 0, and agrees with central differences."""
    gradient = np.asarray(jax.grad(function)(point))
    assert np.all(np.isfinite(gradient))
    for i in range(len(point)):
        shift = 1e-5 * (np.arange(len(point)) == i)
        high, low = (function(jnp.asarray(np.asarray(point) + s)) for s in (shift, -shift))
        numerical = float(high - low) / 2e-5
        assert gradient[i] == pytest.approx(numerical, rel=1e-6, abs=1e-8)


@every_network
def test_the_loss_depends_on_what_it_should(task: MultiIndexFamily) -> None:
    """Over many samples, every neuron and the label's randomness move the loss."""
    generator = np.random.default_rng(1)
    with jax.enable_x64(True):
        fields = jnp.asarray(generator.normal(size=(64, task.width)))
        readout = jnp.asarray(generator.normal(size=task.width)) if task.trained else None
        slope = jax.grad(lambda s: task.loss(s, readout, jnp.asarray(0.5)))
        gradients = jax.jit(jax.vmap(slope))(fields)
    assert np.all(np.any(np.asarray(gradients) != 0, axis=0))

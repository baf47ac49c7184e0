"""Parameters of a caller's own loss and labels: numbers by name, leaves of the task."""

import functools
import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.tasks import MultiIndexTask


def logistic(s: jax.Array, v: jax.Array, y: jax.Array, slope: jax.Array) -> jax.Array:
    return jax.nn.softplus(-slope * y * s[0])


def flipped(c: jax.Array, a: jax.Array, z: jax.Array, *, flip: jax.Array) -> jax.Array:
    sign = 1.0 - 2.0 * c
    return jnp.where(jax.scipy.special.ndtr(z) < flip, -sign, sign)


def plain(s: jax.Array, v: jax.Array, y: jax.Array) -> jax.Array:
    return (y - s[0]) ** 2


def own(**changes: Any) -> MultiIndexTask:
    arguments: dict[str, Any] = {
        "loss": logistic,
        "labels": flipped,
        "anchors": ["mu"],
        "means": [[1.0], [-1.0]],
        "parameters": {"slope": 2.0, "flip": 0.25},
    }
    return MultiIndexTask(**(arguments | changes))


def test_each_function_gets_those_that_it_names() -> None:
    task = own()
    with jax.enable_x64(True):
        s, y = jnp.asarray([0.7]), jnp.asarray(1.0)
        assert float(task.loss(s, None, y)) == pytest.approx(np.log1p(np.exp(-2.0 * 0.7)))
        labels = [float(task.label(0, jnp.zeros(1), jnp.asarray(z))) for z in (-0.7, -0.6)]
    assert labels == [-1.0, 1.0]  # Φ(−0.674) = 1/4


def test_values_are_leaves_and_names_are_structure() -> None:
    one, two = own(), own(parameters={"flip": 0.1, "slope": 1})
    structures: list[Any] = [jax.tree.structure(one), jax.tree.structure(two)]
    assert structures[0] == structures[1]
    assert 0.25 in [leaf for leaf in jax.tree.leaves(one) if isinstance(leaf, float)]
    assert all(isinstance(leaf, float | np.ndarray) for leaf in jax.tree.leaves(two))


def test_provenance_names_them_like_all_others() -> None:
    task = own()
    shown = json.loads(json.dumps(task.parameters()))
    assert shown["flip"] == 0.25
    assert shown["slope"] == 2.0
    assert "parameters" not in shown
    assert "parameters={'slope': 2.0, 'flip': 0.25}" in repr(task)
    assert task.flip == 0.25
    assert not hasattr(task, "flop")
    assert MultiIndexTask(
        loss=plain, labels=[0.0]
    ).parameters().keys() == task.parameters().keys() - {
        "flip",
        "slope",
    }


def test_replace_by_name_or_all_at_once() -> None:
    task = own()
    assert task.replace(flip=0.1).parameters() == task.parameters() | {"flip": 0.1}
    assert task.replace(flip=0.1, ridge=0.5).ridge == 0.5
    both = task.replace(parameters={"slope": 1.0, "flip": 0.3})
    assert (both.slope, both.flip) == (1.0, 0.3)
    assert task.replace(parameters={"slope": 1.0, "flip": 0.3}, flip=0.4).flip == 0.4
    with pytest.raises(
        sl.InputError, match=r"flop=1 is not allowed: the parameters of .*slope, flip"
    ):
        task.replace(flop=1)
    with pytest.raises(
        sl.InputError, match=r"flip='much' is not allowed: flip must be real numbers"
    ):
        task.replace(flip="much")
    with pytest.raises(sl.InputError, match=r"parameters=3 is not allowed: .*a dict of numbers"):
        task.replace(parameters=3, flip=0.1)


def test_arrays_are_parameters_too() -> None:
    def tables(c: jax.Array, a: jax.Array, z: jax.Array, table: jax.Array) -> jax.Array:
        return table[c] + z

    task = MultiIndexTask(
        loss=plain, labels=tables, means=[[1.0], [-1.0]], parameters={"table": [2.0, 3.0]}
    )
    assert task.parameters()["table"] == [2.0, 3.0]
    with jax.enable_x64(True):
        assert float(task.label(1, jnp.zeros(1), 0.5)) == 3.5
    with pytest.raises(sl.InputError, match=r"labels is not allowed: .*2 components, but .*beyond"):
        task.replace(table=[2.0])


def test_defaults_partials_and_open_signatures() -> None:
    def with_default(s: Any, v: Any, y: Any, scale: float = 3.0) -> Any:
        return scale * s[0]

    def with_any(s: Any, v: Any, y: Any, **numbers: Any) -> Any:
        return numbers["scale"] * s[0]

    def three(s: Any, v: Any, y: Any, scale: Any) -> Any:
        return scale * s[0]

    partial = functools.partial(three, scale=3.0)
    one = jnp.ones(1)
    for loss, given, value in (
        (with_default, None, 3.0),
        (with_default, {"scale": 2.0}, 2.0),
        (partial, {}, 3.0),
        (partial, {"scale": 2.0}, 2.0),
        (with_any, {"scale": 2.0, "other": 1.0}, 2.0),
        (jax.jit(three), {"scale": 2.0}, 2.0),
    ):
        task = MultiIndexTask(loss=loss, labels=[0.0], parameters=given)
        assert float(task.loss(one, None, jnp.zeros(()))) == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parameters": 0.1}, r"parameters=0\.1 .*dict of numbers by name"),
        ({"parameters": [0.1]}, r"parameters=\[0\.1\] .*dict of numbers by name"),
        ({"parameters": {}}, r"parameters=\{\} .*loss takes slope without a default"),
        (
            {"parameters": {"slope": 1.0}},
            r"parameters=\{'slope': 1\.0\} .*labels takes flip without",
        ),
        (
            {"parameters": {"slope": 1.0, "flip": 0.1, "flop": 2.0}},
            r"parameters=\{.*'flop': 2\.0\} .*takes flop; loss and labels take slope, flip",
        ),
        ({"parameters": {"slope": 1.0, "flip": 0.1, "a b": 2.0}}, r"'a b' is no name"),
        ({"parameters": {"slope": 1.0, "flip": 0.1, "lambda": 2.0}}, r"'lambda' is no name"),
        ({"parameters": {"slope": 1.0, "flip": 0.1, 3: 2.0}}, r"3 is no name"),
        *(
            (
                {"parameters": {"slope": 1.0, "flip": 0.1, name: 2.0}},
                rf"'{name}' is a name that the task",
            )
            for name in (
                "ridge",
                "loss",
                "parameters",
                "replace",
                "trained",
                "step",
                "M",
                "_values",
            )
        ),
        ({"parameters": {"slope": "1", "flip": 0.1}}, r"slope='1' .*slope must be real numbers"),
        ({"parameters": {"slope": True, "flip": 0.1}}, r"slope=True .*slope must be real numbers"),
        ({"parameters": {"slope": None, "flip": 0.1}}, r"slope=None .*slope must be real numbers"),
        ({"parameters": {"slope": float("nan"), "flip": 0.1}}, r"slope=nan .*slope must be finite"),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        own(**arguments)


def test_parameters_are_traced_when_the_functions_are_tried() -> None:
    with pytest.raises(sl.InputError, match=r"loss fails .*jax\.numpy\.where"):
        own(loss=lambda s, v, y, slope: s[0] if slope > 0 else -s[0])
    with pytest.raises(sl.InputError, match=r"loss fails .*jax\.numpy is needed"):
        own(loss=lambda s, v, y, slope: np.sqrt(slope) * s[0])


def test_a_task_whose_labels_are_a_list_has_parameters_of_the_loss_only() -> None:
    task = own(labels=[1.0, -1.0], parameters={"slope": 2.0})
    assert task.slope == 2.0
    with pytest.raises(sl.InputError, match=r"no function takes flip; loss take slope"):
        own(labels=[1.0, -1.0])


def test_parameters_are_where_derivatives_are_taken() -> None:
    task = own()
    with jax.enable_x64(True):

        def value(slope: jax.Array) -> jax.Array:
            moved = eqx.tree_at(lambda task: task.slope, task, slope)
            return moved.loss(jnp.asarray([0.7]), None, jnp.asarray(1.0))

        derivative = float(jax.grad(value)(jnp.asarray(2.0)))
    assert derivative == pytest.approx(-0.7 / (1 + np.exp(1.4)), rel=1e-12)

"""A loss or labels that cannot work are refused at construction, with what to write instead."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.tasks import MultiIndexTask, SingleIndex

TABLE = [1.0, -1.0]


def square(s: Any, v: Any, y: Any) -> Any:
    return (y - jnp.sum(s)) ** 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": lambda s, v, y: np.tanh(s)[0]}, r"loss fails .*uses NumPy.*jax\.numpy is needed"),
        ({"loss": lambda s, v, y: np.dot(s, s)}, r"loss fails .*jax\.numpy"),
        ({"loss": lambda s, v, y: math.exp(s[0])}, r"loss fails .*Python number.*jax\.numpy"),
        ({"loss": lambda s, v, y: s[0] if s[0] > y else y}, r"loss fails .*jax\.numpy\.where"),
        ({"labels": lambda c, a, z: np.sign(a[0])}, r"labels fails .*jax\.numpy is needed"),
        ({"labels": lambda c, a, z: TABLE[c]}, r"labels fails .*list.*jax\.numpy is needed"),
        ({"labels": lambda c, a, z: np.array(TABLE)[c]}, r"labels fails .*jax\.numpy is needed"),
        ({"loss": lambda s, v, y: jnp.sum(v * s)}, r"readout='fixed' .*None.*readout=\"trained\""),
        ({"loss": lambda s, v, y: v[0] * s[0]}, r"readout='fixed' .*readout=\"trained\""),
        ({"loss": lambda s, v, y: jnp.sum(v.T @ s)}, r"readout='fixed' .*readout=\"trained\""),
        ({"loss": lambda s, v, y: s[3]}, r"loss is not allowed: width is 3, but .*index 3 is out"),
        ({"loss": lambda s, v, y: jnp.tanh(s)[-4]}, r"loss is not allowed: width is 3, .*beyond"),
        ({"loss": jax.jit(lambda s, v, y: s[7])}, r"loss is not allowed: width is 3, .*index 7"),
        (
            {"labels": lambda c, a, z: a[2]},
            r"labels is not allowed: there are 2 anchors and 3 components, but .*index 2",
        ),
        ({"labels": lambda c, a, z: jnp.asarray(TABLE)[c]}, r"labels is not allowed: .*index 2"),
        ({"loss": lambda s, v, y: jnp.log(s[0])}, r"loss returns nan for an ordinary.*fields=\["),
        ({"loss": lambda s, v, y: jnp.take(s, 5)}, r"loss returns nan for an ordinary sample"),
        ({"loss": lambda s, v, y: s[0] / (y - 1)}, r"loss returns -?inf for an.*, label=1\.0"),
        (
            {"loss": lambda s, v, y: jnp.linalg.norm(s * 0) + s[0]},
            r"the gradient of loss is \[nan, nan, nan\] .*fields=\[",
        ),
        (
            {"labels": lambda c, a, z: jnp.sqrt(z)},
            r"labels returns nan .*at component=0, anchors=\[.*\], noise=-",
        ),
        ({"loss": lambda s, v: s[0]}, r"loss fails for one sample.*TypeError.*positional"),
        ({"loss": lambda s, v, y: 1 / 0 * s[0]}, r"loss fails for one sample.*ZeroDivisionError"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        make(**arguments)


def make(**arguments: Any) -> MultiIndexTask:
    default: dict[str, Any] = {
        "loss": square,
        "width": 3,
        "anchors": ["a", "b"],
        "means": [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]],
        "labels": [1.0, -1.0, 1.0],
    }
    return MultiIndexTask(**(default | arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"loss": lambda s, v, y: jnp.take(s, 5, mode="clip")},  # asked for
        {"loss": lambda s, v, y: s.at[5].get(mode="clip")},
        {"loss": lambda s, v, y: s[-3] * s[2]},
        {"loss": lambda s, v, y: np.sum(s) + math.pi * y},  # NumPy hands over to JAX
        {"loss": lambda s, v, y: jnp.linalg.norm(s)},  # its gradient is NaN at zero only
        {"loss": lambda s, v, y: jax.lax.fori_loop(0, 3, lambda i, t: t * s[i], y)},
        {"loss": lambda s, v, y: s[y.astype(int)]},
        {"labels": lambda c, a, z: jnp.asarray([1.0, 2.0, 3.0])[c]},
        {"labels": lambda c, a, z: c},
        {"loss": lambda s, v, y: jnp.sum(v * s), "readout": "trained"},
        {"precision": math.inf},
        {"precision": 1e-6},
    ],
)
def test_allowed(arguments: dict[str, Any]) -> None:
    make(**arguments)


def test_a_task_can_be_made_while_the_caller_is_traced() -> None:
    @jax.jit
    def twice(x: jax.Array) -> jax.Array:
        return x * make(loss=lambda s, v, y: jnp.sum(s) * y).width

    assert float(twice(jnp.ones(()))) == 3.0


def test_an_activation_that_is_numpy() -> None:
    with pytest.raises(sl.InputError, match=r"link=.*jax\.numpy is needed"):
        SingleIndex(np.tanh)  # type: ignore[arg-type]

"""What a triple accepts, and what it says about what it does not."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgdlimits.triples.generator import generator
from sgdlimits.triples.triple import Triple
from tests.triples.triples import gaussian, xor_twin


def loss(x: jax.Array, y: jax.Array) -> jax.Array:
    return (x @ x) ** 2 / 4 - (x @ y) ** 2 / 2


def sample(key: jax.Array, dim: int) -> jax.Array:
    return jax.random.normal(key, (dim,))


def statistics(x: jax.Array, dim: int) -> jax.Array:
    return jnp.stack([x[0], x @ x])


GOOD: dict[str, Any] = {
    "loss": loss,
    "sample": sample,
    "statistics": statistics,
    "init": gaussian,
}


TRIPLE = Triple(**GOOD)


def uneven(key: jax.Array, dim: int) -> jax.Array:
    return jnp.ones(dim + int(jax.random.bernoulli(key)))


def test_names() -> None:
    assert TRIPLE.statistic_names(10) == ("u[0]", "u[1]")
    assert Triple(**GOOD, names=["m", "q"]).statistic_names(10) == ("m", "q")
    assert len(xor_twin().triple.statistic_names(20)) == 22


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": 3}, "loss=3 is not allowed"),
        ({"names": "mq"}, "names='mq' is not allowed"),
        ({"names": ["m"]}, "one for each of the 2 statistics"),
        ({"loss": lambda x, y: x * y}, r"loss returns an array of shape \(10,\)"),
        ({"loss": lambda x, y: jnp.argmax(x)}, "type int64.*real scalar"),
        ({"loss": lambda x, y: x @ y[:-1]}, "loss is not allowed: JAX cannot trace it: TypeError"),
        ({"init": lambda key, dim: jnp.arange(dim)}, "parameters must be arrays of real numbers"),
        ({"sample": uneven}, r"sample returns data of different shapes.*\(10,\) and.*\(11,\)"),
        ({"sample": lambda key, dim: np.zeros(int(key[0]))}, "JAX cannot trace sample"),
        ({"statistics": lambda x, dim: x @ x}, r"statistics returns an array of shape \(\)"),
        ({"statistics": lambda x, dim: [x @ x]}, "statistics returns a list"),
        ({"statistics": lambda x, dim: jnp.stack([x > 0])[:, 0]}, "type bool.*real numbers"),
    ],
)
def test_wrong_functions(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Triple(**(GOOD | change)).statistic_names(10)


@jax.custom_jvp
def undifferentiable(x: jax.Array) -> jax.Array:
    return x


@undifferentiable.defjvp
def _(primals: Any, tangents: Any) -> Any:
    raise TypeError("no derivative")


ROUGH = {
    "statistic 1 jumps": [lambda x: jnp.sign(x[0]), lambda x: jnp.round(4 * x[0])],
    "statistic 1 jumps or has a kink": [
        lambda x: jnp.abs(x[0]) + x @ x,
        lambda x: jnp.sum(jax.nn.relu(x)),
    ],
    "not finite": [lambda x: jnp.log(x[0])],
}
SMOOTH = [
    lambda x: jnp.sqrt(x @ x),
    lambda x: jnp.tanh(20 * x[0]),
    lambda x: x[0] ** 3 / 3,
    lambda x: jnp.exp(-x @ x),
    lambda x: 1e6 * x[0],
]
MESSAGES = [message for message, functions in ROUGH.items() for _ in functions]
FUNCTIONS = [function for functions in ROUGH.values() for function in functions] + SMOOTH


class One(eqx.Module):
    """|x|², and one of the functions: which is a number, so that one compilation serves all."""

    which: np.ndarray

    def __call__(self, x: jax.Array, dim: int) -> jax.Array:
        return jnp.stack([x @ x, jax.lax.switch(self.which, FUNCTIONS, x)])


def names_with(number: int) -> tuple[str, ...]:
    return Triple(**(GOOD | {"statistics": One(np.asarray(number))})).statistic_names(20)


@pytest.mark.parametrize(("number", "message"), list(enumerate(MESSAGES)))
def test_statistics_must_be_smooth(number: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"twice differentiable.*{message}"):
        names_with(number)


def test_statistics_must_have_derivatives() -> None:
    bad = Triple(**(GOOD | {"statistics": lambda x, dim: undifferentiable(x)[:2]}))
    with pytest.raises(ValueError, match=r"twice differentiable.*TypeError: no derivative"):
        bad.statistic_names(20)


@pytest.mark.parametrize("number", range(len(MESSAGES), len(FUNCTIONS)))
def test_smooth_statistics_pass(number: int) -> None:
    assert names_with(number) == ("u[0]", "u[1]")


@pytest.mark.parametrize("dims", [[10], [10, 10], 10, "10", [10, 0], [10, 20.5]])
def test_dims(dims: Any) -> None:
    with pytest.raises(ValueError, match="dims="):
        TRIPLE.check_dims(dims, least=2)


def test_statistics_of_changing_length() -> None:
    bad = Triple(**(GOOD | {"statistics": lambda x, dim: x}))
    with pytest.raises(ValueError, match=r"different lengths.*10 at dim=10, 20 at dim=20"):
        bad.check_dims([10, 20], least=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"triple": 1}, "triple=1"),
        ({"params": np.zeros((10, 2))}, r"params is shape \(10, 2\).*shape \(10,\)"),
        ({"params": {"x": np.zeros(10)}}, "params is"),
        ({"params": np.full(10, np.nan)}, "finite"),
        ({"params": 1.0}, "must hold arrays"),
        ({"dim": 9}, r"at dim=9 init\(key, dim\) gives shape \(9,\)"),
        ({"step": 0}, "step=0"),
        ({"samples": 10}, "samples=10"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_arguments(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "triple": TRIPLE,
        "params": np.ones(10),
        "step": 1.0,
        "samples": 40,
    }
    with pytest.raises(ValueError, match=message):
        generator(**(arguments | change))

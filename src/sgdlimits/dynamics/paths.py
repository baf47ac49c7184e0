"""Sample paths of the effective dynamics at finite dimension, by Euler–Maruyama."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index
from sgdlimits.dynamics.model import Model, Vector


@eqx.filter_jit
def advance(
    model: Model,
    vectors: Float[Array, "runs n"],
    keys: Array,
    first: Index,
    count: Index,
    time_step: Float[Array, ""],
    dim: Float[Array, ""],
) -> Float[Array, "runs n"]:
    """Take ``count`` steps of du = h dt + √(Σ/dim) dB from step ``first`` on, one key per run."""

    def euler(vector: Vector, key: Array, index: Index) -> Vector:
        noise = jax.random.normal(jax.random.fold_in(key, index), vector.shape)
        spread = square_root(model.diffusion(vector) * time_step / dim)
        return model.retract(vector + time_step * model.drift(vector) + spread @ noise)

    def body(i: Index, vectors: Float[Array, "runs n"]) -> Float[Array, "runs n"]:
        return jax.vmap(euler, (0, 0, None))(vectors, keys, first + i)

    return jax.lax.fori_loop(0, count, body, vectors)


def square_root(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A square root of a positive semidefinite matrix, singular ones included."""
    values, vectors = jnp.linalg.eigh(matrix)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))

"""Sample paths of the effective dynamics at finite dimension, by Euler–Maruyama."""

import functools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._progress import progress
from sgdlimits._types import Index
from sgdlimits.dynamics.model import Model, Vector


def sample(
    model: Model,
    starts: Float[Array, "runs n"],
    times: np.ndarray,
    largest_step: float,
    dim: int,
    seed: int,
) -> Float[Array, "runs t n"]:
    """Paths of du = h dt + √(Σ/dim) dB at equally spaced times, one from each start."""
    spacing = times[1] - times[0]
    per_interval = math.ceil(spacing / largest_step)
    fold = functools.partial(jax.random.fold_in, jax.random.key(seed))
    keys = jax.vmap(fold)(jnp.arange(len(starts)))
    vectors = starts
    recorded = [vectors]
    with progress("sampling paths", len(times) - 1) as advance:
        for interval in range(len(times) - 1):
            vectors = _advance(
                model,
                vectors,
                keys,
                jnp.asarray(interval * per_interval),
                jnp.asarray(per_interval),
                jnp.asarray(spacing / per_interval),
                jnp.asarray(float(dim)),
            )
            recorded.append(vectors.block_until_ready())
            advance(1)
    return jnp.stack(recorded, axis=1)


def time_step(model: Model, path: Float[Array, "t n"]) -> float:
    """A tenth of the fastest time scale along a solution."""
    rates = [
        float(np.linalg.norm(np.asarray(_jacobian(model, vector)), 2))
        for vector in path
        if bool(jnp.all(jnp.isfinite(vector)))
    ]
    return 0.1 / max([*rates, 0.1])


_jacobian = eqx.filter_jit(lambda model, vector: model.jacobian(vector))


@eqx.filter_jit
def _advance(
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

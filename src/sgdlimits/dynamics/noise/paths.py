"""Sample paths of the effective dynamics at finite dimension, by Euler–Maruyama."""

import functools
import math
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Index, Number, StateLike, WholeNumber
from sgdlimits.dynamics.flow import follow, start_vectors, to_dataset
from sgdlimits.dynamics.model import Limit, Model, Vector


@runtime_checkable
class SDE(Protocol):
    """What Euler–Maruyama needs to know: a model, or one in other coordinates."""

    def drift(self, vector: Vector) -> Vector:
        """The velocity h."""
        ...

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ."""
        ...

    def retract(self, vector: Vector) -> Vector:
        """The nearest vector that is allowed."""
        ...


PILOTS = 4  # solutions along which the time step of sampled paths is chosen


@double_precision
def sample_paths(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike,
    dim: WholeNumber = 3000,
    *,
    time: Number = 10.0,
    runs: WholeNumber = 64,
    seed: WholeNumber = 0,
    points: WholeNumber = 201,
) -> xr.Dataset:
    """Sample the SDE du = h dt + √(Σ/dim) dB of SGD in dimension ``dim``.

    The Euler–Maruyama step is a tenth of the fastest time scale along the limit. For tasks that
    need quadrature the exact chain (``simulate``) is often faster than this approximation.

    Args:
        init: where all paths start, or one state per run along a leading axis.
        dim: the dimension d.
        time: where to stop, in units of dim/step samples.
        runs: number of paths.
        seed: of the noise; path i is the same whatever ``runs``.
        points: number of equally spaced times in the result.
    """
    dim = self.task.check_dim(dim)
    time = _checks.positive("time", time)
    runs = _checks.integer("runs", runs, least=1)
    points = _checks.integer("points", points, least=2)
    seed = _checks.integer("seed", seed, least=0)
    starts, _ = start_vectors(self.model, self.task, init, runs)
    times = np.linspace(0, time, points)
    first = self.cheaper(starts, "at the start")
    rough = follow(first, starts[:PILOTS], jnp.linspace(0, time, 11))[0].reshape(
        -1, starts.shape[1]
    )
    model = self.cheaper(rough, "along these paths")
    largest = time_step(model, rough)
    starts = jnp.broadcast_to(starts, (runs, starts.shape[1]))
    values = euler_paths(model, starts, times, largest, dim, seed)
    attrs = {"kind": "paths"} | self.provenance | {"dim": dim, "seed": seed}
    return to_dataset(self.model, values, times, attrs)


def euler_paths(
    model: SDE,
    starts: Float[Array, "runs n"],
    times: np.ndarray,
    largest_step: float,
    dim: int,
    seed: int,
) -> Float[Array, "runs t n"]:
    """Paths of du = h dt + √(Σ/dim) dB at equally spaced times, one from each start."""
    spacing = times[1] - times[0]
    per_interval = math.ceil(spacing / largest_step)
    keys = path_keys(seed, len(starts))
    vectors = starts
    recorded = [vectors]
    with progress("sampling paths", len(times) - 1) as advance:
        for interval in range(len(times) - 1):
            vectors = advance_paths(
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


def path_keys(seed: int, count: int) -> Array:
    """One key of randomness per path, the same whatever their number."""
    fold = functools.partial(jax.random.fold_in, jax.random.key(seed))
    return jax.vmap(fold)(jnp.arange(count))


@eqx.filter_jit
def advance_paths(
    model: SDE,
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

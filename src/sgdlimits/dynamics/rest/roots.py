"""Zeros of the drift: damped Gauss–Newton from many starts."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits._compiled import compiled
from sgdlimits._newton import damped, least_norm_step
from sgdlimits.dynamics.model import Model, Vector
from sgdlimits.dynamics.rest.stability import FLAT, linearisation, residual

RESIDUAL = 1e-9  # a root: every component of the drift is below this
STILL = 1e-11  # a step shorter than this was the last
SAME = 1e-3  # roots closer than this, relative to 1 + their size, are not new
ROUND, ROUNDS = 4, 32  # steps; 128 are enough for the slow convergence to roots of high order
PATIENCE = 3  # rounds in which the drift must have halved
BATCH, SMALL_BATCH = 32, 8  # one compilation, whatever the number of starts


def polish(model: Model, starts: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """Damped Gauss–Newton steps of least norm towards h = 0 from every start.

    Steps of least norm do not move along directions in which the drift is flat, so that a start
    near a ring of rest points ends on the ring, wherever it is closest. Those that come near a
    known root are left there.
    """
    starts = np.asarray(starts)
    vectors, active = starts.copy(), np.arange(len(starts))
    sizes = np.full((ROUNDS, len(starts)), np.inf)  # of the drift after each round
    for number in range(ROUNDS):
        if len(active) == 0:
            break
        vectors[active], size, last = _batched(_steps, model, starts[active], vectors[active])
        sizes[number, active] = size
        stuck = np.full(len(active), False)
        if number >= PATIENCE:
            stuck = size > 0.5 * sizes[number - PATIENCE, active]
        active = active[(last >= STILL) & ~stuck]
        if known is not None:
            active = active[~are_near(known, vectors[active], SAME)]
    return vectors


def are_near(known: np.ndarray, vectors: np.ndarray, apart: float) -> np.ndarray:
    """Which of the vectors are as close to a known one, relative to 1 + their size."""
    if len(known) == 0 or len(vectors) == 0:
        return np.zeros(len(vectors), dtype=bool)
    gaps = np.array([np.min(np.max(np.abs(known - vector), axis=1)) for vector in vectors])
    return gaps <= apart * (1 + np.max(np.abs(vectors), axis=1))


def are_roots(model: Model, vectors: np.ndarray) -> np.ndarray:
    """Whether the drift vanishes at each vector, and it is a state."""
    if len(vectors) == 0:
        return np.zeros(0, dtype=bool)
    errors, margins = _batched(_qualities, model, vectors)
    return (errors < RESIDUAL) & (margins > -RESIDUAL)


def flat_dimensions(model: Model, vectors: np.ndarray) -> np.ndarray:
    """In how many directions the drift does not change to first order, at each vector."""
    _, jacobians, constraints = _batched(_linearisations, model, vectors)
    slopes = np.concatenate([jacobians, constraints], axis=1)
    return np.sum(np.linalg.svd(slopes, compute_uv=False) < FLAT, axis=1)


@compiled
def _steps(
    model: Model, origins: Float[Array, "runs n"], vectors: Float[Array, "runs n"]
) -> tuple[Float[Array, "runs n"], Float[Array, " runs"], Float[Array, " runs"]]:
    """A round of steps, each on the branch of the drift that its origin is on.

    With the vectors come the sizes of the drift that is left, and of the last steps.
    """

    def one(origin: Vector, vector: Vector) -> tuple[Vector, Float[Array, ""], Float[Array, ""]]:
        drift, project = model.branch(origin)

        def equations(vector: Vector) -> Float[Array, " m"]:
            return jnp.concatenate([drift(vector), model.constraint(vector)])

        def step(walk: _Walk) -> _Walk:
            full = least_norm_step(jax.jacfwd(equations)(walk.vector), equations(walk.vector))
            moved = damped(equations, walk.vector, full)
            return _Walk(walk.steps + 1, moved, jnp.max(jnp.abs(moved - walk.vector)))

        def moving(walk: _Walk) -> Bool[Array, ""]:
            return (walk.steps < ROUND) & (walk.last >= STILL)

        # a step along a ring may leave the states, where the drift means nothing
        start = _Walk(jnp.asarray(0), project(model.retract(vector)), jnp.asarray(jnp.inf))
        walk = jax.lax.while_loop(moving, step, start)
        vector = project(walk.vector)
        return vector, jnp.max(jnp.abs(equations(vector))), walk.last

    return jax.vmap(one)(origins, vectors)


class _Walk(NamedTuple):
    """Towards a root: steps done, where they lead, and the size of the last one."""

    steps: Array
    vector: Vector
    last: Array


@compiled
def _qualities(
    model: Model, vectors: Float[Array, "runs n"]
) -> tuple[Float[Array, " runs"], Float[Array, " runs"]]:
    """The largest component of the drift, and the margin by which each vector is a state."""

    def one(vector: Vector) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.max(jnp.abs(residual(model, vector))), model.margin(vector)

    return jax.vmap(one)(vectors)


@compiled
def _linearisations(model: Model, vectors: Float[Array, "runs n"]) -> tuple[Array, Array, Array]:
    return jax.vmap(lambda vector: linearisation(model, vector))(vectors)


def _batched(
    function: Callable[..., tuple[Array, ...]], model: Model, *arrays: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Apply a compiled function to batches of one size, the last one padded with copies."""
    count = len(arrays[0])
    size = 1 if count == 1 else BATCH if model.exact else SMALL_BATCH
    rows = np.minimum(np.arange(-(-count // size) * size), count - 1).reshape(-1, size)
    parts = [function(model, *(jnp.asarray(array[chunk]) for array in arrays)) for chunk in rows]
    return tuple(np.concatenate(part)[:count] for part in zip(*parts, strict=True))

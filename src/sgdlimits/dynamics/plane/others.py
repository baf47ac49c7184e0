"""Where the other statistics are, given the values of two: held still, or come to rest."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgdlimits._compiled import compiled
from sgdlimits._newton import least_norm_step
from sgdlimits._types import Index
from sgdlimits.dynamics.model import Table, Vector, VectorMap
from sgdlimits.dynamics.model.table import Rows
from sgdlimits.tasks.base import Task

VALID = 1e-9  # how far from a state still counts as one, relative to its size
PROJECTIONS = 30  # steps onto the constraint, which converge quadratically
FIRST_STEP, LEAST_STEP, LONGEST_STEP = 0.1, 1e-4, 1e8  # implicit steps in time towards rest
MOST_STEPS = 50

Others = Float[Array, " o"]
Order = Int[np.ndarray, " n"]  # positions of the two statistics that stay, then of the others
Truths = Bool[np.ndarray, " q"]


class Held(NamedTuple):
    """Statistics of which two were given, and what the drift does there."""

    vectors: Rows
    drift: Rows
    speed: Float[np.ndarray, " q"]  # of the others along the constraint, by its largest component
    valid: Truths  # whether it is a state


class Slaved(NamedTuple):
    """Statistics of which two were given and the others have come to rest."""

    vectors: Rows
    slope: Float[np.ndarray, "q o o"]  # Jacobian of the others' motion in the others
    arrived: Truths


def hold(table: Table, order: Order, starts: Rows) -> Held:
    """Move the others from each start as little as puts it on the constraint."""
    tied = table.constraint(starts[:1]).size > 0
    vectors = np.asarray(_onto(*_staged(table, order, starts))) if tied else starts
    drift = table.drift(vectors)
    velocity = drift[:, order[2:]]
    if tied:
        velocity = np.asarray(_along(*_staged(table, order, vectors, drift)))
    valid = np.all(np.isfinite(drift), axis=1) & is_state(table, vectors)
    return Held(vectors, drift, _largest(velocity), valid)


def slave(table: Table, order: Order, starts: Rows) -> Slaved:
    """Follow the others from each start to rest, the two statistics being kept still.

    By implicit steps in time that grow as rest comes near; in the end they are Newton's. Newton's
    method alone would end at any rest point, attracting or not.
    """
    accuracy, free = table.model.tolerance[0], order[2:]
    tied = table.constraint(starts[:1]).size > 0
    vectors, tried = starts.copy(), starts.copy()
    velocity = np.zeros((len(starts), len(free)))
    slope = np.zeros((len(starts), len(free), len(free)))
    speed, time_step = np.full(len(starts), np.inf), np.full(len(starts), FIRST_STEP)
    for _ in range(MOST_STEPS):
        rows = np.flatnonzero(speed > 0.01 * accuracy)
        if len(rows) == 0:
            break
        motion, slopes = _linearised(table, order, tried[rows], tied=tied)
        now = _largest(motion)
        good = np.isfinite(now) & np.all(np.isfinite(slopes), axis=(1, 2))
        growth = np.where(now < speed[rows], 4.0, np.where(now > 2 * speed[rows], 0.5, 1.0))
        time_step[rows] *= np.where(good, growth, 0.25)
        kept = rows[good]
        vectors[kept], velocity[kept] = tried[kept], motion[good]
        slope[kept], speed[kept] = slopes[good], now[good]
        np.clip(time_step, LEAST_STEP, LONGEST_STEP, out=time_step)
        implicit = np.eye(len(free)) / time_step[rows, None, None] - slope[rows]
        # singular where the others could rest anywhere along a line: least norm
        change = (np.linalg.pinv(implicit) @ velocity[rows, :, None])[..., 0]
        moved = vectors[rows]
        moved[:, free] += change
        # at rest R is often singular, and rounding would take the next step out of the states
        tried[np.ix_(rows, free)] = table.retract(moved)[:, free]
    return Slaved(vectors, slope, speed < accuracy)


def is_state(table: Table, vectors: Rows) -> Truths:
    """Whether the nearest state is this one: r2 ≥ 0, R positive semidefinite, on the sphere."""
    return _largest(table.retract(vectors) - vectors) < VALID * (1 + _largest(vectors))


def _linearised(
    table: Table, order: Order, vectors: Rows, *, tied: bool
) -> tuple[Float[np.ndarray, "q o"], Float[np.ndarray, "q o o"]]:
    """The motion of the others and its Jacobian in them."""
    drift, jacobian, free = table.drift(vectors), table.jacobian(vectors), order[2:]
    if not tied:
        return drift[:, free], jacobian[:, free[:, None], free]
    motion, slope = _linearised_along(*_staged(table, order, vectors, drift, jacobian))
    return np.asarray(motion), np.asarray(slope)


def _largest(vectors: Float[np.ndarray, "q _"]) -> Float[np.ndarray, " q"]:
    return np.max(np.abs(vectors), axis=1, initial=0.0)


# --- where a constraint ties statistics to one another ------------------------------------------


def _staged(table: Table, *arrays: np.ndarray) -> Any:
    """The task, and arrays of JAX."""
    return table.task, *map(jnp.asarray, arrays)


@compiled
def _onto(task: Task, order: Int[Array, " n"], starts: Float[Array, "q n"]) -> Float[Array, "q n"]:
    """The others moved by steps of least norm."""

    def one(start: Vector) -> Vector:
        given = _Given(task, order[2:], start)
        return given.vector(jax.lax.fori_loop(0, PROJECTIONS, given.nearer, start[order[2:]]))

    return jax.vmap(one)(starts)


@compiled
def _along(
    task: Task, order: Int[Array, " n"], vectors: Float[Array, "q n"], drifts: Float[Array, "q n"]
) -> Float[Array, "q o"]:
    """The motion of the others along the constraint."""

    def one(vector: Vector, drift: Vector) -> Others:
        return _Given(task, order[2:], vector).motion(vector[order[2:]], lambda _: drift)

    return jax.vmap(one)(vectors, drifts)


@compiled
def _linearised_along(
    task: Task,
    order: Int[Array, " n"],
    vectors: Float[Array, "q n"],
    drifts: Float[Array, "q n"],
    jacobians: Float[Array, "q n n"],
) -> tuple[Float[Array, "q o"], Float[Array, "q o o"]]:
    """The same and its Jacobian, from that of the drift: that one knows about jumps."""

    def one(vector: Vector, drift: Vector, jacobian: Array) -> tuple[Others, Float[Array, "o o"]]:
        given, others = _Given(task, order[2:], vector), vector[order[2:]]

        def motion(near: Others) -> Others:
            return given.motion(near, lambda moved: drift + jacobian @ (moved - vector))

        return motion(others), jax.jacfwd(motion)(others)

    return jax.vmap(one)(vectors, drifts, jacobians)


class _Given(NamedTuple):
    """The motion of the statistics at ``free`` when all others stay as they are in ``start``."""

    task: Task
    free: Int[Array, " o"]
    start: Vector

    def vector(self, others: Others) -> Vector:
        """All statistics."""
        return self.start.at[self.free].set(others)

    def motion(self, others: Others, drift: VectorMap) -> Others:
        """Their velocity along the constraint, plus a pull towards it at rate 1."""
        velocity = drift(self.vector(others))[self.free]
        return velocity - self._normal(others, velocity)

    def nearer(self, _: Index, others: Others) -> Others:
        """One step of least norm towards the constraint."""
        return others - self._normal(others, jnp.zeros_like(others))

    def _normal(self, others: Others, velocity: Others) -> Others:
        """Jᵀ(JJᵀ)⁻¹(J velocity + constraint), J the Jacobian of the constraint in the others."""

        def constraint(near: Others) -> Float[Array, " m"]:
            return jnp.asarray(self.task.constraint(self.task.layout.unravel(self.vector(near))))

        value, J = constraint(others), jax.jacfwd(constraint)(others)
        return -least_norm_step(J, J @ velocity + value)

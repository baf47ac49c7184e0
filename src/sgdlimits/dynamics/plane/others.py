"""Where the other statistics are, given the values of two: held still, or come to rest."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sgdlimits._compiled import compiled
from sgdlimits._newton import least_norm_step
from sgdlimits._types import Index
from sgdlimits.dynamics.model import Model, Vector, VectorMap

VALID = 1e-9  # how far from a state still counts as one, relative to its size
PROJECTIONS = 30  # steps onto the constraint, which converge quadratically
FIRST_STEP, LEAST_STEP, LONGEST_STEP = 0.1, 1e-4, 1e8  # implicit steps in time towards rest
MOST_STEPS = 50

Others = Float[Array, " o"]


class Held(NamedTuple):
    """Statistics of which two were given, and what the drift does there."""

    vector: Float[Array, "... n"]
    state: dict[str, Float[Array, "..."]]  # the same by name
    drift: Float[Array, "... n"]
    speed: Float[Array, "..."]  # of the others along the constraint, by its largest component
    valid: Bool[Array, "..."]  # whether it is a state


class Slaved(NamedTuple):
    """Statistics of which two were given and the others have come to rest."""

    vector: Float[Array, "... n"]
    slope: Float[Array, "... o o"]  # Jacobian of the others' motion in the others
    arrived: Bool[Array, "..."]


@compiled
def hold(model: Model, order: Int[Array, " n"], starts: Float[Array, "points n"]) -> Held:
    """Move the others from each start as little as puts it on the constraint.

    ``order`` lists the positions of the two statistics that stay, then those of the others.
    """

    def one(start: Vector) -> Held:
        given = _Given(model, order[2:], start)
        others = jax.lax.fori_loop(0, PROJECTIONS, given.nearer, start[order[2:]])
        vector = given.vector(others)
        drift = model.drift(vector)
        return Held(
            vector=vector,
            state=model.unravel(vector),
            drift=drift,
            speed=_largest(given.motion(others, lambda _: drift)),
            valid=jnp.all(jnp.isfinite(drift)) & _is_state(model, vector),
        )

    return jax.vmap(one)(starts)


@compiled
def slave(model: Model, order: Int[Array, " n"], starts: Float[Array, "points n"]) -> Slaved:
    """Follow the others from each start to rest, the two statistics being kept still.

    By implicit steps in time that grow as rest comes near; in the end they are Newton's. Newton's
    method alone would end at any rest point, attracting or not.
    """
    accuracy = model.tolerance[0]

    def one(start: Vector) -> Slaved:
        given = _Given(model, order[2:], start)

        def attempt(now: _Progress) -> _Progress:
            velocity, slope = given.linearised(now.tried)
            speed = _largest(velocity)
            good = jnp.isfinite(speed) & jnp.all(jnp.isfinite(slope))
            slower, much_faster = speed < now.speed, speed > 2 * now.speed
            growth = jnp.where(slower, 4.0, jnp.where(much_faster, 0.5, 1.0))
            time_step = now.time_step * jnp.where(good, growth, 0.25)
            new = _Progress(now.tried, velocity, slope, speed, now.tried, time_step, now.steps)
            current = jax.tree.map(lambda after, before: jnp.where(good, after, before), new, now)
            time_step = jnp.clip(time_step, LEAST_STEP, LONGEST_STEP)
            implicit = jnp.eye(len(velocity)) / time_step - current.slope
            tried = current.others + jnp.linalg.solve(implicit, current.velocity)
            # at rest R is often singular, and rounding would take the next step out of the states
            tried = model.retract(given.vector(tried))[given.free]
            return current._replace(tried=tried, time_step=time_step, steps=now.steps + 1)

        def moves(now: _Progress) -> Bool[Array, ""]:
            return (now.speed > 0.01 * accuracy) & (now.steps < MOST_STEPS)

        others = start[order[2:]]
        nothing = jnp.zeros_like(others)
        first = _Progress(
            others, nothing, jnp.diag(nothing), jnp.asarray(jnp.inf), others, FIRST_STEP, 0
        )
        last = jax.lax.while_loop(moves, attempt, jax.tree.map(jnp.asarray, first))
        return Slaved(given.vector(last.others), last.slope, last.speed < accuracy)

    return jax.vmap(one)(starts)


@compiled
def nearest_states(
    model: Model, vectors: Float[Array, "points n"]
) -> tuple[Float[Array, "points n"], Bool[Array, " points"]]:
    """The states nearest to these, and which of these are states themselves."""

    def one(vector: Vector) -> tuple[Vector, Bool[Array, ""]]:
        return model.retract(vector), _is_state(model, vector)

    return jax.vmap(one)(vectors)


@compiled
def constraint_slope(model: Model, vector: Vector) -> Float[Array, "m n"]:
    """The Jacobian of the constraint."""
    return jax.jacfwd(model.constraint)(vector)


class _Progress(NamedTuple):
    """Where the others are on their way to rest, how they move there, and where to try next."""

    others: Others
    velocity: Others
    slope: Float[Array, "o o"]
    speed: Float[Array, ""]
    tried: Others
    time_step: Float[Array, ""] | float
    steps: Int[Array, ""] | int


class _Given(NamedTuple):
    """The motion of the statistics at ``free`` when all others stay as they are in ``start``."""

    model: Model
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
            return self.model.constraint(self.vector(near))

        value, J = constraint(others), jax.jacfwd(constraint)(others)
        if J.size == 0:
            return jnp.zeros_like(others)
        return -least_norm_step(J, J @ velocity + value)

    def linearised(self, others: Others) -> tuple[Others, Float[Array, "o o"]]:
        """The motion and its Jacobian, from the model's own: that one knows about jumps."""
        vector = self.vector(others)
        drift, jacobian = self.model.drift(vector), self.model.jacobian(vector)

        def motion(near: Others) -> Others:
            return self.motion(near, lambda moved: drift + jacobian @ (moved - vector))

        return motion(others), jax.jacfwd(motion)(others)


def _largest(vector: Float[Array, " o"]) -> Float[Array, ""]:
    return jnp.max(jnp.abs(vector), initial=0.0)


def _is_state(model: Model, vector: Vector) -> Bool[Array, ""]:
    """Whether the nearest state is this one: r2 ≥ 0, R positive semidefinite, on the sphere."""
    size = 1 + jnp.max(jnp.abs(vector))
    return jnp.max(jnp.abs(model.retract(vector) - vector)) < VALID * size

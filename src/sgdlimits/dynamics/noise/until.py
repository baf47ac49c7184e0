r"""Paths that stop at an event, which may happen between two steps.

Between two steps the height q of the event's quantity over its level is taken to be a Brownian
bridge, whose variance is that of the kick: s² = τ ∇q·Σ∇q/dim. Let a and b be the heights before and
after, signed so that they are positive as long as the event has not happened.

- For b > 0 the bridge has been below zero with probability exp(−2ab/s²).
- Given that it has, the time T of the first zero, in units of the step, is such that T/(1 − T) has
  the inverse Gaussian law of mean a/|b| and shape a²/s².
- Given T, the statistics are on average (1 − T)u + Tu' and, along Σ∇q, what it takes to have q = 0.

Without this a path is late by half a step or more wherever noise takes it across.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._compiled import compiled
from sgdlimits._events import Event, holds
from sgdlimits._pieces import Pieces
from sgdlimits._types import Index
from sgdlimits.dynamics.model import Vector, as_state
from sgdlimits.dynamics.noise.integrator import RECORDS, SDE, Grid, along_drift, kick
from sgdlimits.tasks.layout import Layout

_BRIDGES = 2**31  # the key of what bridges draw, among those of the kicks of a path


class Awaited(eqx.Module):
    """An event as a function of vectors."""

    event: Event
    layout: Layout = eqx.field(static=True)
    sides: Float[Array, " runs"]  # sign of the height for which it has happened

    def height(self, vector: Vector) -> Float[Array, ""]:
        """Of a vector, which may hold more than statistics."""
        return self.event.height(self.layout.unravel(vector[: len(self.layout.coordinates)]))


class Waiting:
    """Paths that are followed until their event, from one stretch of time to the next.

    Attributes:
        passed: the times of the event, infinite as long as it has not happened.
    """

    def __init__(self, event: Event, layout: Layout, starts: Float[np.ndarray, "runs n"]):
        heights = event.heights(as_state(layout.unravel(starts)))
        sides = event.sides(heights)
        self._awaited = Awaited(event, layout, jnp.asarray(sides))
        self._time = 0.0
        self.passed = np.where(holds(sides, heights), 0.0, np.inf)

    def followed(
        self,
        model: SDE,
        starts: Float[Array, "runs n"],
        keys: Array,
        intervals: int,
        grid: Grid,
        dim: float,
        kicked: int,
    ) -> Float[np.ndarray, "runs t n"]:
        """As :func:`followed` of paths without an event; those that have passed stand still."""
        vectors, recorded = starts, [np.asarray(starts)[None]]
        advance = _brief if model.exact else _long
        step, steps = float(grid.time_step), int(grid.steps)
        room, size, pieces = (RECORDS, *starts.shape), jnp.asarray(float(dim)), Pieces()
        for done in range(0, intervals, RECORDS):
            now = min(RECORDS, intervals - done)
            noise = keys, jnp.asarray(kicked + done * steps)
            begun = jnp.asarray(self._time + done * steps * step)
            state = vectors, jnp.asarray(self.passed), jnp.zeros(room, starts.dtype)

            def some(first: int, last: int) -> None:
                nonlocal state
                span = jnp.asarray(first), jnp.asarray(last)
                state = advance(model, self._awaited, state, noise, begun, span, grid, size)
                state[0].block_until_ready()

            pieces.of(now * steps, some)
            vectors, self.passed = state[0], np.asarray(state[1])
            recorded.append(np.asarray(state[2])[:now])
        self._time += intervals * steps * step
        return np.moveaxis(np.concatenate(recorded), 0, 1)


def _advance(
    model: SDE,
    awaited: Awaited,
    state: tuple[Float[Array, "runs n"], Float[Array, " runs"], Float[Array, "records runs n"]],
    noise: tuple[Array, Index],
    begun: Float[Array, ""],
    span: tuple[Index, Index],
    grid: Grid,
    dim: Float[Array, ""],
) -> tuple[Float[Array, "runs n"], Float[Array, " runs"], Float[Array, "records runs n"]]:
    """Some of the steps: where paths are, when they have passed, and where they were at records."""
    keys, kicks = noise

    def step(number: Index, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        vectors, passed, records = state
        half = along_drift(model, vectors, grid.time_step / 2)
        push, roots = kick(model, half, keys, kicks + number, grid, dim)
        kicked = jax.vmap(model.retract)(half + push)
        after = along_drift(model, kicked, grid.time_step / 2)
        bridges = jax.vmap(jax.random.fold_in, (0, None))(keys, _BRIDGES)
        bridges = jax.vmap(jax.random.fold_in, (0, None))(bridges, kicks + number)
        slopes = jax.vmap(jax.grad(awaited.height))(half)
        along = jnp.einsum("rij,rj->ri", jnp.swapaxes(roots, 1, 2), slopes)
        share, between = jax.vmap(_bridge, (None, 0, 0, 0, 0, 0, 0))(
            awaited, awaited.sides, vectors, after, roots, along, bridges
        )
        now = jnp.isinf(passed) & (share <= 1)
        time = begun + (number + share) * grid.time_step
        still = jnp.isfinite(passed)[:, None]
        stopped = jax.vmap(model.retract)(between)
        moved = jnp.where(now[:, None], stopped, jnp.where(still, vectors, after))
        i = jax.lax.div(number, grid.steps)  # the last of its steps is what remains
        return moved, jnp.where(now, time, passed), records.at[i].set(moved)

    return jax.lax.fori_loop(*span, step, state)


_brief, _long = compiled(_advance), eqx.filter_jit(_advance)


def _bridge(
    awaited: Awaited,
    side: Float[Array, ""],
    before: Vector,
    after: Vector,
    root: Float[Array, "n n"],
    along: Vector,
    key: Array,
) -> tuple[Float[Array, ""], Vector]:
    """The share of a step after which the event happens, infinite if it does not, and where.

    ``root`` is the square root of the kick's covariance, and ``along`` its transpose times ∇q.
    """
    a, b = (-side * awaited.height(vector) for vector in (before, after))
    variance = along @ along
    first, second, third = jax.random.split(key, 3)
    touched = jax.random.uniform(first) * variance < variance * jnp.exp(
        -2 * a * b / jnp.where(variance > 0, variance, 1.0)
    )
    crossed = (b < 0) | ((b < jnp.inf) & touched)
    # the inverse Gaussian of Michael, Schucany and Haas (1976), for 1/x: no mean that is infinite
    inverse_mean = jnp.abs(b) / jnp.where(a > 0, a, 1.0)
    q = jax.random.normal(second) ** 2 * variance / (2 * jnp.where(a > 0, a, 1.0) ** 2)
    inverse = inverse_mean + q + jnp.sqrt(q * (2 * inverse_mean + q))
    other = inverse_mean**2 / jnp.where(inverse > 0, inverse, 1.0)
    small = jax.random.uniform(third) * (inverse + inverse_mean) <= inverse
    share = jnp.where(a > 0, 1 / (1 + jnp.where(small, inverse, other)), 0.0)
    line = before + share * (after - before)
    missing = -awaited.height(line) / jnp.where(variance > 0, variance, 1.0)
    between = line + root @ along * jnp.where(variance > 0, missing, 0.0)
    return jnp.where(crossed, share, jnp.inf), between

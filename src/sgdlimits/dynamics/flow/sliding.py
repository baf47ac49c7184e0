"""Solutions of a drift that jumps at switches: smooth in between, sliding along the jump.

Without noise (precision = ∞) the gradient of a ReLU network jumps where a field changes sign: each
field of a component's mean is a switch. A solution may cross such a surface, or be pushed onto it
from both sides and stay there. An adaptive solver that does not know this takes ever smaller steps.
"""

from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from sgdlimits._compiled import compiled
from sgdlimits.dynamics.model import Model

LANDED = 1e-11  # a switch this close to zero is on the surface
MAX_STEPS = 100_000  # between two recorded times


class Progress(NamedTuple):
    """Where the solution is, the sign under which each switch is held, and the next step to try."""

    time: Float[Array, ""]
    vector: Float[Array, " n"]
    signs: Float[Array, "..."]  # +1, −1, or 0: on the surface
    step: Float[Array, ""]
    attempts: Int[Array, ""]


@compiled
def sliding_solutions(
    model: Model, starts: Float[Array, "runs n"], times: Float[Array, " t"]
) -> tuple[Float[Array, "runs t n"], Bool[Array, " runs"]]:
    """Solve du/dt = h(u) from every start; switches that start at zero stay there (sign(0) = 0)."""

    def one(start: Float[Array, " n"]) -> tuple[Float[Array, "t n"], Bool[Array, ""]]:
        first = Progress(
            times[0], start, jnp.sign(model.switches(start)), jnp.asarray(1e-3), jnp.asarray(0)
        )

        def interval(
            state: Progress, end: Float[Array, ""]
        ) -> tuple[Progress, tuple[Float[Array, " n"], Bool[Array, ""]]]:
            state = jax.lax.while_loop(
                lambda s: (
                    (s.time < end) & (s.attempts < MAX_STEPS) & jnp.all(jnp.isfinite(s.vector))
                ),
                lambda s: _attempt(model, s, end),
                state._replace(attempts=jnp.asarray(0)),
            )
            arrived = state.time >= end
            return state, (jnp.where(arrived, state.vector, jnp.nan), arrived)

        _, (vectors, finished) = jax.lax.scan(interval, first, times[1:])
        return jnp.concatenate([start[None], vectors]), jnp.all(finished)

    return jax.vmap(one)(starts)


def _attempt(model: Model, state: Progress, end: Float[Array, ""]) -> Progress:
    """Try one Runge–Kutta step with the signs held; stop it where a switch would change sign."""
    rtol, atol = model.tolerance
    step = jnp.minimum(state.step, end - state.time)
    solver = diffrax.Tsit5()
    term = diffrax.ODETerm(lambda _, u, signs: model.drift_with_signs(u, signs))
    after = state.time + step
    memory = solver.init(term, state.time, after, state.vector, state.signs)
    vector, difference, _, _, _ = solver.step(
        term, state.time, after, state.vector, state.signs, memory, made_jump=True
    )
    scale = atol + rtol * jnp.maximum(jnp.abs(vector), jnp.abs(state.vector))
    error = jnp.sqrt(jnp.mean((difference / scale) ** 2))
    accurate = error <= 1

    before, now = model.switches(state.vector), model.switches(vector)
    crossed = (state.signs != 0) & (now * state.signs < 0)
    early = accurate & jnp.any(crossed & (jnp.abs(now) > LANDED))  # too far: aim at the surface
    landed = crossed & accurate & ~early
    # the other side either carries a switch away, or pushes it back: then it stays
    other = jnp.where(landed, -state.signs, state.signs)
    drift = model.drift_with_signs(vector, other)
    _, velocity = jax.jvp(model.switches, (vector,), (drift,))
    stays = landed & (velocity * other <= 0)
    signs = jnp.where(stays, 0.0, other)
    vector = model.onto_switches(vector, stays)

    share = jnp.where(crossed, jnp.abs(before) / (jnp.abs(before) + jnp.abs(now)), 1.0)
    growth = jnp.clip(0.9 * (error + 1e-12) ** -0.2, 0.2, 5.0)
    next_step = jnp.where(early, step * jnp.min(share) * (1 + 1e-9) + 1e-14, step * growth)
    moved = accurate & ~early
    # a step cut short by the end of an interval says nothing about the next one
    reached = jnp.where(step >= end - state.time, end, after)
    return Progress(
        time=jnp.where(moved, reached, state.time),
        vector=jnp.where(moved, vector, state.vector),
        signs=jnp.where(moved, signs, state.signs),
        step=jnp.where(moved & (step < state.step), jnp.maximum(next_step, state.step), next_step),
        attempts=state.attempts + 1,
    )

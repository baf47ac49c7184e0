"""Solutions of a drift that jumps where nothing is known: tens of thousands of short steps.

Held on a jump from both sides, they chatter. The loop over so many steps is compiled.
"""

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgdlimits._compiled import compiled
from sgdlimits.dynamics.model import Model

MAX_STEPS = 200_000
CHATTER = 1e-3  # least time step where the drift jumps and nothing is known about the jump


@compiled
def chattering_solutions(
    model: Model,
    starts: Float[Array, "runs n"],
    times: Float[Array, " t"],
    tolerance: Float[Array, "2"],
) -> tuple[Float[Array, "runs t n"], Bool[Array, " runs"]]:
    """Solve du/dt = h(u) from every start at once.

    A solution held on a jump chatters by ``CHATTER`` of time. The ``tolerance`` is that of a step:
    relative, absolute. Where a solution would go further than its own size within that time it
    ends: it diverges, or is too stiff for such steps.

    Returns:
        The values at ``times`` and whether each solution reached the last of them.
    """
    rtol, atol = tolerance

    def too_fast(_t: Array, u: Float[Array, " n"], m: Model, **_: object) -> Bool[Array, ""]:
        return CHATTER * jnp.linalg.norm(m.drift(u)) > jnp.maximum(1.0, jnp.linalg.norm(u))

    def one(start: Float[Array, " n"]) -> tuple[Float[Array, "t n"], Bool[Array, ""]]:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda _, u, m: m.drift(u)),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=None,
            y0=start,
            args=model,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol, dtmin=CHATTER),
            event=diffrax.Event(too_fast),
            max_steps=MAX_STEPS,
            throw=False,
        )
        return solution.ys, solution.result == diffrax.RESULTS.successful

    return jax.vmap(one)(starts)

"""Solutions by the method that suits the drift: smooth, sliding along jumps, or chattering."""

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits._progress import progress
from sgdlimits.dynamics.model import Model
from sgdlimits.dynamics.multi_index import MultiIndexModel, needs_nodes
from sgdlimits.dynamics.sliding import sliding_solutions
from sgdlimits.dynamics.solve import solutions

CHATTER = 1e-3  # least time step where the drift jumps and nothing is known about the jump
TOGETHER = 32  # solutions at once where every drift is a sum over many nodes


def follow(model: Model, starts: jax.Array, times: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Solve du/dt = h(u) from every start; values at ``times``, and which reached the last."""
    if not isinstance(model, MultiIndexModel) or model.rule.kind != "none":
        return solutions(model, starts, times)
    if model.jumps_at_zero:
        return sliding_solutions(model, starts, times)
    return solutions(model, starts, times, None if model.task.kinks == "none" else CHATTER)


def ends_of(model: Model, starts: jax.Array, time: float) -> np.ndarray:
    """Where the starts are after ``time``, NaN if they diverge; in one solve if memory allows."""
    count = len(starts)
    size = min(count, TOGETHER) if needs_nodes(model) else count
    rows = np.minimum(np.arange(-(-count // size) * size), count - 1).reshape(-1, size)
    parts = []
    with progress("following starts", len(rows)) as advance:
        for chunk in rows:
            values, finished = follow(model, starts[chunk], jnp.linspace(0.0, time, 2))
            parts.append(np.where(np.asarray(finished)[:, None], np.asarray(values[:, -1]), np.nan))
            advance(1)
    return np.concatenate(parts)[:count]

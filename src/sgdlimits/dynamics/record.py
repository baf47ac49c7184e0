"""Solutions and paths as labelled results."""

from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import results
from sgdlimits._types import State
from sgdlimits.dynamics.grid import repaired
from sgdlimits.dynamics.model import Model, as_state


def record(
    model: Model,
    values: Float[Array, "... t n"],
    times: np.ndarray,
    attrs: dict[str, Any],
    *,
    valid: bool = True,
) -> xr.Dataset:
    """Vectors over time, and over runs if there is one more axis, as a Dataset.

    Without ``valid`` the vectors are not states, and nothing is done to make them so.
    """
    task, batched = model.task, values.ndim == 3
    unravel = jax.vmap(jax.vmap(model.unravel))
    states = as_state(unravel(values if batched else values[None]))
    if valid:
        states = repaired(task, states)
    lead: tuple[str, ...] = ("run", "time") if batched else ("time",)
    dims = {name: lead + dims for name, dims in task.dims.items()}
    coords: dict[str, Any] = {"time": times} | task.labels_of_dims
    flags: State = {}
    if batched:
        coords["run"] = np.arange(values.shape[0])
        flags = results.divergence(states, times)
        dims |= dict.fromkeys(flags, ("run",))
    else:
        states = {name: x[0] for name, x in states.items()}
    return results.build(states | flags, dims, coords, attrs)

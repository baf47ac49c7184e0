"""Vectors over time as labelled results."""

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import results
from sgdlimits._types import State
from sgdlimits.dynamics.model import Model, as_state


def to_dataset(
    model: Model,
    values: Float[Array | np.ndarray, "... t n"],
    times: np.ndarray,
    attrs: dict[str, Any],
    *,
    are_states: bool = True,
) -> xr.Dataset:
    """Vectors over time, and over runs if there is one more axis, as a Dataset.

    The solver's error is taken away where it leaves the states (R ≥ 0, rows on the sphere). With
    ``are_states=False`` the vectors are not states, such as deviations, and are left as they are.
    """
    layout, batched = model.task.layout, values.ndim == 3
    values = np.asarray(values)
    states = as_state(layout.unravel(values if batched else values[None]))
    if are_states:
        states = as_state(model.task.project(states))
    lead: tuple[str, ...] = ("run", "time") if batched else ("time",)
    dims = {name: lead + dims for name, dims in layout.dims.items()}
    coords: dict[str, Any] = {"time": times} | layout.coords
    flags: State = {}
    if batched:
        coords["run"] = np.arange(values.shape[0])
        flags = results.divergence(states, times)
        dims |= dict.fromkeys(flags, ("run",))
    else:
        states = {name: x[0] for name, x in states.items()}
    return results.build(states | flags, dims, coords, attrs, **layout.kinds)

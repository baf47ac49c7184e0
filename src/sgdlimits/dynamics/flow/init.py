"""Where solutions start: one state, or one per run along a leading axis."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray as xr

from sgdlimits._types import State, StateLike
from sgdlimits.dynamics.model import Model
from sgdlimits.tasks.base import Task


def batch_size(task: Task, init: StateLike) -> int | None:
    """How many states there are along a leading axis, None if it is one without such an axis."""
    if isinstance(init, xr.Dataset):
        return init.sizes.get("run")
    if isinstance(init, Mapping):
        for name, shape in task.shapes.items():
            value: Any = init.get(name)
            if _depth(value) == len(shape) + 1:
                return len(value) if isinstance(value, list | tuple) else value.shape[0]
    return None


def start_vectors(
    model: Model, task: Task, init: StateLike, runs: int | None = None
) -> tuple[jax.Array, int | None]:
    """Flat vectors of the states in ``init``, and their number if they have a leading axis.

    ``runs``, if given, is the number of states that a leading axis must have.
    """
    batch = batch_size(task, init)
    size = batch if runs is None or batch is None else runs
    return flat(model, task.check_state(init, runs=size, argument="init"), size), size


def flat(model: Model, states: State, batch: int | None) -> jax.Array:
    """Checked states as vectors, always with a leading axis."""
    vectors = np.asarray(model.task.layout.ravel(states))
    return jax.device_put(vectors[None] if batch is None else vectors)


def _depth(value: Any) -> int:
    """Number of axes of what may be an array or (ragged) nested lists."""
    if isinstance(value, list | tuple):
        return 1 + (_depth(value[0]) if value else 0)
    return int(getattr(value, "ndim", 0))

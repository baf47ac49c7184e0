"""States to start from: given one by one or many at once, drawn, or where runs have ended."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import State, StateLike
from sgdlimits.tasks import Task


def batch_size(task: Task, state: StateLike) -> int | None:
    """How many states there are along a leading axis, None if it is one without such an axis."""
    if isinstance(state, Mapping):
        for name, shape in task.shapes.items():
            value: Any = state.get(name)
            if _depth(value) == len(shape) + 1:
                return len(value) if isinstance(value, list | tuple) else value.shape[0]
    return None


def random_starts(task: Task, seed: int, count: int) -> State:
    """Random states with overlaps from microscopic to of order one."""
    generator = np.random.default_rng(seed)
    dims = [task.least_dim + 1, task.least_dim + 10, 1000]
    parts = [task.random_states(int(dims[i % 3]), seed, range(i, i + 1)) for i in range(count)]
    states = {name: np.concatenate([part[name] for part in parts]) for name in task.shapes}
    if "r2" in states:
        states["m"] = states["m"] + generator.uniform(-2, 2, size=count)
        states["r2"] = states["r2"] * generator.uniform(0, 2, size=count)
    return states


def starts_from(task: Task, sample: Any, count: int, seed: int) -> State:
    """The states that a law stands for: given, drawn, or where runs have ended."""
    if isinstance(sample, xr.Dataset):
        if not {"run", "time"} <= set(sample.dims) or not set(task.shapes) <= set(sample.data_vars):
            raise _checks.InputError(
                f"sample={dict(sample.sizes)} is not allowed: a Dataset must hold runs over time "
                f"of the statistics {list(task.shapes)}"
            )
        ends = sample.isel(time=-1)
        return {n: ends[n].transpose("run", *task.dims[n]).values for n in task.shapes}
    states = sample(count, seed) if callable(sample) else sample
    if not isinstance(states, Mapping) or set(states) != set(task.shapes):
        given = list(states) if isinstance(states, Mapping) else type(states).__name__
        raise _checks.InputError(
            f"sample={given} is not allowed: sample must be states along a leading axis (a dict of "
            f"{list(task.shapes)}), a function of (count, seed) that returns them, or runs"
        )
    sizes = {np.shape(value)[:1] for value in states.values()}
    size = next(iter(sizes), ())
    if len(sizes) != 1 or any(
        np.ndim(states[name]) != len(shape) + 1 for name, shape in task.shapes.items()
    ):
        shapes = {name: np.shape(states[name]) for name in task.shapes}
        raise _checks.InputError(
            f"sample of shapes {shapes} is not allowed: every statistic must have one leading "
            "axis, the same for all"
        )
    return task.check_state(states, runs=size[0])


def _depth(value: Any) -> int:
    """Number of axes of what may be an array or (ragged) nested lists."""
    if isinstance(value, list | tuple):
        return 1 + (_depth(value[0]) if value else 0)
    return int(getattr(value, "ndim", 0))

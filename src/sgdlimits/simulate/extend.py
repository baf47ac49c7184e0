"""``extend``: the same simulation, for longer."""

import json
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks, results, tasks
from sgdlimits._moves import moves
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, WholeNumber
from sgdlimits.simulate.clock import steps_at
from sgdlimits.simulate.dataset import to_dataset
from sgdlimits.simulate.ends import NAME, decoded
from sgdlimits.simulate.going_on import MOVES
from sgdlimits.simulate.run import simulate
from sgdlimits.simulate.setting import setting_of
from sgdlimits.tasks.base import Task


@double_precision
def extend(
    runs: xr.Dataset, time: Number = 10.0, *, points: WholeNumber | None = None
) -> xr.Dataset:
    """Let runs of SGD go on for longer: bit for bit what one simulation of all the time gives.

    Args:
        runs: what ``simulate`` returned, of a task of this library without functions of your own:
            those a Dataset cannot hold, and ``simulate(task, ..., continue_from=runs)`` does it.
        time: how much is added, in units of dim/step steps.
        points: number of equally spaced times recorded from the end of ``runs``, which is the first
            of them, to the new end; by default as dense as they are in ``runs``.

    Returns:
        What ``simulate`` returns, for the times of ``runs`` and those that are added. Variables
        that others have added to ``runs`` are left out.

    >>> import sgdlimits as sl
    >>> task = sl.tasks.SpikedTensor(snr=2.0)
    >>> half = sl.simulate(task, dim=500, runs=8, time=2.0, points=5)
    >>> whole = sl.simulate(task, dim=500, runs=8, time=4.0, points=9)
    >>> sl.extend(half, time=2.0).identical(whole)
    True
    """
    task = _task_of(runs)
    words: dict[str, Any] = {name: _noted(runs, name) for name in MOVES if name in runs.attrs}
    if isinstance(words.get("momentum"), list):
        words["momentum"] = tuple(words["momentum"])
    if points is None and "time" in runs.dims and runs.sizes["time"] > 1:
        old = runs["time"].values
        spacing = (old[-1] - old[0]) / (len(old) - 1)
        points = max(2, round(_checks.positive("time", time) / spacing) + 1)
    more = simulate(
        task,
        int(runs.attrs["dim"]),
        runs=runs.sizes.get("run", 1),
        time=time,
        seed=int(runs.attrs["seed"]),
        method=runs.attrs["method"],
        points=201 if points is None else points,
        continue_from=runs,
        **words,
    )
    how = moves(**words)
    dim, method, seed = int(runs.attrs["dim"]), more.attrs["method"], more.attrs["seed"]
    setting = setting_of(task, dim, how, method, seed, None)
    setting = setting._replace(segment=int(runs.attrs.get("segment", 0)))
    both = [runs, more.isel(time=slice(1, None))]
    times = np.concatenate([part["time"].values for part in both])
    marks = steps_at(how, setting.dim, times, "time")
    values = {
        name: np.concatenate([part[name].transpose("run", "time", *dims) for part in both], axis=1)
        for name, dims in setting.layout.dims.items()
    }
    ends = decoded(more[NAME].values)
    return to_dataset(setting, values, marks, {}, {}, ends=ends)


def _task_of(runs: xr.Dataset) -> Task:
    """The task of a simulation, made anew from what the Dataset notes."""
    if not isinstance(runs, xr.Dataset) or runs.attrs.get("kind") != "simulation":
        raise _checks.InputError(
            f"runs={type(runs).__name__} is not allowed: it must be a Dataset from simulate"
        )
    name, functions = runs.attrs.get("task"), _noted(runs, "functions")
    maker = getattr(tasks, str(name)) if name in tasks.__all__ else None
    if maker is None or functions:
        what = f"the functions {', '.join(functions)}" if functions else f"the task {name}"
        raise _checks.InputError(
            f"runs are not allowed: a Dataset cannot hold {what}; "
            "simulate(task, ..., continue_from=runs) continues them"
        )
    made: Task = maker(**results.parameters(runs))
    return made


def _noted(runs: xr.Dataset, name: str) -> Any:
    """An attribute that may be written as JSON."""
    value = runs.attrs.get(name)
    if isinstance(value, str) and value[:1] in ("[", "{", "t", "f", "n"):
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value

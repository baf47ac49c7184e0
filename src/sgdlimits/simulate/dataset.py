"""What ``simulate`` and ``first_passage`` return, from arrays."""

from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import results
from sgdlimits._events import Event
from sgdlimits._types import State
from sgdlimits._warn import warn
from sgdlimits.simulate.clock import Marks
from sgdlimits.simulate.ends import MOST, NAME, Ends, encoded
from sgdlimits.simulate.records import Recorded
from sgdlimits.simulate.setting import Setting


def to_dataset(
    setting: Setting,
    values: State,
    marks: Marks,
    told: dict[str, np.ndarray],
    notes: dict[str, Any],
    *,
    ends: Ends,
) -> xr.Dataset:
    """Statistics over run and time.

    Args:
        setting: what was simulated.
        values: runs along axis 0, times along axis 1.
        marks: the times.
        told: further variables, of runs.
        notes: further attributes.
        ends: internal states at the last of the times.
    """
    layout = setting.layout
    flags = results.divergence(values, marks.times) | told
    coords: dict[str, Any] = {"run": np.arange(len(ends)), "time": marks.times} | layout.coords
    if setting.method != "population":  # which sees all samples at every step
        coords["samples"] = ("time", setting.moves.batch * marks.steps)
    if ends.nbytes <= MOST:
        coords[NAME] = ("run", encoded(ends))
    return results.build(
        values | flags,
        {name: ("run", "time", *dims) for name, dims in layout.dims.items()}
        | dict.fromkeys(flags, ("run",)),
        coords,
        {"kind": "simulation"} | setting.noted | notes,
        states=list(setting.task.shapes),
        symmetric=layout.symmetric,
    )


def passages(
    setting: Setting, recorded: Recorded, event: Event, first: int, longest: float
) -> dict[str, np.ndarray]:
    """Step and time of an event for every run, and whether it happened.

    A run whose quantity is no longer a number stands still as well, as one that diverges does: it
    is censored at that time.

    Args:
        setting: what was simulated.
        recorded: of all runs.
        event: what they waited for.
        first: how many steps had been taken when the runs began.
        longest: the time until which they were watched.
    """
    stopped = recorded.steps >= 0
    ends = {name: x[:, -1] for name, x in recorded.values.items()}
    finite = np.all(
        [np.all(np.isfinite(x), axis=tuple(range(1, x.ndim))) for x in ends.values()], axis=0
    )
    unknown = stopped & finite & np.isnan(event.heights(ends))
    if np.any(unknown):
        warn(
            f"event: of {int(unknown.sum())} of {len(unknown)} runs the quantity ceased to be a "
            "number, though their states are finite; they are censored then"
        )
    steps = np.where(stopped, recorded.steps, recorded.done)
    times = recorded.times
    if setting.moves.step.constant:
        times = steps * setting.moves.step_words / setting.dim
    return {
        "step": steps,
        "time": np.where(stopped, times, longest),
        "censored": ~(stopped & finite) | unknown,
        "at_start": stopped & (recorded.steps == first),
    }

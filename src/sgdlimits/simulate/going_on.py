"""Runs that go on where others ended."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import State
from sgdlimits.results.dataset import encoded
from sgdlimits.simulate.ends import NAME, Ends, decoded
from sgdlimits.simulate.setting import Setting

# what must be the same, as attributes note it
MOVES = ("step", "batch", "momentum", "readout_step", "normalised", "sphere")
_SAME = ("task", "parameters", "functions", "dim", "runs", *MOVES, "seed", "method")


class End(NamedTuple):
    """Where runs are at the end of a Dataset."""

    steps: int
    time: float
    segment: int
    states: State
    ends: Ends


def end_of(dataset: xr.Dataset, setting: Setting, runs: int) -> End:
    """The end of a simulation of the same; raises InputError that names what is not the same."""
    if not isinstance(dataset, xr.Dataset) or dataset.attrs.get("kind") != "simulation":
        given = dataset.attrs.get("kind") if isinstance(dataset, xr.Dataset) else type(dataset)
        raise _refused(f"it must be a Dataset that simulate returned, and is {given}")
    if "passage_step" in dataset and not bool(dataset["censored"].all()):
        raise _refused("some of its runs stand still since their event")
    if "time" not in dataset.dims or "run" not in dataset.dims or NAME not in dataset.coords:
        raise _refused(
            f"it must be what simulate returned, with its times and the coordinate {NAME!r}, which "
            "is left out where it is too large; init=runs.isel(time=-1) starts from its statistics"
        )
    here = {name: encoded(value) for name, value in setting.noted.items()} | {"runs": runs}
    there = dataset.attrs | {"runs": dataset.sizes["run"]}
    apart = [
        f"{name} ({_shown(there.get(name))} there, {_shown(here.get(name))} here)"
        for name in _SAME
        if here.get(name) != there.get(name)
    ]
    if apart:
        raise _refused(
            f"it differs in {', '.join(apart)}; extend(runs, time=...) takes all of that from the "
            "Dataset, and init=runs.isel(time=-1) starts something else from its statistics"
        )
    if not np.array_equal(dataset["run"].values, np.arange(runs)):
        raise _refused(
            "it must have all of its runs, in order, since noise belongs to their number"
        )
    missing = [name for name in setting.layout.dims if name not in dataset.data_vars]
    if missing:
        raise _refused(f"it must have all of its statistics, and {', '.join(missing)} is not there")
    ends = decoded(dataset[NAME].values)
    steps = int(ends[0, 0])
    last = dataset.isel(time=-1)
    if not np.isclose(float(last["time"]), ends[0, 1], rtol=1e-9):
        raise _refused(
            "its last times have been taken away, and internal states belong to the last"
        )
    states = {
        name: last[name].transpose("run", *dims).values
        for name, dims in setting.layout.dims.items()
    }
    return End(steps, float(last["time"]), int(dataset.attrs.get("segment", 0)), states, ends)


def _refused(reason: str) -> _checks.InputError:
    return _checks.InputError(f"continue_from is not allowed: {reason}")


def _shown(value: Any) -> str:
    return "the default" if value is None else str(value)

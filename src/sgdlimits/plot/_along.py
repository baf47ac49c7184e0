"""The horizontal axis of pictures over time: time itself, or samples."""

from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import Word
from sgdlimits.plot import style

AXES = ("time", "samples")
SAMPLES_LABEL = "samples"

Result = xr.Dataset | xr.DataArray


def label_of(x: Word, dataset: Result | None = None) -> str:
    """What the axis is called; a result may have its own word for time."""
    if _checks.choice("x", x, AXES) == "samples":
        return SAMPLES_LABEL
    own = None if dataset is None else dataset.attrs.get("time_label")
    return str(own or style.TIME_LABEL)


def along(dataset: Result, x: Word, *, like: Result | None = None) -> np.ndarray:
    """Where the entries over ``time`` are on the axis.

    Samples are the coordinate ``samples`` along time. Where there is none they are dim/step times
    time and the size of a batch, from the attributes; and where these are not, as of a limit, those
    of ``like`` at the same times.
    """
    time = np.asarray(dataset["time"].values, dtype=float)
    if _checks.choice("x", x, AXES) == "time":
        return time
    own = _samples(dataset, time)
    if own is None and like is not None:
        known, samples = np.asarray(like["time"].values, dtype=float), _samples(like)
        if samples is not None and len(known) > 1:
            return _interpolated(time, known, samples)
    if own is None:
        raise _checks.InputError(
            "x='samples' is not allowed: how many samples there are per time is not known; "
            "simulations know it, and dataset.assign_coords(samples=('time', …)) tells it"
        )
    return own


def _samples(dataset: Result, time: np.ndarray | None = None) -> np.ndarray | None:
    if "samples" in dataset.coords and dataset["samples"].dims == ("time",):
        return np.asarray(dataset["samples"].values, dtype=float)
    if time is None:
        time = np.asarray(dataset["time"].values, dtype=float)
    dim, step = (dataset.attrs.get(name) for name in ("dim", "step"))
    if not all(isinstance(value, int | float | np.number) for value in (dim, step)):
        return None
    batch: Any = dataset.attrs.get("batch", 1)
    rate: Any = np.float64(dim) / np.float64(step)
    return np.round(time * rate) * float(batch)


def _interpolated(time: np.ndarray, known: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Beyond the last known time, at the rate at which they came at last."""
    rate = (samples[-1] - samples[-2]) / (known[-1] - known[-2])
    beyond = samples[-1] + rate * (time - known[-1])
    return np.where(time > known[-1], beyond, np.interp(time, known, samples))

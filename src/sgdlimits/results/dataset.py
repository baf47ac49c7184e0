"""Labelled arrays with their provenance: built, and single statistics and states taken out."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._types import Number, State, WholeNumber, Word
from sgdlimits._version import __version__
from sgdlimits._warn import warn

_ALONG = ("time", "point")  # a statistic moves along one of these
_NONE = "-"  # a statistic without axes of its own
_MANY = ("run", "branch")  # and there may be several of it
_PAIRS = "coordinate_"  # a covariance of statistics is over pairs of them, and none itself
_FLAT = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*")  # variable, or variable[index,index]
_SHOWN = 60  # flat names in an error message: a wide network has thousands


def build(
    statistics: Mapping[str, Any],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    attrs: Mapping[str, Any],
    *,
    states: Collection[str] = (),
    symmetric: Collection[str] = (),
) -> xr.Dataset:
    """Return a result from arrays, the names of their axes, coordinate values and attributes.

    Variables keep their order. ``states`` are those that make up a state of the task, ``symmetric``
    those of them that are symmetric matrices: flat names then list their upper triangle.

    The package's ``version`` is added to the attributes. Attributes are numbers or text in every
    file format, so anything else (dicts, lists, None, booleans) becomes a JSON string.

    >>> path = build({"m": [0.0, 0.5]}, {"m": ("time",)}, {"time": [0.0, 1.0]}, {"kind": "limit"})
    >>> path.m.dims, path.attrs["kind"]
    (('time',), 'limit')
    """
    variables = {}
    for name, values in statistics.items():
        data, axes = np.asarray(values), tuple(dims.get(name, ()))
        if data.ndim != len(axes):
            raise _checks.InputError(
                f"dims[{name!r}]={axes} is not allowed: "
                f"it must name the {data.ndim} axes of an array of shape {data.shape}"
            )
        for axis, size in zip(axes, data.shape, strict=True):
            if axis in coords and np.shape(coords[axis]) != (size,):
                raise _checks.InputError(
                    f"coords[{axis!r}] has shape {np.shape(coords[axis])}, which is not allowed: "
                    f"{name} has {size} entries along {axis}"
                )
        own = " ".join(axis for axis in axes if axis not in _ALONG + _MANY)
        kinds: dict[str, Any] = {"axes": own or _NONE} if name in states else {}
        variables[name] = (axes, data, kinds | ({"symmetric": 1} if name in symmetric else {}))
    always = {"order": list(statistics), "states": list(states), "version": __version__}
    notes = {name: encoded(value) for name, value in {**attrs, **always}.items()}
    return xr.Dataset(variables, dict(coords), notes)


def divergence(values: Mapping[str, np.ndarray], times: np.ndarray) -> dict[str, np.ndarray]:
    """Which runs stop being finite, and when: ``diverged`` and ``diverged_at``, with a warning.

    Args:
        values: statistics by name, runs along axis 0 and time along axis 1.
        times: the recorded times.
    """
    finite = np.all(
        [np.all(np.isfinite(x), axis=tuple(range(2, x.ndim))) for x in values.values()], axis=0
    )
    diverged = ~np.all(finite, axis=1)
    at = np.where(diverged, times[np.argmin(finite, axis=1)], np.nan)
    if np.any(diverged):
        warn(
            f"{int(diverged.sum())} of {len(diverged)} runs diverged, the first at time "
            f"{np.nanmin(at):.3g}: see `diverged` and `diverged_at`; is the step too large?"
        )
    return {"diverged": diverged, "diverged_at": at}


def parameters(dataset: xr.Dataset) -> dict[str, Any]:
    """Return the parameters of the task behind a result, {} if it carries none."""
    return dict(_decoded(dataset, "parameters") or {})


def statistics(dataset: xr.Dataset) -> list[str]:
    """Return the flat names of all statistics of a result, in order; of R the upper triangle.

    >>> R = np.zeros((1, 2, 2))
    >>> dims = {"R": ("time", "neuron", "neuron_")}
    >>> statistics(build({"R": R}, dims, {}, {}, symmetric=["R"]))
    ['R[0,0]', 'R[0,1]', 'R[1,1]']
    """
    moving = [name for name in _ordered(dataset) if _moves(dataset[name])]
    return [flat for name in moving for flat in _flat_names(dataset, name)]


def select(dataset: xr.Dataset, name: Word, *, argument: str = "name") -> xr.DataArray:
    """Return one statistic of a result, by its flat name, over the remaining dims, run and time.

    Args:
        dataset: a simulation, a solution or a bifurcation diagram.
        name: such as ``"m"``, ``"v[2]"``, ``"M[0,mu]"`` or ``"R[1,0]"``.
        argument: what the caller calls ``name``, for the error message.

    >>> M = np.array([[[0.1, 0.2]]])
    >>> coords = {"anchor": ["mu", "nu"]}
    >>> result = build({"M": M}, {"M": ("time", "neuron", "anchor")}, coords, {})
    >>> select(result, "M[0,nu]").values
    array([0.2])
    """
    match = _FLAT.fullmatch(name) if isinstance(name, str) else None
    if match and match[1] in dataset.data_vars and _moves(dataset[match[1]]):
        variable = dataset[match[1]]
        labels = {axis: _labels(dataset, axis) for axis in _index_dims(variable)}
        index = [] if match[2] is None else [part.strip() for part in match[2].split(",")]
        if len(index) == len(labels) and all(
            part in known for part, known in zip(index, labels.values(), strict=True)
        ):
            pairs = zip(labels.items(), index, strict=True)
            where = {axis: known.index(part) for (axis, known), part in pairs}
            return variable.isel(where, drop=True).rename(name)
    valid = statistics(dataset)
    shown = ", ".join(valid[:_SHOWN]) + (f", … ({len(valid)} in all)" if valid[_SHOWN:] else "")
    raise _checks.InputError(f"{argument}={name!r} is not allowed: the statistics here are {shown}")


def state(
    dataset: xr.Dataset, *, run: WholeNumber | None = None, time: Number | None = None
) -> State:
    """Return the state at one time as NumPy arrays, to start a simulation or a solution from.

    It does not tell where it is from: a simulation that goes on from it with the same seed sees the
    same noise again. ``dataset.isel(time=-1)`` does, and is a start as well. Of runs with slow
    momentum it is the state of the weights, whose velocity starts at rest: to start a limit with
    the velocity of a run, give ``dataset.isel(run=0, time=-1)``.

    Args:
        dataset: a simulation, a solution or sample paths.
        run: label of the run. By default all runs: the arrays then have a leading axis of runs, as
            ``init`` of a simulation or a solution takes it; a result without runs gives one state.
        time: the nearest recorded time is taken, the last one by default.

    >>> m = [[0.0, 0.4], [0.0, 0.6]]
    >>> coords = {"run": [0, 1], "time": [0.0, 1.0]}
    >>> runs = build({"m": m}, {"m": ("run", "time")}, coords, {})
    >>> state(runs, run=1)
    {'m': array(0.6)}
    >>> state(runs, time=0.2)
    {'m': array([0., 0.])}
    """
    noted = _decoded(dataset, "states") or []
    moving = [name for name in _ordered(dataset) if _moves(dataset[name])]
    names = [name for name in noted if name in dataset.data_vars] or moving
    if not names:
        raise _checks.InputError(
            f"dataset={list(dataset.data_vars)} is not allowed: it must hold statistics of a task"
        )
    chosen = dataset[names]
    own = {axis for name in names for axis in _own_axes(dataset[name])}
    if time is not None or "time" in chosen.dims:
        chosen = chosen.isel(time=_nearest(chosen, time))
    if run is not None:
        chosen = chosen.isel(run=_position(chosen, run))
    others = [str(name) for name in chosen.dims if name not in (*own, "run")]
    if others:
        raise _checks.InputError(
            f"dataset={dict(dataset.sizes)} is not allowed: choose one entry along "
            f"{', '.join(others)} first, by dataset.sel or dataset.isel"
        )
    if not all(np.all(np.isfinite(chosen[name])) for name in names):
        raise _checks.InputError(
            f"run={run!r} is not allowed at time={time!r}: it is not finite there; "
            "`diverged` of the dataset says which runs are to be left out"
        )
    order = {name: _own_axes(dataset[name]) for name in names}
    return {
        name: chosen[name].transpose("run", *order[name], missing_dims="ignore").values
        for name in names
    }


def encoded(value: Any) -> str | int | float:
    """An attribute as every file format holds it: a number or text, anything else as JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | float):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    return json.dumps(value, default=_encode_inner)


def _encode_inner(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy and JAX
        return value.tolist()
    return getattr(value, "__qualname__", None) or str(value)


def _decoded(dataset: xr.Dataset, name: str) -> Any:
    """An attribute that :func:`build` may have written as JSON; None if it is not there."""
    text = dataset.attrs.get(name, "null")
    try:
        return json.loads(text) if isinstance(text, str) else text
    except json.JSONDecodeError as error:
        raise _checks.InputError(
            f"attrs[{name!r}]={text!r} is not allowed: it must be JSON"
        ) from error


def _ordered(dataset: xr.Dataset) -> list[str]:
    """Names of the variables in the order in which they were built; a store may have another."""
    names = [str(name) for name in dataset.data_vars]
    known = _decoded(dataset, "order") or []
    return [*(name for name in known if name in names), *(n for n in names if n not in known)]


def _own_axes(variable: xr.DataArray) -> tuple[str, ...]:
    """The axes of a statistic itself; where nothing is noted, those after runs and time."""
    dims = [str(dim) for dim in variable.dims]
    if "axes" in variable.attrs:
        return tuple(dim for dim in variable.attrs["axes"].split() if dim in dims)
    lead = [dims.index(dim) + 1 for dim in ("run", "time") if dim in dims]
    return tuple(dims[max(lead, default=0) :])


def _moves(variable: xr.DataArray) -> bool:
    return any(axis in variable.dims for axis in _ALONG) and _PAIRS not in variable.dims


def _index_dims(variable: xr.DataArray) -> list[str]:
    own = _own_axes(variable) if "axes" in variable.attrs else tuple(map(str, variable.dims))
    return [axis for axis in own if axis not in _ALONG + _MANY]


def _labels(dataset: xr.Dataset, axis: str) -> list[str]:
    return [str(label) for label in dataset[axis].values]


def _flat_names(dataset: xr.Dataset, name: str) -> list[str]:
    axes = _index_dims(dataset[name])
    if not axes:
        return [name]
    labels = [_labels(dataset, axis) for axis in axes]
    symmetric = len(axes) == 2 and dataset[name].attrs.get("symmetric")
    return [
        f"{name}[{','.join(labels[axis][i] for axis, i in enumerate(index))}]"
        for index in np.ndindex(*map(len, labels))
        if not symmetric or index[0] <= index[1]
    ]


def _nearest(dataset: xr.Dataset, time: Any) -> int:
    """The position of the recorded time that is nearest; of the last one for None."""
    if "time" not in dataset.dims:
        raise _checks.InputError(f"time={time!r} is not allowed: the dataset is not over time")
    if time is None:
        return dataset.sizes["time"] - 1
    times = dataset["time"].values
    wanted = _checks.nonnegative("time", time)
    if not times[0] <= wanted <= times[-1] * (1 + 1e-9):
        raise _checks.InputError(
            f"time={time!r} is not allowed: the recorded times go from {times[0]:g} "
            f"to {times[-1]:g}"
        )
    return int(np.argmin(np.abs(times - wanted)))


def _position(dataset: xr.Dataset, run: Any) -> int:
    if "run" not in dataset.dims:
        raise _checks.InputError(f"run={run!r} is not allowed: the dataset has no runs")
    labels = [int(label) for label in dataset["run"].values]
    if isinstance(run, bool) or run not in labels:
        raise _checks.InputError(
            f"run={run!r} is not allowed: the runs here are {labels[0]} to {labels[-1]}"
            + ("" if len(labels) == labels[-1] - labels[0] + 1 else ", not all of them")
        )
    return labels.index(int(run))

"""Results: labelled arrays with their provenance, saved whole or not at all.

A result is an ``xarray.Dataset`` with one variable per statistic. Its dims are ``run``, ``time``,
``neuron``, ``neuron_`` (second index of R) and ``anchor``; in a bifurcation diagram ``branch`` and
``point`` take the place of ``run`` and ``time``. Its attributes say what was computed.
Single statistics have flat names: ``m``, ``r2``, ``v[0]``, ``M[0,mu]``, ``R[0,1]``.
"""

import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from sgdlimits import _checks, _disk
from sgdlimits._types import Word
from sgdlimits._version import __version__
from sgdlimits._warn import warn

_ALONG = ("time", "point")  # a statistic moves along one of these
_MANY = ("run", "branch")  # and there may be several of it
_ENGINES = {".zarr": "zarr", ".nc": "netcdf4"}
_FLAT = re.compile(r"\s*([^\[\]]+?)\s*(?:\[(.*)\])?\s*")  # variable, or variable[index,index]
_SHOWN = 60  # flat names in an error message: a wide network has thousands


def build(
    statistics: Mapping[str, Any],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    attrs: Mapping[str, Any],
    *,
    symmetric: Collection[str] = (),
) -> xr.Dataset:
    """Return a result from arrays, the names of their axes, coordinate values and attributes.

    Variables keep their order, and those that are ``symmetric`` in their last two axes say so: flat
    names then list their upper triangle.

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
        variables[name] = (axes, data, {"symmetric": 1} if name in symmetric else {})
    always = {"order": list(statistics), "version": __version__}
    encoded = {name: _encode(value) for name, value in {**attrs, **always}.items()}
    return xr.Dataset(variables, dict(coords), encoded)


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
    moving = [str(name) for name, variable in dataset.data_vars.items() if _moves(variable)]
    known = _decoded(dataset, "order") or []
    ordered = [name for name in known if name in moving]
    others = [name for name in moving if name not in known]
    return [flat for name in ordered + others for flat in _flat_names(dataset, name)]


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


def save(dataset: xr.Dataset, path: str | os.PathLike[str]) -> None:
    """Write a result to ``path``, a ``.zarr`` directory or a ``.nc`` file.

    An existing result is replaced once the new one is complete. Attributes are stored in the form
    that :func:`build` gives them.
    """
    target = Path(os.path.realpath(path))
    engine = _engine(path)
    if target.exists() and not _replaceable(target, engine):
        raise _checks.InputError(
            f"path={str(path)!r} is not allowed: it exists and is no {engine} result to replace"
        )
    plain = _plain(dataset)
    with replacing(target) as temporary:
        if engine == "zarr":
            # Format 2 has a standard for text. Chunks of NaN are written too, so that a chunk that
            # is not there means a damaged store, see load.
            plain.to_zarr(temporary, mode="w-", zarr_format=2, write_empty_chunks=True)
        else:
            plain.to_netcdf(temporary, engine="netcdf4")


def load(path: str | os.PathLike[str]) -> xr.Dataset:
    """Read a result that :func:`save` wrote, into memory."""
    engine = _engine(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"path={str(path)!r} does not exist")
    try:
        if engine == "zarr":
            _check_chunks(Path(path))
        # The time of SGD is a number: nothing here is a calendar date.
        with xr.open_dataset(path, engine=engine, decode_times=False) as stored:
            result = stored.load().drop_encoding()
    except Exception as error:  # every layer below has its own exceptions for damaged files
        raise _checks.InputError(f"path={str(path)!r} is not a readable result: {error}") from error
    result.attrs = {name: _encode(value) for name, value in result.attrs.items()}
    return result


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a temporary sibling of ``target`` to write to, a file or a directory.

    On success it takes the name ``target``; on an exception it is removed and ``target`` is as
    before. A directory cannot take the place of another in one operation: the old one is moved
    aside first, and back if that fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    temporary = target.with_name(f".{target.stem}.{token}.new{target.suffix}")
    old = target.with_name(f".{target.stem}.{token}.old{target.suffix}")
    try:
        yield temporary
        _disk.sync(temporary)
        if temporary.is_dir() and target.is_dir():
            os.rename(target, old)
        os.replace(temporary, target)
        _disk.sync_one(target.parent)
    finally:
        if old.exists() and not target.exists():
            os.rename(old, target)
        for leftover in (temporary, old):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def _encode(value: Any) -> str | int | float:
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


def _moves(variable: xr.DataArray) -> bool:
    return any(axis in variable.dims for axis in _ALONG)


def _index_dims(variable: xr.DataArray) -> list[str]:
    return [str(axis) for axis in variable.dims if axis not in _ALONG + _MANY]


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


def _engine(path: str | os.PathLike[str]) -> Any:
    suffix = Path(path).suffix
    if suffix not in _ENGINES:
        allowed = " or ".join(_ENGINES)
        raise _checks.InputError(f"path={str(path)!r} is not allowed: path must end in {allowed}")
    return _ENGINES[suffix]


def _replaceable(target: Path, engine: str) -> bool:
    if engine == "netcdf4":
        return target.is_file()
    return target.is_dir() and ((target / ".zgroup").exists() or not any(target.iterdir()))


def _plain(dataset: xr.Dataset) -> xr.Dataset:
    """Return a copy with plain attributes and fixed-width text, so that nothing is pickled."""
    plain = dataset.drop_encoding()
    plain.attrs = {str(name): _encode(value) for name, value in dataset.attrs.items()}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind not in "OT":
            continue
        if not all(isinstance(value, str) for value in np.ravel(variable.values)):
            raise _checks.InputError(
                f"dataset[{name!r}] is not allowed: it holds Python objects, not text"
            )
        plain[name] = variable.astype(str)
    return plain


def _check_chunks(path: Path) -> None:
    for name, array in zarr.open_group(path, mode="r").arrays():
        if array.nchunks_initialized < array.nchunks:
            missing = array.nchunks - array.nchunks_initialized
            raise _checks.InputError(
                f"{missing} of the {array.nchunks} chunks of {name} are missing"
            )

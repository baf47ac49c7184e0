"""Results in files: saved whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from sgdlimits import _checks, _disk
from sgdlimits.results.dataset import encoded

_ENGINES = {".zarr": "zarr", ".nc": "netcdf4"}


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
    result.attrs = {name: encoded(value) for name, value in result.attrs.items()}
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
        with _disk.writing(target):
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
    plain.attrs = {str(name): encoded(value) for name, value in dataset.attrs.items()}
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

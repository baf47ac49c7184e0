"""Finished runs on disk: one folder each, which exists whole or not at all.

A folder NAME-DIGEST holds the data (``*.nc``), ``picture.png``, ``picture.svg`` and ``run.json``
with parameters, seed, versions, timing, checks and the checksums of the other files. It is written
under a temporary name, ``.new-NAME-DIGEST-PID``, and renamed.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sgdlimits import _checks

MARKER = "sgdlimits.json"  # says that a folder is a store
RECORD = "run.json"
PICTURE = "picture"
_NEW = ".new-"
_FORMAT = 1


class CorruptEntryError(ValueError):
    """A folder of the store that is damaged."""


def open_store(out: Path) -> None:
    """Make ``out`` a store, or check that it is one; remove what killed runs left behind."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not (out / MARKER).exists():
            if any(out.iterdir()):
                raise _checks.InputError(
                    f"out={str(out)!r} is not allowed: the folder has files that are not ours; "
                    "give an empty or a new one"
                )
            (out / MARKER).write_text(json.dumps({"format": _FORMAT}) + "\n")
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
        for left in out.glob(f"{_NEW}*"):
            if not _alive(left.name.rpartition("-")[2]):
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise _checks.InputError(f"out={str(out)!r} is not allowed: {error.strerror}") from error


@contextmanager
def new_entry(folder: Path) -> Iterator[Path]:
    """Give a temporary folder to fill; on success it takes the name ``folder``, replacing it."""
    temporary = folder.with_name(f"{_NEW}{folder.name}-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        if folder.exists():
            old = folder.with_name(f"{_NEW}{folder.name}-old-{os.getpid()}")
            folder.rename(old)
            temporary.rename(folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write ``run.json``, with the checksums of all other files of the folder."""
    files = {path.name: _checksum(path) for path in sorted(folder.iterdir())}
    text = json.dumps(
        plain(record | {"format": _FORMAT, "files": files}), indent=1, ensure_ascii=False
    )
    (folder / RECORD).write_text(text + "\n")


def read_record(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a finished run, after checking that all its files are as they were."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text())
        for name, checksum in record["files"].items():
            if _checksum(folder / name) != checksum:
                raise CorruptEntryError(f"{folder} is damaged: {name} has changed")
    except CorruptEntryError:
        raise
    except OSError as error:
        name = Path(str(error.filename)).name
        raise CorruptEntryError(f"{folder} is damaged: {name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptEntryError(f"{folder} is damaged: {RECORD} is not readable") from error
    return record


def plain(value: Any) -> Any:
    """The same for strict JSON, which has no infinity and no NaN: they become text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True

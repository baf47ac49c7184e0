"""Finished runs on disk: one folder each, which exists whole or not at all.

A folder NAME-DIGEST holds the data (``*.nc``), ``picture.png``, ``picture.svg`` and ``run.json``
with parameters, seed, versions, timing, checks and the checksums of all files. It is written under
a temporary name, ``.new-NAME-DIGEST-HOST-PID-TOKEN``, brought to the disk, and renamed. Several
processes, also of several machines, may share a store: one of them computes a run, see ``claims``,
and the first that finishes it writes it.
``errors/NAME-DIGEST.txt`` tells of a run that did not finish.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sgdlimits import _checks, _disk
from sgdlimits.experiments import claims
from sgdlimits.experiments.plain import plain
from sgdlimits.results import replacing

MARKER = "sgdlimits.json"  # says that a folder is a store
RECORD = "run.json"
PICTURE = "picture"
ERRORS = "errors"
_NEW = ".new-"
_FORMAT = 1


class CorruptEntryError(ValueError):
    """A folder of the store that is damaged."""


def open_store(out: Path) -> None:
    """Make ``out`` a store, or check that it is one; remove what killed runs left behind."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        _mark(out)
        if not os.access(out, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        for leftover in out.glob(f"{_NEW}*"):
            if _abandoned(leftover.name):
                _remove(leftover)
        claims.sweep(out)
    except OSError as error:
        raise _checks.InputError(f"out={str(out)!r} is not allowed: {error.strerror}") from error


def add(folder: Path, fill: Callable[[Path], None], *, replace: bool = False) -> bool:
    """Add a finished run, and say whether it is the one that is there now.

    Args:
        folder: its name in the store.
        fill: writes all files, ``run.json`` the last, into the temporary folder that it is given.
        replace: whether it takes the place of a run of that name. If not, the first that was
            written stays, and this one is discarded.
    """
    temporary = _temporary(folder)
    temporary.mkdir()
    aside: list[Path] = []
    try:
        with _disk.writing(folder):
            fill(temporary)
            _disk.sync(temporary)
        while not _move(temporary, folder):
            if replace:
                aside.append(_temporary(folder))
                with suppress(FileNotFoundError):  # another process does the same
                    folder.rename(aside[-1])
            elif os.path.lexists(folder):
                return False
        _disk.sync_one(folder.parent)
    finally:
        if aside and not os.path.lexists(folder):
            aside[-1].rename(folder)
        for path in (temporary, *aside):
            _remove(path)
    return True


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write ``run.json``, with the checksums of all other files of the folder and of itself."""
    files = {path.name: _checksum(path.read_bytes()) for path in sorted(folder.iterdir())}
    whole = plain(record | {"format": _FORMAT, "files": files})
    whole["checksum"] = _own_checksum(whole)
    text = json.dumps(whole, indent=1, ensure_ascii=False)
    (folder / RECORD).write_text(text + "\n", encoding="utf-8")


def read_record(folder: Path) -> dict[str, Any]:
    """Read ``run.json`` of a finished run, after checking that all its files are as they were."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if record["format"] != _FORMAT:
            raise CorruptEntryError(
                f"{folder} is of another version: its format is {record['format']}, not {_FORMAT}"
            )
        if record["checksum"] != _own_checksum(record):
            raise CorruptEntryError(f"{folder} is damaged: {RECORD} has changed")
        for name, checksum in record["files"].items():
            if _checksum((folder / name).read_bytes()) != checksum:
                raise CorruptEntryError(f"{folder} is damaged: {name} has changed")
    except CorruptEntryError:
        raise
    except OSError as error:
        name = Path(str(error.filename)).name
        raise CorruptEntryError(f"{folder} is damaged: {name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptEntryError(f"{folder} is damaged: {RECORD} is not readable") from error
    return record


def entries(out: Path) -> list[Path]:
    """The folders of all runs in a store, finished or damaged, in the order of their names."""
    folders = (path for path in out.iterdir() if path.is_dir() and path.name != ERRORS)
    return sorted(path for path in folders if not path.name.startswith("."))


def error_file(folder: Path) -> Path:
    """Where the error of a run is told that should have become this folder."""
    return folder.parent / ERRORS / f"{folder.name}.txt"


def write_error(folder: Path, text: str) -> Path:
    """Tell of the error of a run, in place of its last one."""
    path = error_file(folder)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


# --- inside -------------------------------------------------------------------------------------


def _mark(out: Path) -> None:
    """Write the marker into a new folder, or check the one that is there."""
    marker = out / MARKER
    if not marker.exists():
        # another process may be writing it at this moment, under a temporary name
        temporary_names = f".{marker.stem}."
        foreign = any(not path.name.startswith(temporary_names) for path in out.iterdir())
        if foreign and not marker.exists():
            raise _checks.InputError(
                f"out={str(out)!r} is not allowed: the folder has files that are not ours; "
                "give an empty or a new one"
            )
        with replacing(marker) as temporary:
            temporary.write_text(json.dumps({"format": _FORMAT}) + "\n")
    try:
        form = json.loads(marker.read_text())["format"]
    except (ValueError, KeyError, TypeError):
        form = None
    if form != _FORMAT:
        raise _checks.InputError(
            f"out={str(out)!r} is not allowed: its {MARKER} tells format {form}, and this version "
            f"has format {_FORMAT}; give an empty or a new folder"
        )


def _move(temporary: Path, folder: Path) -> bool:
    """Rename, unless there is something: one operation, in which only one process can succeed."""
    try:
        temporary.rename(folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    return True


def _temporary(folder: Path) -> Path:
    words = (folder.name, _host(), str(os.getpid()), secrets.token_hex(4))
    return folder.with_name(_NEW + "-".join(words))


def _host() -> str:
    """Name of the world in which process numbers are ours: the machine, and within it a container.

    Containers have their own numbers, and may have the name of their host.
    """
    try:
        numbers = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        numbers = ""
    return re.sub(r"[^\w.]", "_", f"{socket.gethostname()}.{numbers}")


def _abandoned(name: str) -> bool:
    """Whether the process that has made a temporary folder is of this machine, and gone."""
    parts = name.rsplit("-", 3)
    if len(parts) != 4 or parts[1] != _host() or not parts[2].isdigit():
        return False
    try:
        os.kill(int(parts[2]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # it runs, and is another user's
        return False
    return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _own_checksum(record: dict[str, Any]) -> str:
    rest = {name: value for name, value in record.items() if name != "checksum"}
    return _checksum(json.dumps(rest, sort_keys=True).encode())


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

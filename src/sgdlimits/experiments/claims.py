"""One process computes a run, others wait for it or leave it.

Who computes a run holds a lock on the file ``.lock-NAME-DIGEST`` beside its folder. The system ends
the lock with its process, however that ends: the file of one that was killed stays, and the next
process takes it over. Where a file system knows no locks, work may be done twice, as if alone.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = ".lock-"
PAUSE = 0.1  # seconds between looks at a lock that another process has


@contextmanager
def claimed(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the claim to compute a run.

    Args:
        folder: of the run.
        wait: for another process that has the claim; without it such a claim is not taken, and the
            value is False.
    """
    path = folder.with_name(PREFIX + folder.name)
    descriptor = _take(path)
    while descriptor is None and wait:
        time.sleep(PAUSE)
        descriptor = _take(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        _drop(path, descriptor)


def sweep(out: Path) -> None:
    """Remove the lock files of processes that were killed."""
    for path in out.glob(f"{PREFIX}*"):
        with suppress(PermissionError):  # another user's, and not for us to read
            descriptor = _take(path)
            if descriptor is not None:
                _drop(path, descriptor)


def _take(path: Path) -> int | None:
    """The locked file; None if another process has it."""
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks
            return descriptor
        if _is_still_there(path, descriptor):
            return descriptor
        os.close(descriptor)  # its owner removed it between our two steps


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # another user's, whose lock may be asked for all the same
        return os.open(path, os.O_RDONLY)


def _drop(path: Path, descriptor: int) -> None:
    with suppress(OSError):
        path.unlink()  # while it is ours: who opened it before sees that it is gone
    os.close(descriptor)


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False

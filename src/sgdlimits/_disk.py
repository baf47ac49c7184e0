"""What is renamed into place must be on the disk before, or a power cut leaves it half written.

And a disk that is full is told as such, whatever the library that wrote makes of it.
"""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROBE = 2**20  # bytes that a disk with room left can take


def sync(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is on the disk."""
    if path.is_dir():
        for child in path.iterdir():
            if not child.is_symlink():
                sync(child)
    sync_one(path)


def sync_one(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # some file systems do not know how to for a folder: there is nothing more that we can do
        if not (path.is_dir() and error.errno in (errno.EINVAL, errno.ENOTSUP)):
            raise
    finally:
        os.close(descriptor)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Inside, a full disk is an OSError that says so and names the target.

    NetCDF says 'HDF error' of it: what fails is tried again with plain bytes.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        problem = full(error) or _no_room(target.parent)
        if problem is None:
            raise
        raise OSError(problem.errno, problem.strerror, str(target)) from error


def full(error: BaseException) -> OSError | None:
    """The error, if it says that the disk, or what the user may have of it, is full."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return error
    return None


def _no_room(folder: Path) -> OSError | None:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return full(error)
    return None

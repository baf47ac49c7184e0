"""What is renamed into place must be on the disk before, or a power cut leaves it half written."""

import errno
import os
from pathlib import Path


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

"""Compiled programs kept on disk, so that the next process need not compile them again.

JAX has such a cache, but writes its files in place: a process that is killed leaves half of one,
which fails in every later process and which none replaces. The files here get their name when they
are complete, and start with their checksum: what is damaged counts as missing, and is written anew.
"""

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from sgdlimits import _warn

VARIABLE = "SGDLIMITS_CACHE"
"""Environment variable: the folder to use instead of that in the user's cache; none if empty."""

_SIZE = hashlib.sha256().digest_size
_used: Path | None = None


def use_cache(folder: str | Path | None = None) -> Path | None:
    """Keep the programs that JAX compiles in a folder, and look there before compiling one.

    The library does so only if asked, since it concerns all of JAX in this process; the command
    line does so by itself. Several processes may share a folder. It is as trusted as code: nobody
    else should be able to write to it. It may be deleted at any time.

    Args:
        folder: where; by default what the environment variable ``SGDLIMITS_CACHE`` names, or else a
            folder of ours in the user's cache. If the variable is empty, no programs are kept.

    Returns:
        The folder; None if the variable is empty, or if the folder cannot be written, which is a
        warning.

    >>> import sgdlimits as sl
    >>> sl.use_cache()  # doctest: +SKIP
    PosixPath('.../.cache/sgdlimits')
    """
    global _used
    if folder is None and os.environ.get(VARIABLE) == "":
        return None
    try:
        path = Path(folder or os.environ.get(VARIABLE) or _default()).expanduser().absolute()
        if path == _used:
            return path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
        where = getattr(error, "filename", None) or folder or os.environ.get(VARIABLE) or "~"
        _warn.warn(_complaint(where, error))
        return None
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # ours are many and small
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    reset_cache()
    # JAX has no public way to say how files are written. If this name goes, its own way is used.
    vars(sys.modules[reset_cache.__module__])["_cache"] = _Files(path)
    _used = path
    return path


def used() -> Path | None:
    """The folder that this process uses."""
    return _used


class _Files:
    """One file for each program, in the interface of JAX's caches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._complained = False

    def get(self, key: str) -> bytes | None:
        """A program, None if it is not there whole."""
        try:
            data = self._file(key).read_bytes()
        except OSError:
            return None
        value = data[_SIZE:]
        return value if hashlib.sha256(value).digest() == data[:_SIZE] else None

    def put(self, key: str, value: bytes) -> None:
        """Keep a program, in place of a damaged one."""
        temporary = ""
        try:
            with tempfile.NamedTemporaryFile(dir=self._path, prefix=".new-", delete=False) as file:
                temporary = file.name
                file.write(hashlib.sha256(value).digest() + value)
            os.replace(temporary, self._file(key))
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            if not self._complained:  # once: the disk stays full
                self._complained = True
                _warn.warn(_complaint(self._path, error))

    def _file(self, key: str) -> Path:
        return self._path / hashlib.sha256(key.encode()).hexdigest()  # keys may be long


def _default() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "sgdlimits"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sgdlimits"


def _complaint(where: Any, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or error
    return (
        f"compiled programs are not kept: {where} cannot be written ({reason}); {VARIABLE} names "
        "another folder, and an empty one keeps none"
    )

"""What is done of a long simulation, on disk: after a kill the same call goes on from there.

A folder holds ``simulation.json``, which says what is simulated, and a file ``runs-N.npz`` for each
chunk of runs from number N on, which is replaced as a whole when the chunk has come further. All of
these states lie between steps whose noise belongs to their number, so that the result is the same
to the last bit, wherever the work was cut.
"""

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import jax
import numpy as np

from sgdlimits import _checks
from sgdlimits._events import Event
from sgdlimits._types import State
from sgdlimits._version import __version__
from sgdlimits.results import replacing
from sgdlimits.simulate.ends import Ends
from sgdlimits.simulate.records import Recorded
from sgdlimits.simulate.setting import Setting

try:
    import fcntl
except ImportError:  # not POSIX: nobody looks whether others use the folder
    fcntl = None  # type: ignore[assignment]

EVERY = 10.0  # seconds between two files of a chunk, at least
SHARE = 0.05  # of the time may go into writing them
_SAYS = "simulation.json"
_LOCK = "lock"
_VALUE = "statistic_"


class KeptChunk:
    """The file of one chunk of runs."""

    def __init__(self, file: Path):
        self._file = file
        self._due = monotonic() + EVERY

    def load(self) -> Recorded | None:
        """What is known of these runs; None if nothing is, or if the file is damaged."""
        try:
            with self._file.open("rb") as file, np.load(file, allow_pickle=False) as data:
                values = {n.removeprefix(_VALUE): data[n] for n in data if n.startswith(_VALUE)}
                return Recorded(
                    int(data["done"]), values, data["ends"], data["steps"], data["times"]
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def is_due(self) -> bool:
        """Whether it is time to save."""
        return monotonic() >= self._due

    def save(self, recorded: Recorded) -> None:
        """Replace what is known."""
        began = monotonic()
        arrays = {f"{_VALUE}{name}": x for name, x in recorded.values.items()}
        arrays |= {
            name: np.asarray(x) for name, x in recorded._asdict().items() if name != "values"
        }
        with replacing(self._file) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        now = monotonic()
        self._due = now + max(EVERY, (now - began) / SHARE)


class Checkpoint:
    """A folder with the chunks of one simulation."""

    def __init__(self, folder: Path):
        self._folder = folder

    def of(self, first: int) -> KeptChunk:
        """Where the chunk is kept that begins with this run."""
        return KeptChunk(self._folder / f"runs-{first:09d}.npz")


@contextmanager
def opened(
    folder: str | os.PathLike[str],
    setting: Setting,
    starts: State,
    marks: np.ndarray,
    event: Event | None,
    ends: Ends | None,
) -> Iterator[Checkpoint]:
    """The folder of this simulation, new or as an earlier process left it."""
    if not isinstance(folder, str | os.PathLike) or str(folder) == "":
        raise _checks.InputError(
            f"checkpoint={folder!r} is not allowed: checkpoint must be the path of a folder"
        )
    path = Path(folder)
    says = _identity(setting, starts, marks, event, ends)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with (path / _LOCK).open("w") as lock:
            _take(lock, folder)
            for leftover in path.glob(".*.new*"):  # of processes that were killed
                leftover.unlink(missing_ok=True)
            _compare(path, says, folder)
            yield Checkpoint(path)
    except (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError) as error:
        raise _checks.InputError(
            f"checkpoint={str(folder)!r} is not allowed: {error.strerror}"
        ) from error


def _take(lock: Any, folder: Any) -> None:
    """Be the only one; a process that ends, however it does, lets go."""
    if fcntl is None:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _checks.InputError(
            f"checkpoint={str(folder)!r} is not allowed: another process is using it"
        ) from error


def _compare(path: Path, says: dict[str, Any], folder: Any) -> None:
    """Write what is simulated into a new folder, or check that it is the same."""
    file = path / _SAYS
    if not file.exists():
        others = [x.name for x in path.iterdir() if x.name != _LOCK]
        if others:
            raise _checks.InputError(
                f"checkpoint={str(folder)!r} is not allowed: the folder has other files, such as "
                f"{sorted(others)[0]!r}; give an empty or a new one"
            )
        with replacing(file) as temporary:
            temporary.write_text(json.dumps(says, indent=1) + "\n", encoding="utf-8")
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _checks.InputError(
            f"checkpoint={str(folder)!r} is not allowed: its {_SAYS} is not readable"
        ) from error
    apart = [name for name in says if known.get(name) != says[name]]
    if apart:
        told = [
            f"{name} ({known.get(name)!r} there, {says[name]!r} here)"
            for name in apart
            if name not in _HASHED
        ]
        words = told or [_HASHED[name] for name in apart]
        raise _checks.InputError(
            f"checkpoint={str(folder)!r} is not allowed: it belongs to a simulation that differs "
            f"in {', '.join(words)}; give another folder"
        )


_HASHED = {
    "marks": "time or its points",
    "starts": "where runs start",
    "program": "the functions of the task or the schedule",
}


def _identity(
    setting: Setting, starts: State, marks: np.ndarray, event: Event | None, ends: Ends | None
) -> dict[str, Any]:
    says = setting.noted | {
        "runs": len(next(iter(starts.values()))),
        "event": None if event is None else event.words,
        "version": __version__,
        "marks": _digest(marks),
        "starts": _digest(*starts.values(), *([] if ends is None else [ends])),
        "program": _program(setting, event),
    }
    return json.loads(json.dumps(says, default=str))  # as it will be read


def _program(setting: Setting, event: Event | None) -> str:
    """Of what a step computes: functions of the caller's have names, which do not tell it."""
    process = setting.process(0)
    moving = process.begin(setting.task.random_states(setting.dim, 0, range(process.lanes)))

    def step(moving: Any, words: jax.Array) -> Any:
        delta = process.clock(moving.time)
        carry = process.stepper(words)(0, moving.carry, delta)
        height = None if event is None else jax.vmap(event.height)(process.observe(carry))
        return carry, delta, height

    traced = jax.make_jaxpr(step)(moving, setting.words)
    text = re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr))
    return _digest(np.frombuffer(text.encode(), np.uint8), *map(np.asarray, traced.consts))


def _digest(*arrays: np.ndarray) -> str:
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.shape}{array.dtype}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()

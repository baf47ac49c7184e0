"""Work that is kept on disk: a process that is killed, and what does not belong together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.simulate import checkpoint as checkpoints

PCA = sl.tasks.SpikedTensor(order=2, snr=2.0)
SETTINGS: dict[str, Any] = {"dim": 10**5, "runs": 1000, "time": 0.5, "points": 6, "seed": 3}

KILLED = """
import sys
import sgdlimits as sl
from sgdlimits.simulate import checkpoint
checkpoint.EVERY, checkpoint.SHARE = 0.0, 1.0
task = sl.tasks.SpikedTensor(order=2, snr=2.0)
print("begun", flush=True)
sl.simulate(task, **{settings}, checkpoint=sys.argv[1])
print("done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_killed_simulation_goes_on(tmp_path: Path) -> None:
    """Killed in the middle: all chunks are finished then, and the bits are the same."""
    folder = tmp_path / "work"
    settings = SETTINGS | {"until": ("m", ">", 0.1)}
    command = [sys.executable, "-c", KILLED.replace("{settings}", repr(settings)), str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        while process.poll() is None and not list(folder.glob("runs-*.npz")):
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
    assert "done" not in output, "it was too fast to be killed"
    resumed = sl.simulate(PCA, **settings, checkpoint=folder)
    xr.testing.assert_identical(resumed, sl.simulate(PCA, **settings))
    assert len(list(folder.glob("runs-*.npz"))) == 8
    assert not list(folder.glob(".*"))  # nothing half written is left


@pytest.mark.parametrize("method", ["chain", "direct"])
def test_an_interrupted_simulation_goes_on(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every call; what is kept is used."""
    task = sl.tasks.XorMixture(width=3)
    settings: dict[str, Any] = {"dim": 40, "runs": 3, "time": 20.0, "points": 7, "method": method}
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1.0)
    saves, save = [], checkpoints.KeptChunk.save

    def interrupted(self: Any, recorded: Any) -> None:
        save(self, recorded)
        saves.append(recorded.done)
        if len(saves) < 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.KeptChunk, "save", interrupted)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            sl.simulate(task, **settings, checkpoint=tmp_path)
    resumed = sl.simulate(task, **settings, checkpoint=tmp_path)
    assert saves == sorted(set(saves))
    assert len(saves) >= 4
    xr.testing.assert_identical(resumed, sl.simulate(task, **settings))
    count = len(saves)
    xr.testing.assert_identical(sl.simulate(task, **settings, checkpoint=tmp_path), resumed)
    assert len(saves) == count  # all of it was there


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"dim": 40, "runs": 130, "time": 1.0, "points": 3}
    whole = sl.simulate(PCA, **settings, checkpoint=tmp_path)
    first, second = sorted(tmp_path.glob("runs-*.npz"))
    first.write_bytes(first.read_bytes()[:-100])
    data = bytearray(second.read_bytes())
    data[len(data) // 2] ^= 1
    second.write_bytes(data)
    xr.testing.assert_identical(sl.simulate(PCA, **settings, checkpoint=tmp_path), whole)


def test_a_continued_simulation_has_checkpoints(tmp_path: Path) -> None:
    half = sl.simulate(PCA, 40, runs=5, time=1.0, points=3)
    settings: dict[str, Any] = {"dim": 40, "runs": 5, "time": 1.0, "points": 3}
    more = sl.simulate(PCA, **settings, continue_from=half, checkpoint=tmp_path)
    xr.testing.assert_identical(more, sl.simulate(PCA, **settings, continue_from=half))
    xr.testing.assert_identical(
        more, sl.simulate(PCA, **settings, continue_from=half, checkpoint=tmp_path)
    )
    with pytest.raises(sl.InputError, match="where runs start"):
        sl.simulate(PCA, **settings, init=sl.results.state(half), checkpoint=tmp_path)


def slow(t: Any) -> Any:
    return 1.0 / (1.0 + t)


def test_what_belongs_to_another_simulation_is_refused(tmp_path: Path) -> None:
    valid: dict[str, Any] = {"task": PCA, "dim": 40, "runs": 5, "time": 1.0, "points": 3}
    sl.simulate(**valid, step=slow, checkpoint=tmp_path)

    def other(t: Any) -> Any:
        return 1.0 / (1.0 + 2 * t)

    other.__name__ = "slow"  # the same name and the same number of steps, nearly
    for change, part in (
        ({"task": PCA.replace(snr=3.0)}, "parameters"),
        ({"dim": 41}, "dim (40 there, 41 here)"),
        ({"seed": 1}, "seed (0 there, 1 here)"),
        ({"points": 4}, "time or its points"),
        ({"init": {"m": 0.1, "r2": 1.0}}, "where runs start"),
        ({"until": ("m", ">", 0.3)}, "event (None there, 'm > 0.3' here)"),
        ({"step": other}, "the functions of the task or the schedule"),
    ):
        with pytest.raises(sl.InputError, match="checkpoint") as caught:
            sl.simulate(**(valid | {"step": slow} | change), checkpoint=tmp_path)
        assert part in str(caught.value), str(caught.value)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"dim": 40, "runs": 5, "time": 1.0, "points": 3}
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(sl.InputError, match=r"mine\.txt"):
        sl.simulate(PCA, **settings, checkpoint=tmp_path)
    with pytest.raises(sl.InputError, match="checkpoint"):
        sl.simulate(PCA, **settings, checkpoint=tmp_path / "mine.txt")
    folder = tmp_path / "used"
    sl.simulate(PCA, **settings, checkpoint=folder)
    (folder / "simulation.json").write_text("{")
    with pytest.raises(sl.InputError, match="not readable"):
        sl.simulate(PCA, **settings, checkpoint=folder)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    settings: dict[str, Any] = {"dim": 40, "runs": 5, "time": 1.0, "points": 3}
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(sl.InputError, match="another process"):
            sl.simulate(PCA, **settings, checkpoint=tmp_path)
    assert np.isfinite(sl.simulate(PCA, **settings, checkpoint=tmp_path).m).all()

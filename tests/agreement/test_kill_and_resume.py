"""A killed run loses nothing that was finished, and the number of processes changes no bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NAMES = ["pca_equator", "pca_radius"]


def command(out: Path, jobs: int) -> list[str]:
    code = "from sgdlimits.cli import app; app()"
    words = ["run", *NAMES, "--preset", "tiny", "--out", str(out), "--jobs", str(jobs)]
    return [sys.executable, "-c", code, *words]


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.glob("*/*.nc"))}


def test_kill_and_resume(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole, jobs=2), check=True, capture_output=True)

    killed = subprocess.Popen(command(broken, jobs=1), stdout=subprocess.DEVNULL)
    while not list(broken.glob("pca_equator-*")):
        assert killed.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)  # in the middle of the second one, which takes most of a second
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    (first,) = broken.glob("pca_equator-*")
    assert not list(broken.glob("pca_radius-*"))
    before = (first / "run.json").stat().st_mtime_ns

    again = subprocess.run(command(broken, jobs=1), check=True, capture_output=True, text=True)
    assert f"{first}  (was there)" in again.stdout
    assert (first / "run.json").stat().st_mtime_ns == before
    assert len(files(whole)) >= 2
    assert files(broken) == files(whole)
    assert not list(broken.glob(".new-*"))

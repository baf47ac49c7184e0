"""Two processes in one folder: one computes, the other waits, and nobody waits for the dead."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from sgdlimits.experiments import Outcome, execute, execute_all, open_store, plan
from sgdlimits.experiments.claims import PREFIX, claimed, sweep

HOLD = """
import sys, time
from pathlib import Path
from sgdlimits.experiments.claims import claimed
with claimed(Path(sys.argv[1]), wait=False) as mine:
    print(mine, flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    """Another process that has the claim."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "x-123"
    with claimed(folder, wait=False) as mine, claimed(folder, wait=False) as again:
        assert (mine, again) == (True, False)
        with claimed(tmp_path / "y-123", wait=False) as other:
            assert other
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="inside"), claimed(folder, wait=False):
        raise ValueError("inside")
    with claimed(folder, wait=False) as mine:
        assert mine


def test_the_claim_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "x-123"
    process = holder(folder)
    with claimed(folder, wait=False) as mine:
        assert not mine
    sweep(tmp_path)
    assert (tmp_path / f"{PREFIX}x-123").exists()  # it is at work
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (tmp_path / f"{PREFIX}x-123").exists()
    with claimed(folder, wait=False) as mine:
        assert mine
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_dead_are_swept_away(tmp_path: Path) -> None:
    open_store(tmp_path)
    (tmp_path / f"{PREFIX}x-123").touch()
    open_store(tmp_path)
    assert not (tmp_path / f"{PREFIX}x-123").exists()


def test_who_waits_is_next(tmp_path: Path) -> None:
    """Also where the file was removed and made again in between."""
    order: list[int] = []
    inside = threading.Lock()

    def work(number: int) -> None:
        with claimed(tmp_path / "x-123", wait=True) as mine:
            assert mine
            assert inside.acquire(blocking=False)  # nobody else is
            time.sleep(0.02)
            order.append(number)
            inside.release()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(8)))
    assert sorted(order) == list(range(8))
    assert list(tmp_path.iterdir()) == []


def test_file_systems_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", unable)
    with claimed(tmp_path / "x-123", wait=False) as mine:
        assert mine


def test_work_is_done_once(fake: str, tmp_path: Path) -> None:
    job = plan(fake, tmp_path, preset="tiny")
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(execute, [job, job]))
    assert sorted(outcome.computed for outcome in outcomes) == [False, True]
    assert outcomes[0].record == outcomes[1].record


@pytest.mark.parametrize("workers", [1, 2])
def test_what_others_compute_comes_last(fake: str, tmp_path: Path, workers: int) -> None:
    open_store(tmp_path)
    jobs = [plan(name, tmp_path, preset="tiny") for name in (fake, "fake_others")]
    told: list[str] = []

    def done(outcome: Outcome) -> None:
        told.append(outcome.job.name)

    with ExitStack() as other:
        assert other.enter_context(claimed(jobs[0].folder, wait=False))

        def waiting(busy: object) -> None:
            assert busy == [jobs[0]]
            told.append("waiting")
            other.close()  # it was killed before it had finished

        outcomes = execute_all(jobs, workers=workers, done=done, waiting=waiting)
    assert told == ["fake_others", "waiting", fake]
    assert [outcome.error for outcome in outcomes] == ["", ""]
    assert all(outcome.computed for outcome in outcomes)

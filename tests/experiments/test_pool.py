"""Several processes: one that dies names its job, and takes nothing else with it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import threadpoolctl  # type: ignore[import-untyped]

import sgdlimits as sl
from sgdlimits import _cache, _cores
from sgdlimits.experiments import Outcome, execute, execute_all, plan, pool


def test_a_process_that_is_killed(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is killed once gets another chance, who is killed twice is named; others go on."""
    monkeypatch.setenv(_cores.THREADS, "4")
    out = tmp_path / "out"
    texts = [
        {"size": "30"},
        {"trouble": "value"},
        {"trouble": f"kill:{tmp_path / 'marker'}"},
        {"trouble": "kill"},
    ]
    jobs = [plan(fake, out, preset="tiny", texts=text) for text in texts]
    told: list[Outcome] = []
    outcomes = execute_all(jobs, workers=2, done=told.append)
    assert [outcome.job for outcome in outcomes] == jobs
    good, broken, once, always = outcomes
    assert always.error == "fake_numbers: its process was killed (out of memory?) twice"
    assert not always.wrong_input
    assert "ValueError: a fault of ours" in broken.traceback
    for outcome in (good, once):
        assert outcome.error == ""
        assert outcome.computed
    assert len(told) == len(jobs)
    assert {id(outcome) for outcome in told[-2:]} == {id(once), id(always)}  # after the others

    # a share of the threads for each of two at once, all of them for one that runs alone
    shares = [sl.results.load(x.job.folder / "numbers.nc").attrs for x in (good, once)]
    assert [share["threads"] for share in shares] == [2, 4]
    assert [share["blas"] for share in shares] == [1, 1]
    assert not list(out.glob(".new-*"))

    # every bit is that of a run in this process, though its BLAS would use two threads
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        here = execute(plan(fake, tmp_path / "here", preset="tiny", texts=texts[0]))
    there, alone = (sl.results.load(x.job.folder / "numbers.nc") for x in (good, here))
    assert there.equals(alone)

    # what is finished needs no process
    monkeypatch.setattr(pool, "_start", None)
    again = execute_all([jobs[0], jobs[2]], workers=2)
    assert [outcome.record for outcome in again] == [good.record, once.record]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (-signal.SIGKILL, "was killed (out of memory?)"),
        (-signal.SIGSEGV, "was ended by SIGSEGV"),
        (-40, "was ended by signal 40"),
        (3, "ended by itself with exit code 3"),
    ],
)
def test_how_a_process_ended(code: int, said: str) -> None:
    assert pool._end(code) == said


def gone(group: int) -> bool:
    """Whether all processes of a group have ended, within a few seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("when", ["at birth", "at work", "killed"])
def test_ctrl_c_and_kill(fakes: Path, tmp_path: Path, when: str) -> None:
    """One of two experiments sleeps for ever: what is finished stays, and no process does."""
    out, asleep = tmp_path / "out", tmp_path / "asleep"
    code = (
        "import signal\n"
        "from sgdlimits.experiments import catalogue\n"
        "from sgdlimits.cli import app\n"
        "if __name__ == '__main__':\n"
        # tests that run in the background of a shell are told to ignore it
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"    catalogue.__path__.append({str(fakes)!r})\n"
        "    app()\n"
    )
    words = ["run", "fake_numbers", "fake_others", "--jobs", "2", "--out", str(out)]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--set", f"trouble=sleep:{asleep}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    awaited = "sgdlimits.json" if when == "at birth" else "fake_*-*/run.json"
    while not list(out.glob(awaited)):
        assert running.poll() is None
        time.sleep(0.05)
    if when == "at birth":
        time.sleep(0.5)  # the processes are there, and import
    if when == "at work":  # it is on the disk before the parent knows
        assert running.stderr is not None
        assert running.stderr.readline().startswith("1 of 2: fake_")  # either may sleep
    if when == "killed":
        running.kill()
    else:
        os.killpg(running.pid, signal.SIGINT)
    _, stderr = running.communicate(timeout=120)
    assert gone(running.pid)
    assert not list(out.glob(".new-*"))
    finished = 0 if when == "at birth" else 1
    if when == "killed":
        assert running.returncode == -signal.SIGKILL
    else:
        assert running.returncode == 130
        assert stderr == (
            f"sgdlimits: interrupted: {finished} of 2 experiments are finished in {out}/; "
            "the same command goes on from there\n"
        )
    assert len(list(out.glob("fake_*-*/run.json"))) == finished


def cache_of(_: int) -> Path | None:
    return _cache.used()


def test_processes_use_the_cache_of_their_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cache, "_used", tmp_path)
    told: list[Path | None] = []
    pool.run_all(cache_of, [0, 1], processes=2, finished=told.append, lost=print)
    assert told == [tmp_path, tmp_path]

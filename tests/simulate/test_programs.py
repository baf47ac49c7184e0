"""What ``simulate`` compiles, and how soon it stops."""

import os
import signal
import subprocess
import sys
import time

import pytest

import sgdlimits as sl
from sgdlimits.tasks import Task
from tests.compilations import compilations


@pytest.mark.parametrize(
    "task", [sl.tasks.SpikedTensor(snr=0.5), sl.tasks.XorMixture(width=3)], ids=lambda t: repr(t)
)
def test_one_program_for_all_sizes(task: Task) -> None:
    """Whatever the points, the time, the runs and the dimension, down to the least."""
    least = task.least_dim
    with compilations() as first:
        sl.simulate(task, dim=least + 9, runs=2, time=0.5, points=2)
    assert len(first) <= 1  # none if another test has been here
    with compilations() as others:
        sl.simulate(task, dim=least + 9, runs=2, time=0.5, points=5)
        sl.simulate(task, dim=least, runs=1, time=3.0, points=2)
        sl.simulate(task, dim=least + 1, runs=300, time=1.0, points=40)
        sl.simulate(task, dim=10**9, runs=2, time=1e-7, step=0.5, seed=3, points=7)
        sl.simulate(
            task, dim=30, runs=3, time=0.2, step=0.1, init=task.random_state(40, 1), points=3
        )
    assert len(others) == 0


ENDLESS = """
import signal
import sgdlimits as sl
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
print("begun", flush=True)
sl.simulate(sl.tasks.SpikedTensor(), dim=10**9, runs=500, time=1000.0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_an_interruption_is_answered() -> None:
    """Ctrl-C ends a simulation of centuries: within a second, but no test should say so."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "default"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(3)  # it may compile still: then the signal waits for that
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors

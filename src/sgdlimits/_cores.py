"""How many threads this process may use: its share of the cores that it is allowed.

A machine has more cores than a job on a cluster or a container may use: the scheduler binds the
process to some of them, or its control group has a quota of processor time. Processes that we start
divide what is left among themselves, see :func:`shared_by`.

BLAS is another matter: the number of its threads decides how sums are split, and with that the
last bits of a result, so :func:`one_blas_thread` holds it at one, however many processes run. The
threads of XLA decide about bits as well, but cannot be set once it runs: they are left as they are,
the same in every process of a machine. Only our own threads, which change no bit, are divided.
"""

import functools
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import threadpoolctl  # type: ignore[import-untyped]

from sgdlimits import _checks

THREADS = "SGDLIMITS_THREADS"
"""Environment variable: how many threads to use instead of one per core."""

_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")


def usable() -> int:
    """How many threads to use: ``SGDLIMITS_THREADS``, or the cores that this process may use."""
    text = os.environ.get(THREADS, "").strip()
    if not text:
        return cores()
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise _checks.InputError(
            f"{THREADS}={text!r} is not allowed: {THREADS} must be an integer >= 1"
        )
    return int(text)


def cores() -> int:
    """How many cores this process may use: affinity and quota, not what the machine has."""
    if hasattr(os, "process_cpu_count"):  # Python 3.13
        bound = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        bound = len(os.sched_getaffinity(0))
    else:
        bound = os.cpu_count()
    # a quota of 1.5 cores keeps two threads busy most of the time
    return max(1, min(bound or 1, math.ceil(min(_quota(), 2**20))))


@contextmanager
def shared_by(processes: int) -> Iterator[None]:
    """Processes started inside get an equal share of the threads, and a BLAS with one.

    It works through the environment, which they inherit and read before they import anything.
    """
    given = {THREADS: str(max(1, usable() // processes))} | dict.fromkeys(_BLAS, "1")
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, BLAS and LAPACK use one thread, so that their results do not depend on the cores."""
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        yield


@functools.cache  # solutions ask before every drift
def _quota() -> float:
    """Processor time over wall time that control groups leave us, when we first ask."""
    return _quota_in(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))


def _quota_in(groups: Path, mounted: Path) -> float:
    """The least quota among our groups, of version 2 or 1."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # not Linux
        return math.inf
    quotas = [math.inf]
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            roots = [mounted, mounted / "unified"]
        elif "cpu" in controllers.split(","):
            roots = [mounted / "cpu", mounted / controllers]
        else:
            continue
        # A limit binds everything below it. In a container the name may be that outside of it, and
        # then only the top of what is mounted exists.
        inner = Path(name.lstrip("/"))
        quotas += [_quota_of(root / folder) for root in roots for folder in (inner, *inner.parents)]
    return min(quotas)


def _quota_of(folder: Path) -> float:
    """Of one control group: ``cpu.max`` in version 2, two files in version 1."""
    for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
        try:
            quota, period = " ".join((folder / name).read_text() for name in names).split()
            if quota != "max" and int(quota) > 0 and int(period) > 0:  # -1 is no limit
                return int(quota) / int(period)
        except (OSError, ValueError):
            continue
    return math.inf

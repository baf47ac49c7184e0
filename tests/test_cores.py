"""The cores that a process may use, and their division among processes."""

import importlib
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import threadpoolctl  # type: ignore[import-untyped]
import xarray as xr

import sgdlimits as sl
from sgdlimits import InputError, _cores
from sgdlimits.simulate.chain import LANES


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_cores.THREADS, raising=False)


def group(folder: Path, **files: str) -> None:
    """One control group: ``cpu_max`` is the file ``cpu.max``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("cpu_", "cpu.")).write_text(text + "\n")


def quota(tmp_path: Path, own: str) -> float:
    (tmp_path / "own").write_text(own)
    return _cores._quota_in(tmp_path / "own", tmp_path / "cgroup")


def test_affinity_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(_cores, "_quota", lambda: math.inf)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert _cores.cores() == 3


@pytest.mark.parametrize(
    ("allowed", "expected"), [(0.2, 1), (1.5, 2), (2.0, 2), (7.0, 7), (9.0, 8), (math.inf, 8)]
)
def test_a_quota_counts(monkeypatch: pytest.MonkeyPatch, allowed: float, expected: int) -> None:
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(_cores, "_quota", lambda: allowed)
    assert _cores.cores() == expected


def test_version_2_of_groups(tmp_path: Path) -> None:
    group(tmp_path / "cgroup" / "slurm" / "job", cpu_max="300000 100000")
    group(tmp_path / "cgroup" / "slurm", cpu_max="max 100000")
    assert quota(tmp_path, "0::/slurm/job\n") == 3
    group(tmp_path / "cgroup" / "slurm", cpu_max="150000 100000")  # binds what is below
    assert quota(tmp_path, "0::/slurm/job\n") == 1.5
    assert quota(tmp_path, "0::/other\n") == math.inf


def test_version_2_in_a_container(tmp_path: Path) -> None:
    group(tmp_path / "cgroup", cpu_max="200000 100000")
    assert quota(tmp_path, "0::/docker/3f2a\n") == 2  # a name that only the host knows
    assert quota(tmp_path, "0::/\n") == 2


def test_version_1_of_groups(tmp_path: Path) -> None:
    both = "cpu,cpuacct"
    group(tmp_path / "cgroup" / both / "job", cpu_cfs_quota_us="250000", cpu_cfs_period_us="100000")
    group(tmp_path / "cgroup" / both, cpu_cfs_quota_us="-1", cpu_cfs_period_us="100000")
    own = f"4:memory:/big\n3:{both}:/job\n0::/\n"
    assert quota(tmp_path, own) == 2.5
    assert quota(tmp_path, f"3:{both}:/\n") == math.inf


def test_no_groups_and_nonsense_are_no_limit(tmp_path: Path) -> None:
    assert _cores._quota_in(tmp_path / "none", tmp_path) == math.inf
    group(tmp_path / "cgroup", cpu_max="many cores please")
    assert quota(tmp_path, "0::/\n") == math.inf


def test_the_variable_is_stronger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_cores.THREADS, "7")
    assert _cores.usable() == 7
    monkeypatch.setenv(_cores.THREADS, "")
    assert _cores.usable() == _cores.cores()


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²"])
def test_a_wrong_variable_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(_cores.THREADS, text)
    with pytest.raises(InputError, match=rf"^SGDLIMITS_THREADS='{text}' is not allowed"):
        _cores.usable()


@pytest.mark.parametrize(("processes", "share"), [(1, 8), (2, 4), (3, 2), (8, 1), (20, 1)])
def test_processes_share(monkeypatch: pytest.MonkeyPatch, processes: int, share: int) -> None:
    monkeypatch.setenv(_cores.THREADS, "8")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with _cores.shared_by(processes):
        assert _cores.usable() == share
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert _cores.usable() == 8
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "MKL_NUM_THREADS" not in os.environ


def test_blas_has_one_thread_inside_and_as_many_as_before_after_it() -> None:
    def threads() -> set[int]:
        libraries = threadpoolctl.threadpool_info()
        return {found["num_threads"] for found in libraries if found["user_api"] == "blas"}

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with _cores.one_blas_thread():
            assert threads() == {1}
        assert threads() == {2}


def test_simulations_use_the_threads_and_do_not_depend_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[int | None] = []

    class Watched(ThreadPoolExecutor):
        def __init__(self, max_workers: int | None = None) -> None:
            used.append(max_workers)
            super().__init__(max_workers)

    module = importlib.import_module("sgdlimits.simulate.chunks")
    monkeypatch.setattr(module, "ThreadPoolExecutor", Watched)

    def simulated(threads: int) -> xr.Dataset:
        monkeypatch.setenv(_cores.THREADS, str(threads))
        runs = 3 * LANES + 1  # several chunks
        return sl.simulate(sl.tasks.SpikedTensor(), dim=100, runs=runs, time=0.5, points=3)

    assert simulated(1).identical(simulated(3))
    assert used == [1, 3]

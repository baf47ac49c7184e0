"""Programs that a process has compiled are there for the next one, whatever became of the first."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from sgdlimits import _cache

ROOT = Path(__file__).parents[1]
START = """
import collections, sys
import jax, jax.numpy as jnp
import sgdlimits as sl
from sgdlimits._compiled import compiled
from tests.compilations import compilations
told = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **_: told.update([event.split("/")[-1]]))
def f(x):
    return jnp.sin(x) @ x
def both():
    with compilations() as programs:
        jax.jit(f)(jnp.ones((3, 3))), compiled(f)(jnp.ones((3, 3)))
    return len(programs)
"""
COUNT = START + "sl.use_cache(); both(); print(told['cache_misses'], told['cache_hits'])"


def start(code: str, **environment: str) -> "subprocess.Popen[str]":
    """A process in which every warning is an error."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: "subprocess.Popen[str]") -> str:
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode == 0, stderr
    return stdout


def counts(folder: Path) -> tuple[int, int]:
    """How many programs a new process compiles, and how many it finds."""
    misses, hits = end(start(COUNT, **{_cache.VARIABLE: str(folder)})).split()
    return int(misses), int(hits)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    programs, none = counts(folder)
    assert programs >= 2
    assert none == 0
    assert counts(folder) == (0, programs)


def test_damaged_programs_are_compiled_again(tmp_path: Path) -> None:
    programs, _ = counts(tmp_path)
    for number, path in enumerate(sorted(tmp_path.iterdir())):
        whole = path.read_bytes()
        path.write_bytes([b"", whole[: len(whole) // 2], whole[:-1] + b"?"][number % 3])
    (tmp_path / ".new-abc").write_bytes(b"left by a process that was killed")
    assert counts(tmp_path) == (programs, 0)
    assert counts(tmp_path) == (0, programs)


def test_several_processes_at_once(tmp_path: Path) -> None:
    together = [start(COUNT, **{_cache.VARIABLE: str(tmp_path)}) for _ in range(3)]
    for process in together:
        end(process)
    assert counts(tmp_path)[0] == 0
    assert not list(tmp_path.glob(".new-*"))


def test_programs_are_counted_whether_or_not_they_are_found(tmp_path: Path) -> None:
    code = START + "sl.use_cache(); print(both()); jax.clear_caches(); print(both())"
    first, second = end(start(code, **{_cache.VARIABLE: str(tmp_path)})).split()
    assert first == second
    assert int(first) >= 2


@pytest.mark.parametrize("ask", ["pass", "sl.use_cache()"])
def test_jax_is_left_alone_unless_asked(ask: str) -> None:
    code = START + f"{ask}; both(); print(jax.config.jax_compilation_cache_dir, sum(told.values()))"
    told = end(start(code, **{_cache.VARIABLE: ""}))
    assert told.startswith("None")


def test_the_default_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _cache._default() == tmp_path / "sgdlimits"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _cache._default() == tmp_path / ".cache" / "sgdlimits"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _cache._default() == tmp_path / "Library" / "Caches" / "sgdlimits"


@pytest.mark.parametrize("named", [True, False])
def test_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    folder = tmp_path / "file" / "cache"
    folder.parent.write_text("no folder")
    before = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    monkeypatch.setenv(_cache.VARIABLE, str(folder))
    with pytest.warns(RuntimeWarning, match="cannot be written") as told:
        assert _cache.use_cache(folder if named else None) is None
    (warning,) = told
    assert str(folder) in str(warning.message)
    assert _cache.VARIABLE in str(warning.message)
    assert warning.filename == __file__
    assert jax.config.jax_compilation_cache_dir == before  # type: ignore[attr-defined]


def test_a_full_disk_is_told_once(tmp_path: Path) -> None:
    files = _cache._Files(tmp_path / "none")
    with pytest.warns(RuntimeWarning, match="cannot be written"):
        files.put("key", b"program")
    files.put("other", b"program")
    assert files.get("key") is None

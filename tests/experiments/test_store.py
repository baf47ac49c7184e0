"""Folders of finished runs exist whole or not at all."""

import json
import os
from pathlib import Path

import pytest

from sgdlimits.experiments import store

DEAD = 2**22 + 1  # above the largest process number of Linux


def entry(out: Path, name: str = "x-123") -> Path:
    folder = out / name
    with store.new_entry(folder) as new:
        (new / "data.nc").write_text("data")
        store.write_record(new, {"name": "x", "checks": [], "value": float("inf")})
    return folder


def test_write_and_read(tmp_path: Path) -> None:
    record = store.read_record(entry(tmp_path))
    assert record["name"] == "x"
    assert record["value"] == "inf"  # strict JSON has no infinity
    assert list(record["files"]) == ["data.nc"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with store.new_entry(tmp_path / "x-1") as new:
            (new / "data.nc").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_an_entry_is_replaced(tmp_path: Path) -> None:
    entry(tmp_path)
    with store.new_entry(tmp_path / "x-123") as new:
        (new / "other.nc").write_text("new")
        store.write_record(new, {"name": "y"})
    assert store.read_record(tmp_path / "x-123")["name"] == "y"
    assert [path.name for path in tmp_path.iterdir()] == ["x-123"]


def test_leftovers_of_killed_runs_go(tmp_path: Path) -> None:
    store.open_store(tmp_path)
    for pid in (DEAD, os.getpid()):
        (tmp_path / f".new-x-123-{pid}").mkdir()
    store.open_store(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {store.MARKER, f".new-x-123-{os.getpid()}"}  # a running one stays


def test_foreign_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    with pytest.raises(ValueError, match="files that are not ours"):
        store.open_store(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^out=.* is not allowed"):
        store.open_store(tmp_path / "file")
    with pytest.raises(ValueError, match=r"^out=.* is not allowed"):
        store.open_store(tmp_path / "file" / "deeper")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.json", None),
        ("run.json", "{"),
        ("run.json", "[]"),
        ("run.json", '{"files": 3}'),
        ("run.json", '{"name": "x"}'),
        ("data.nc", None),
        ("data.nc", "other"),
    ],
)
def test_damage_is_seen(tmp_path: Path, name: str, text: str | None) -> None:
    folder = entry(tmp_path)
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(store.CorruptEntryError, match=r"x-123 is damaged"):
        store.read_record(folder)


def test_plain_json() -> None:
    value = {"a": [1.0, float("nan")], 2: (True, None, "x")}
    assert json.dumps(store.plain(value), allow_nan=False)
    assert store.plain(value) == {"a": [1.0, "nan"], "2": [True, None, "x"]}

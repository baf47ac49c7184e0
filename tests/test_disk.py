"""Files reach the disk before they get their name."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sgdlimits import _disk
from sgdlimits.results import replacing


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What was synced and renamed, in order."""
    told: list[tuple[str, str]] = []

    def watch(name: str, path_of: Callable[..., str]) -> None:
        original = getattr(os, name)

        def watched(*arguments: object) -> object:
            told.append((name, Path(path_of(*arguments)).name))
            return original(*arguments)

        monkeypatch.setattr(os, name, watched)

    watch("fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    watch("replace", lambda _, target: str(target))
    return told


def test_a_folder_with_all_that_it_holds(tmp_path: Path, events: list[tuple[str, str]]) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_text("x")
    (tmp_path / "a" / "nowhere").symlink_to("not there")
    _disk.sync(tmp_path / "a")
    assert events == [("fsync", "x"), ("fsync", "b"), ("fsync", "a")]


def test_a_file_is_on_the_disk_before_it_is_renamed(
    tmp_path: Path, events: list[tuple[str, str]]
) -> None:
    with replacing(tmp_path / "page.html") as temporary:
        temporary.write_text("page")
    assert events == [
        ("fsync", temporary.name),
        ("replace", "page.html"),
        ("fsync", tmp_path.name),
    ]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "page.html").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), replacing(tmp_path / "page.html") as new:
        new.write_text("new")
    assert (tmp_path / "page.html").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_folders_of_some_file_systems_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unable(descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unable)
    _disk.sync(tmp_path)
    (tmp_path / "x").write_text("x")
    with pytest.raises(OSError, match="Invalid argument"):
        _disk.sync(tmp_path)

"""Files reach the disk before they get their name."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import xarray as xr

from sgdlimits import _disk
from sgdlimits.results import replacing, save


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


def no_room(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("error", [RuntimeError("NetCDF: HDF error"), OSError(-1, "HDF error")])
def test_what_libraries_say_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(os, "fsync", no_room)  # for plain bytes there is no room either
    message = r"No space left on device: '.*x\.nc'"
    with pytest.raises(OSError, match=message) as raised, _disk.writing(tmp_path / "x.nc"):
        raise error
    assert raised.value.__cause__ is error
    assert list(tmp_path.iterdir()) == []


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    for error in (RuntimeError("NetCDF: HDF error"), PermissionError(13, "no"), ValueError("x")):
        with pytest.raises(type(error)) as raised, _disk.writing(tmp_path / "x.nc"):
            raise error
        assert raised.value is error


def test_results_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("NetCDF: HDF error")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", broken)
    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(OSError, match=r"No space left on device: '.*a\.nc'"):
        save(xr.Dataset({"x": ("run", [1.0])}), tmp_path / "a.nc")
    assert list(tmp_path.iterdir()) == []

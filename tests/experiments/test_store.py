"""Folders of finished runs exist whole or not at all, also when several processes write them."""

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sgdlimits.experiments import store

DEAD = 2**22 + 1  # above the largest process number of Linux


def entry(out: Path, name: str = "x", *, replace: bool = False) -> tuple[Path, bool]:
    """A run in the folder ``x-123``, and whether it is there now."""

    def fill(new: Path) -> None:
        (new / f"{name}.nc").write_text("data")
        store.write_record(new, {"name": name, "checks": [], "value": float("inf")})

    return out / "x-123", store.add(out / "x-123", fill, replace=replace)


def test_write_and_read(tmp_path: Path) -> None:
    folder, added = entry(tmp_path)
    assert added
    record = store.read_record(folder)
    assert record["name"] == "x"
    assert record["value"] == "inf"  # strict JSON has no infinity
    assert list(record["files"]) == ["x.nc"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fill(new: Path) -> None:
        (new / "data.nc").write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.add(tmp_path / "x-1", fill)
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_stays(tmp_path: Path) -> None:
    def fill(new: Path) -> None:
        entry(tmp_path, "faster")  # another process finishes it in the meantime
        (new / "slower.nc").write_text("data")
        store.write_record(new, {"name": "slower"})

    assert not store.add(tmp_path / "x-123", fill)
    assert store.read_record(tmp_path / "x-123")["name"] == "faster"
    assert [path.name for path in tmp_path.iterdir()] == ["x-123"]


def test_an_entry_is_replaced_if_asked(tmp_path: Path) -> None:
    entry(tmp_path)
    folder, added = entry(tmp_path, "y", replace=True)
    assert added
    assert store.read_record(folder)["name"] == "y"
    assert [path.name for path in tmp_path.iterdir()] == ["x-123"]
    assert {path.name for path in folder.iterdir()} == {"y.nc", store.RECORD}


@pytest.mark.parametrize("kind", ["file", "link", "empty"])
def test_what_is_no_entry_is_replaced_as_well(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "x-123"
    if kind == "file":
        other.write_text("?")
    elif kind == "link":
        other.symlink_to(tmp_path / "nowhere")
    else:
        other.mkdir()
    folder, added = entry(tmp_path, replace=True)
    assert added
    assert store.read_record(folder)["name"] == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["x-123"]


def test_the_old_one_comes_back_if_the_new_one_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry(tmp_path)
    move = store._move

    def broken(temporary: Path, folder: Path) -> bool:
        if folder.exists():
            return move(temporary, folder)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(store, "_move", broken)
    with pytest.raises(OSError, match="Input/output"):
        entry(tmp_path, "y", replace=True)
    assert store.read_record(tmp_path / "x-123")["name"] == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["x-123"]


def test_data_are_on_the_disk_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    fsync, move = os.fsync, store._move

    def sync(descriptor: int) -> None:
        told.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)
        fsync(descriptor)

    def moved(temporary: Path, folder: Path) -> bool:
        told.append("rename")
        return move(temporary, folder)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(store, "_move", moved)
    entry(tmp_path)
    before, after = told[: told.index("rename")], told[told.index("rename") + 1 :]
    assert {"x.nc", store.RECORD} < set(before)
    assert before[-1].startswith(".new-x-123-")
    assert after == [tmp_path.name]


def test_many_write_one_entry_at_once(tmp_path: Path) -> None:
    """Exactly one of them wins, and what is there is whole for all of them."""
    together = threading.Barrier(4)

    def write(number: int) -> bool:
        def fill(new: Path) -> None:
            (new / "data.nc").write_bytes(bytes(10_000))
            store.write_record(new, {"name": "x"})
            together.wait()

        won = store.add(tmp_path / f"x-{number}", fill)
        assert store.read_record(tmp_path / f"x-{number}")["name"] == "x"
        return won

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(write, [number for number in range(10) for _ in range(4)]))
    assert [sum(won[4 * number : 4 * number + 4]) for number in range(10)] == [1] * 10
    assert not list(tmp_path.glob(".new-*"))


def leftover(out: Path, *, host: str | None = None, pid: int = DEAD) -> str:
    name = f".new-x-123-{host or store._host()}-{pid}-0a1b2c3d"
    (out / name).mkdir()
    return name


def test_leftovers_of_killed_runs_go(tmp_path: Path) -> None:
    store.open_store(tmp_path)
    leftover(tmp_path)
    running = leftover(tmp_path, pid=os.getpid())
    store.open_store(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {store.MARKER, running}


def test_no_name_of_a_machine_ends_like_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.open_store(tmp_path)
    monkeypatch.setattr("socket.gethostname", lambda: "rack-node")
    theirs = store._temporary(tmp_path / "x-123").name.replace(f"-{os.getpid()}-", f"-{DEAD}-")
    (tmp_path / theirs).mkdir()
    monkeypatch.setattr("socket.gethostname", lambda: "node")
    store.open_store(tmp_path)
    assert (tmp_path / theirs).exists()
    monkeypatch.setattr("socket.gethostname", lambda: "rack-node")
    store.open_store(tmp_path)
    assert not (tmp_path / theirs).exists()


def test_what_other_machines_write_stays(tmp_path: Path) -> None:
    store.open_store(tmp_path)
    others = {
        leftover(tmp_path, host="elsewhere.4026531836"),
        leftover(tmp_path, host=f"{store._host()}1"),  # a container of this machine
    }
    (tmp_path / ".new-something").mkdir()
    store.open_store(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {store.MARKER, ".new-something", *others}


def test_temporary_names_are_never_the_same(tmp_path: Path) -> None:
    first, second = (store._temporary(tmp_path / "x-123") for _ in range(2))
    assert first != second
    _, host, pid, _ = first.name.rsplit("-", 3)
    assert (host, pid) == (store._host(), str(os.getpid()))


def test_errors_do_not_disturb(tmp_path: Path) -> None:
    store.open_store(tmp_path)
    folder, _ = entry(tmp_path)
    path = store.write_error(folder, "first")
    assert store.write_error(folder, "second \udcff") == path  # in its place
    assert path == tmp_path / "errors" / "x-123.txt"
    assert path.read_text() == "second \\udcff"
    assert [found.name for found in path.parent.iterdir()] == ["x-123.txt"]
    store.open_store(tmp_path)
    assert store.read_record(folder)["name"] == "x"


def test_two_may_make_a_store_at_once(tmp_path: Path) -> None:
    (tmp_path / ".sgdlimits.0a1b.new.json").write_text("")  # the other one is about to rename it
    store.open_store(tmp_path)
    assert json.loads((tmp_path / store.MARKER).read_text()) == {"format": 1}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}'])
def test_stores_of_other_versions_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / store.MARKER).write_text(text)
    with pytest.raises(ValueError, match=r"^out=.* is not allowed: its sgdlimits.json tells"):
        store.open_store(tmp_path)


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
        ("run.json", '{"format": 1, "files": {}, "name": "x"}'),
        ("run.json", '{"format": 1, "files": {}, "name": "x", "checksum": "0"}'),
        ("x.nc", None),
        ("x.nc", "other"),
    ],
)
def test_damage_is_seen(tmp_path: Path, name: str, text: str | None) -> None:
    folder, _ = entry(tmp_path)
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(store.CorruptEntryError, match=r"x-123 is damaged"):
        store.read_record(folder)


def test_a_changed_number_in_the_record_is_seen(tmp_path: Path) -> None:
    folder, _ = entry(tmp_path)
    path = folder / store.RECORD
    path.write_text(path.read_text().replace('"inf"', '"1.0"'))
    with pytest.raises(store.CorruptEntryError, match=r"damaged: run.json has changed"):
        store.read_record(folder)


def test_another_format_is_told(tmp_path: Path) -> None:
    folder, _ = entry(tmp_path)
    path = folder / store.RECORD
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(store.CorruptEntryError, match=r"its format is 2, not 1"):
        store.read_record(folder)


def test_plain_json() -> None:
    value = {"a": [1.0, float("nan")], 2: (True, None, "x")}
    assert json.dumps(store.plain(value), allow_nan=False)
    assert store.plain(value) == {"a": [1.0, "nan"], "2": [True, None, "x"]}

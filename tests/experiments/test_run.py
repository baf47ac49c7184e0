"""Running experiments: what is stored, what is skipped, what is reported."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import threadpoolctl  # type: ignore[import-untyped]

import sgdlimits as sl
from sgdlimits.experiments import Outcome, catalogue, execute, execute_all, get, names, plan, store
from sgdlimits.experiments.version import versions


def run(name: str, out: Path, *, force: bool = False, **texts: str) -> Outcome:
    return execute(plan(name, out, preset="tiny", texts=texts), force=force)


def test_a_new_file_is_a_new_experiment(fake: str) -> None:
    assert fake in names()


def test_a_file_has_one_experiment(fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(f"{catalogue.__name__}.{fake}")
    second = type("Second", (), {"experiment": None, "__module__": module.__name__})
    monkeypatch.setattr(module, "Second", second, raising=False)
    with pytest.raises(TypeError, match="has 2 classes under @experiment: it must have one"):
        get(fake)


def test_what_is_stored(fake: str, tmp_path: Path) -> None:
    outcome = run(fake, tmp_path, shift="0.01")
    assert outcome.error == ""
    assert outcome.record is not None
    found = {path.name for path in outcome.job.folder.iterdir()}
    assert found == {"numbers.nc", "picture.png", "picture.svg", "run.json"}
    assert outcome.record["parameters"] == {"size": 20, "shift": 0.01, "trouble": ""}
    assert outcome.record["warnings"] == ["one run diverged"]
    assert [check["status"] for check in outcome.record["checks"]] == ["passed", "erratum"]
    assert outcome.record["versions"]["sgdlimits"] == sl.__version__
    assert outcome.record["seconds"]["all"] >= outcome.record["seconds"]["compute"] >= 0
    data = sl.results.load(outcome.job.folder / "numbers.nc")
    assert data.x.shape == (20,)


def test_finished_runs_are_skipped(fake: str, tmp_path: Path) -> None:
    first = run(fake, tmp_path)
    again = run(fake, tmp_path)
    assert (first.computed, again.computed) == (True, False)
    assert again.record == first.record
    assert run(fake, tmp_path, force=True).computed
    other = run(fake, tmp_path, size="21")
    assert other.computed
    assert other.job.folder != first.job.folder
    assert plan(fake, tmp_path, preset="tiny", seed=1).folder != first.job.folder


def test_the_same_parameters_by_another_preset_are_the_same(fake: str, tmp_path: Path) -> None:
    tiny = plan(fake, tmp_path, preset="tiny", texts={"size": "50"})
    assert tiny.folder == plan(fake, tmp_path, preset="quick").folder


def test_changed_code_is_run_again(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan(fake, tmp_path)
    monkeypatch.setattr("sgdlimits.experiments.run.code_version", lambda name: "other")
    assert plan(fake, tmp_path).folder != first.folder


def test_errors_do_not_end_the_others(fake: str, tmp_path: Path) -> None:
    jobs = [
        plan(fake, tmp_path, preset="tiny", texts=texts) for texts in ({"trouble": "no luck"}, {})
    ]
    told: list[str] = []
    broken, good = execute_all(jobs, done=lambda outcome: told.append(outcome.error))
    assert told == [f"fake_numbers: RuntimeError: no luck (traceback: {broken.error_file})", ""]
    assert broken.record is None
    assert good.record is not None
    assert not broken.job.folder.exists()


@pytest.mark.parametrize("trouble", ["value", "no luck", "exit"])
def test_our_faults_are_told_with_a_traceback(fake: str, tmp_path: Path, trouble: str) -> None:
    outcome = run(fake, tmp_path, trouble=trouble)
    assert outcome.record is None
    assert not outcome.wrong_input
    assert outcome.error_file is not None
    assert outcome.error.endswith(f"(traceback: {outcome.error_file})")
    text = outcome.error_file.read_text()
    assert text.startswith("Traceback (most recent call last)")
    assert outcome.traceback in text
    assert "fake_numbers.py" in text
    assert f'"trouble": "{trouble}"' in text
    assert outcome.error_file.parent == tmp_path / "errors"


def test_wrong_input_is_no_fault_of_ours(fake: str, tmp_path: Path) -> None:
    outcome = run(fake, tmp_path, trouble="input")
    assert outcome.wrong_input
    assert outcome.error == "fake_numbers: size=3 is not allowed: size must be larger"
    assert "InputError" in outcome.traceback
    assert outcome.error_file is None
    assert not (tmp_path / "errors").exists()


def test_an_error_that_is_mended_is_forgotten(fake: str, tmp_path: Path) -> None:
    trouble = f"value:{tmp_path}-marker"
    first = run(fake, tmp_path, trouble=trouble)
    assert first.error_file is not None
    assert run(fake, tmp_path, trouble=trouble).record is not None
    assert not first.error_file.exists()


def test_errors_are_one_line_of_bounded_length(fake: str, tmp_path: Path) -> None:
    error = run(fake, tmp_path, trouble="no\nluck " + 1000 * "at all ").error
    assert error.startswith("fake_numbers: RuntimeError: no luck at all")
    assert "\n" not in error
    assert len(error) < 800


def test_a_traceback_that_cannot_be_written_is_told(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sgdlimits.experiments.store.write_error", full)
    outcome = run(fake, tmp_path, trouble="no luck")
    assert outcome.error.endswith("no luck (no traceback: No space left on device)")
    assert "RuntimeError" in outcome.traceback
    assert outcome.error_file is None


def test_a_full_disk_is_nobodys_fault(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store.open_store(tmp_path)
    monkeypatch.setattr("sgdlimits.results.save", full)
    outcome = run(fake, tmp_path)
    assert outcome.error == (
        f"fake_numbers: No space left on device: make room on the disk of {tmp_path}/; "
        "the same command goes on"
    )
    assert not outcome.wrong_input
    assert [path.name for path in tmp_path.iterdir()] == [store.MARKER]


def test_another_process_may_be_faster(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = store.add

    def late(folder: Path, fill: Callable[[Path], None], *, replace: bool) -> bool:
        assert add(folder, fill)  # of the other process
        before.append(store.read_record(folder))
        return add(folder, fill, replace=replace)

    before: list[dict[str, Any]] = []
    monkeypatch.setattr(store, "add", late)
    outcome = run(fake, tmp_path)
    assert outcome.error == ""
    assert not outcome.computed
    assert [outcome.record] == before


def test_code_that_changes_under_a_run_is_not_stored(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = plan(fake, tmp_path, preset="tiny")
    monkeypatch.setattr("sgdlimits.experiments.run.code_version", lambda name: "other")
    outcome = execute(job)
    assert "its source has changed since this run began" in outcome.error
    assert not job.folder.exists()


def test_other_libraries_are_another_result(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan(fake, tmp_path)
    found = versions()
    changed = {"jax": "0.0.1", "python": "2.7"}
    for name, version in changed.items():
        other = {**found, name: version}
        monkeypatch.setattr("sgdlimits.experiments.run.versions", lambda other=other: other)
        assert (plan(fake, tmp_path).folder != first.folder) == (name == "jax")


def test_a_folder_of_others_is_not_written_to(fake: str, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")
    outcome = run(fake, tmp_path)
    assert outcome.wrong_input
    assert "files that are not ours" in outcome.error
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_blas_has_one_thread(fake: str, tmp_path: Path) -> None:
    """With more of them, the last bits would depend on how many jobs share the cores."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        outcome = run(fake, tmp_path)
    assert sl.results.load(outcome.job.folder / "numbers.nc").attrs["blas"] == 1


def test_damage_is_told_and_not_repaired_unasked(fake: str, tmp_path: Path) -> None:
    outcome = run(fake, tmp_path)
    (outcome.job.folder / "run.json").write_text("{")
    again = run(fake, tmp_path)
    assert again.record is None
    assert "is damaged: run.json is not readable" in again.error
    assert run(fake, tmp_path, force=True).record is not None


def test_wrong_presets_are_named(fake: str, tmp_path: Path) -> None:
    with pytest.raises(sl.InputError, match="preset='huge' is not allowed"):
        plan(fake, tmp_path, preset="huge")


@pytest.mark.parametrize("seed", [-1, True, 2**63])
def test_wrong_seeds_are_named(fake: str, tmp_path: Path, seed: int) -> None:
    with pytest.raises(sl.InputError, match=f"seed={seed} is not allowed"):
        plan(fake, tmp_path, seed=seed)


def test_wrong_parameters_tell_their_experiment(fake: str, tmp_path: Path) -> None:
    with pytest.raises(sl.InputError, match=r"^fake_numbers: size=1 is not allowed"):
        plan(fake, tmp_path, texts={"size": "1"})


def test_what_takes_longest_begins_first(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fakes / "fake_others.py"
    path.write_text(path.read_text().replace("headline=True", "headline=True, cost=2.0"))
    begun: list[str] = []

    def run_all(run: Any, jobs: list[Any], **_: object) -> None:
        begun.extend(job.name for _, job in jobs)

    monkeypatch.setattr("sgdlimits.experiments.pool.run_all", run_all)
    jobs = [plan(name, tmp_path, preset="tiny") for name in ("fake_numbers", "fake_others")]
    with pytest.raises(KeyError):  # nobody has run them
        execute_all(jobs, workers=2)
    assert begun == ["fake_others", "fake_numbers"]

"""Running experiments: what is stored, what is skipped, what is reported."""

from pathlib import Path

import pytest

import sgdlimits as sl
from sgdlimits.experiments import Outcome, execute, execute_all, names, plan


def run(name: str, out: Path, *, force: bool = False, **texts: str) -> Outcome:
    return execute(plan(name, out, preset="tiny", texts=texts), force=force)


def test_a_new_file_is_a_new_experiment(fake: str) -> None:
    assert fake in names()


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
    assert told == ["fake_numbers: RuntimeError: no luck", ""]
    assert broken.record is None
    assert good.record is not None
    assert not broken.job.folder.exists()


def test_damage_is_told_and_not_repaired_unasked(fake: str, tmp_path: Path) -> None:
    outcome = run(fake, tmp_path)
    (outcome.job.folder / "run.json").write_text("{")
    again = run(fake, tmp_path)
    assert again.record is None
    assert "is damaged: run.json is not readable" in again.error
    assert run(fake, tmp_path, force=True).record is not None


def test_wrong_presets_are_named(fake: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="preset='huge' is not allowed"):
        plan(fake, tmp_path, preset="huge")

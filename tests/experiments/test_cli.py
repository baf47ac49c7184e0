"""The command line, as a user or a machine meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sgdlimits as sl
from sgdlimits.cli import app


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], terminal_width=200)


def test_version() -> None:
    assert call("--version").output.strip() == f"sgdlimits {sl.__version__}"


def test_list() -> None:
    found = json.loads(call("list", "--json").stdout)
    assert {row["name"] for row in found} == set(sl.experiments.names())
    assert all(list(row) == ["name", "paper", "figure", "claim"] for row in found)
    some = json.loads(call("list", "--paper", "AKLS23", "--json").stdout)
    assert {row["paper"] for row in some} == {"AKLS23"}
    assert "pca_overview" in call("list").stdout


def test_show(fake: str) -> None:
    said = call("show", fake).stdout
    for word in ("Fig. 0", "mean zero", "size", ">= 2", "how many", "1000"):
        assert word in said
    about = json.loads(call("show", fake, "--json").stdout)
    assert about["presets"]["tiny"]["size"] == 20


def test_run_and_skip(fake: str, tmp_path: Path) -> None:
    words = ["run", fake, "--preset", "tiny", "--out", tmp_path, "--seed", 3, "--set", "size=30"]
    result = call(*words)
    assert result.exit_code == 0
    assert "passed" in result.stdout
    assert "was there" in call(*words).stdout
    (found,) = json.loads(call(*words, "--json").stdout)
    assert found["parameters"]["size"] == 30
    assert (found["seed"], found["computed"]) == (3, False)
    assert Path(found["folder"]).is_dir()


def test_a_failed_check_is_code_1(fake: str, tmp_path: Path) -> None:
    result = call("run", fake, "--set", "shift=3", "--out", tmp_path)
    assert result.exit_code == 1
    assert "failed" in result.stdout


def test_a_broken_experiment_is_code_1(fake: str, tmp_path: Path) -> None:
    result = call("run", fake, "--set", "trouble=no luck", "--out", tmp_path)
    assert result.exit_code == 1
    assert result.stderr.strip() == "sgdlimits: fake_numbers: RuntimeError: no luck"


def test_report(fake: str, tmp_path: Path) -> None:
    result = call("report", fake, "--preset", "tiny", "--out", tmp_path / "deep" / "er")
    assert result.exit_code == 0
    page = tmp_path / "deep" / "er" / "report.html"
    assert str(page) in result.stdout
    assert "Normal numbers have mean zero" in page.read_text(encoding="utf-8")
    told = json.loads(
        call("report", fake, "--preset", "tiny", "--out", page.parent, "--json").stdout
    )
    assert told["page"] == str(page)
    assert [row["name"] for row in told["experiments"]] == [fake]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "fake_numbrs"], "'fake_numbrs' is no experiment: did you mean fake_numbers?"),
        (["show", "qqq"], "'qqq' is no experiment: `sgdlimits list` shows all"),
        (
            ["run", "fake_numbers", "--set", "sizes=3"],
            "sizes is not a parameter: size (int), shift",
        ),
        (["run", "fake_numbers", "--set", "size=x"], "size='x' is not allowed: size must be int"),
        (["run", "fake_numbers", "--set", "size"], "it must be key=value"),
        (["run", "fake_numbers", "--preset", "big"], "preset='big' is not allowed"),
        (["run", "fake_numbers", "--set", "trouble=value"], "fake_numbers: value is not allowed"),
        (["list", "--paper", "007"], "paper='007' is not allowed"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ",
)
def test_bad_usage_is_code_2(fake: str, tmp_path: Path, words: list[str], said: str) -> None:
    out = ["--out", tmp_path] if words[0] == "run" else []
    result = call(*words, *out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) <= 3


def test_foreign_folders_and_damage_are_code_2(fake: str, tmp_path: Path) -> None:
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("dear")
    result = call("run", fake, "--out", foreign)
    assert result.exit_code == 2
    assert "files that are not ours" in result.stderr

    ours = tmp_path / "results"
    (found,) = json.loads(call("run", fake, "--out", ours, "--json").stdout)
    (Path(found["folder"]) / "numbers.nc").write_text("")
    result = call("report", fake, "--out", ours)
    assert result.exit_code == 2
    assert "numbers.nc has changed" in result.stderr
    assert "numbers.nc has changed" in (ours / "report.html").read_text(encoding="utf-8")


def test_unknown_options_are_code_2() -> None:
    assert call("run", "pca_overview", "--sede", 3).exit_code == 2
    assert call("run").exit_code == 2

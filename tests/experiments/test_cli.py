"""The command line, as a user or a machine meets it."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import sgdlimits as sl
from sgdlimits.cli import app, printing
from sgdlimits.experiments import Job, Outcome
from sgdlimits.experiments.base import Check
from sgdlimits.experiments.papers import PAPERS


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], terminal_width=200)


def test_version() -> None:
    assert call("--version").output.strip() == f"sgdlimits {sl.__version__}"


def words(text: str) -> str:
    """Without the line breaks of a narrow terminal."""
    return " ".join(text.split())


def test_list(fake: str) -> None:
    found = json.loads(call("list", "--json").stdout)
    assert {row["name"] for row in found} == set(sl.experiments.names())
    assert all(list(row) == ["name", "paper", "figure", "claim"] for row in found)
    assert "pca_overview" in call("list").stdout


@pytest.mark.parametrize("key", ["BGJ22", "bgj22"])
def test_list_of_one_paper(fake: str, key: str) -> None:
    some = json.loads(call("list", "--paper", key, "--json").stdout)
    assert {row["paper"] for row in some} == {"BGJ22"}
    assert {"fake_numbers", "fake_others"} <= {row["name"] for row in some}
    said = words(call("list", "--paper", key).stdout)
    assert f"BGJ22: {PAPERS['BGJ22']}" in said
    assert PAPERS["AKLS23"] not in said


def test_help_cites_papers_by_their_keys() -> None:
    said = words(call("list", "--help").output)
    assert all(key in said for key in PAPERS)
    assert "000" not in said


def test_show(fake: str) -> None:
    said = call("show", fake).stdout
    for word in ("Fig. 0", "mean zero", "size", ">= 2", "how many", "1000", "BGJ22"):
        assert word in said
    assert f"BGJ22: {PAPERS['BGJ22']}" in words(said)
    about = json.loads(call("show", fake, "--json").stdout)
    assert about["presets"]["tiny"]["size"] == 20
    assert about["reference"] == PAPERS["BGJ22"]


def test_names_keep_their_ends(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    commands = (["show", fake], ["run", fake, "--preset", "tiny", "--out", tmp_path])
    assert all("…" not in call(*command).stdout for command in commands)


def test_names_are_whole_on_a_terminal_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("list").stdout
    assert all(f"\n{name}" in said for name in sl.experiments.names())
    check = Check("mean overlap with the other means", 0.25, -0.2312345, 0.000471, 0.5)
    outcomes = [
        Outcome(
            Job(name, "tiny", {}, 0, Path(name)),
            {"checks": [check.as_dict()], "seconds": {"all": 1}},
        )
        for name in ("spectrum_along_training", "tensor_diverging_snr")
    ]
    printing.print_checks(outcomes)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "spectrum_along_training"
    assert lines[1].split() == ["check", "expected", "measured", "tolerance", "verdict"]
    assert "-0.2312 ± 0.00047" in lines[2]
    assert max(map(len, lines)) <= 80
    second = lines.index("tensor_diverging_snr")
    assert lines[second + 1] == lines[2]  # columns at the same places


def test_errata_are_explained_with_what_is_printed(fake: str, tmp_path: Path) -> None:
    said = words(call("run", fake, "--preset", "tiny", "--out", tmp_path).stdout)
    assert "printed: 5" in said
    assert "erratum: the formula as the paper prints it" in said
    other = call("run", fake, "--set", "shift=5", "--preset", "tiny", "--out", tmp_path).stdout
    assert "erratum:" not in other  # nothing there is one


def test_text_in_brackets_is_shown(fakes: Path, tmp_path: Path) -> None:
    """Which Rich would take for a style."""
    path = fakes / "fake_numbers.py"
    source = path.read_text().replace("Normal numbers have", "Normal numbers in [bold] have")
    path.write_text(source.replace('mean("mean"', 'mean("M[mu]"').replace("Fig. 0", "[italic]"))
    for said in (call("show", "fake_numbers").stdout, call("list").stdout):
        assert "Normal numbers in [bold] have mean zero." in words(said)
        assert "[italic]" in said
    assert "M[mu]" in call("run", "fake_numbers", "--preset", "tiny", "--out", tmp_path).stdout


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


def test_without_a_terminal_there_is_a_line_for_each_that_is_finished(
    fake: str, tmp_path: Path
) -> None:
    command = ["run", fake, "fake_others", "--preset", "tiny", "--jobs", 1, "--out", tmp_path]
    lines = call(*command).stderr.splitlines()
    assert [line.rpartition(" (")[0] for line in lines] == [
        "1 of 2: fake_numbers, all checks passed",
        "2 of 2: fake_others, all checks passed",
    ]
    assert all(line.endswith(" s)") for line in lines)
    again = call(*command[:-2], "--set", "shift=3", "--out", tmp_path).stderr.splitlines()
    assert again[0].startswith("1 of 2: fake_numbers, a check failed (")
    assert "1 of 2: fake_numbers, all checks passed (was there)" in call(*command).stderr


def test_a_cache_that_cannot_be_written_is_one_line(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("SGDLIMITS_CACHE", str(tmp_path / "file" / "cache"))
    result = call("run", fake, "--preset", "tiny", "--out", tmp_path / "out")
    assert result.exit_code == 0
    first, second = result.stderr.splitlines()
    assert first.startswith("sgdlimits: compiled programs are not kept: ")
    assert second.startswith("1 of 1: ")


def test_a_failed_check_is_code_1(fake: str, tmp_path: Path) -> None:
    result = call("run", fake, "--set", "shift=3", "--out", tmp_path)
    assert result.exit_code == 1
    assert "failed" in result.stdout


def test_a_broken_experiment_is_code_1(fake: str, tmp_path: Path) -> None:
    result = call("run", fake, "--set", "trouble=no luck", "--out", tmp_path)
    assert result.exit_code == 1
    (file,) = (tmp_path / "errors").iterdir()
    assert result.stderr == (
        f"sgdlimits: fake_numbers: RuntimeError: no luck (traceback: {file})\n"
    )


def test_a_bare_value_error_is_a_fault_of_ours(fake: str, tmp_path: Path) -> None:
    command = ["run", fake, "--set", "trouble=value", "--out", tmp_path]
    result = call(*command)
    assert result.exit_code == 1
    (file,) = (tmp_path / "errors").iterdir()
    assert result.stderr == (
        f"sgdlimits: fake_numbers: ValueError: a fault of ours (traceback: {file})\n"
    )
    assert "Traceback" in file.read_text()
    assert "Traceback" in call(*command, "--traceback").stderr
    (told,) = json.loads(call(*command, "--json").stdout)
    assert told["error_file"] == str(file)
    assert told["wrong_input"] is False


def test_our_own_faults_are_code_1(
    fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the experiments: here the page cannot be written."""

    def broken(*_: object) -> None:
        raise ValueError("no page")

    monkeypatch.setattr("sgdlimits.report.write_page", broken)
    command = ["report", fake, "--preset", "tiny", "--out", tmp_path]
    result = call(*command)
    assert result.exit_code == 1
    file = tmp_path / "errors" / "sgdlimits-report.txt"
    assert result.stderr.splitlines()[1:] == [f"sgdlimits: ValueError: no page (traceback: {file})"]
    assert "in broken" in file.read_text()
    assert "in broken" in call(*command, "--traceback").stderr


def test_our_own_faults_without_a_store(fakes: Path, tmp_path: Path) -> None:
    (fakes / "fake_numbers.py").write_text("1 / 0")
    result = call("show", "fake_numbers")
    assert result.exit_code == 1
    assert result.stderr == (
        "sgdlimits: ZeroDivisionError: division by zero (--traceback shows where)\n"
    )
    assert "fake_numbers.py" in call("show", "fake_numbers", "--traceback").stderr
    (tmp_path / "thesis.tex").write_text("dear")
    result = call("run", "fake_numbers", "--out", tmp_path)  # not ours to write to
    assert result.exit_code == 1
    assert "--traceback shows where" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("words", [["list", "--json"], ["list"], ["--version"], ["run", "--help"]])
def test_standard_output_that_is_full(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "sgdlimits", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "sgdlimits: No space left on device: standard output\n"


def test_a_page_on_a_full_disk(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(outcomes: object, page: Path) -> None:
        raise OSError(28, "No space left on device", str(page))

    monkeypatch.setattr("sgdlimits.report.write_page", full)
    result = call("report", fake, "--preset", "tiny", "--out", tmp_path)
    assert result.exit_code == 1
    page = tmp_path / "report.html"
    assert result.stderr.splitlines()[-1] == f"sgdlimits: No space left on device: {page}"
    assert not (tmp_path / "errors").exists()


def test_ctrl_c_is_code_130(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sgdlimits.report.write_page", interrupted)
    result = call("report", fake, "--preset", "tiny", "--out", tmp_path)
    assert result.exit_code == 130
    assert result.stderr.endswith("sgdlimits: interrupted\n")

    def half(jobs: list[Job], *, done: Callable[[Outcome], None], **_: object) -> None:
        done(Outcome(jobs[0], record={"checks": []}))
        done(Outcome(jobs[1], error="broken"))  # which is not finished
        raise KeyboardInterrupt

    monkeypatch.setattr("sgdlimits.experiments.execute_all", half)
    result = call("run", fake, "fake_others", "pca_radius", "--preset", "tiny", "--out", tmp_path)
    assert result.exit_code == 130
    assert "interrupted: 1 of 3 experiments are finished" in result.stderr


def test_the_default_of_jobs(fake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def execute_all(jobs: object, *, workers: int, **_: object) -> list[object]:
        told.append(workers)
        return []

    monkeypatch.setattr("sgdlimits.experiments.execute_all", execute_all)
    monkeypatch.setenv("SGDLIMITS_THREADS", "5")
    assert call("run", fake, "--out", tmp_path).exit_code == 0
    assert call("run", fake, "--out", tmp_path, "--jobs", 3).exit_code == 0
    assert told == [5, 3]
    monkeypatch.setenv("SGDLIMITS_THREADS", "few")
    result = call("run", fake, "--out", tmp_path)
    assert result.exit_code == 2
    assert "SGDLIMITS_THREADS='few' is not allowed" in result.stderr


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


def test_report_of_what_is_there(fake: str, tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = ["report", "--existing", "--out", out]
    result = call(*command)
    assert result.exit_code == 2
    assert "there are no results in it" in result.stderr
    assert not out.exists()
    sl.experiments.open_store(out)
    assert "there are no finished runs in it" in call(*command).stderr
    call("run", fake, "fake_others", "--preset", "tiny", "--out", out, "--jobs", 1)
    call("run", fake, "--set", "size=30", "--seed", 7, "--out", out)
    told = json.loads(call(*command, "--json").stdout)["experiments"]
    assert [(row["name"], row["seed"]) for row in told] == [(fake, 7), ("fake_others", 0)]
    assert all(not row["computed"] for row in told)
    some = call(*command, "fake_others", "--json").stdout
    assert [row["name"] for row in json.loads(some)["experiments"]] == ["fake_others"]
    assert "of these experiments" in call(*command, "pca_radius").stderr
    assert "--force is not allowed" in call(*command, "--force").stderr
    (damaged,) = out.glob("fake_others-*")
    (damaged / "run.json").write_text("{")
    result = call(*command)
    assert result.exit_code == 2
    assert "run.json is not readable" in result.stderr
    assert "run.json is not readable" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "fake_numbrs"], "'fake_numbrs' is no experiment: did you mean fake_numbers"),
        (["show", "qqq"], "'qqq' is no experiment: `sgdlimits list` shows all"),
        (
            ["run", "fake_numbers", "--set", "sizes=3"],
            "sizes is not a parameter: size (int), shift",
        ),
        (["run", "fake_numbers", "--set", "size=x"], "size='x' is not allowed: size must be int"),
        (["run", "fake_numbers", "--set", "size"], "it must be key=value"),
        (["run", "fake_numbers", "--preset", "big"], "preset='big' is not allowed"),
        (["run", "fake_numbers", "--set", "size=3", "--set", "size=4"], "size is given twice"),
        (["run", "fake_numbers", "--set", "trouble=input"], "fake_numbers: size=3 is not allowed"),
        (["report", "fake_numbers", "--paper", "AKLS23"], "no experiment is left"),
        (["report", "fake_numbrs"], "'fake_numbrs' is no experiment"),
        (["list", "--paper", "007"], "paper='007' is not allowed"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ",
)
def test_bad_usage_is_code_2(fake: str, tmp_path: Path, words: list[str], said: str) -> None:
    out = ["--out", tmp_path] if words[0] in ("run", "report") else []
    result = call(*words, *out)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


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

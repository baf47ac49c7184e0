"""``sgdlimits predict escape``, as a user or a machine meets it."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner, Result

import sgdlimits as sl
from sgdlimits.cli import app
from tests.test_start import HEAVY, command, loaded


def call(*words: object) -> Result:
    command = ["predict", "escape", *map(str, words)]
    return CliRunner().invoke(app, command, terminal_width=200)


def test_numbers_for_machines_are_those_of_the_theory() -> None:
    found = json.loads(call("--dim", 3000, "--noise", 0.5, "--step", 0.05, "--json").stdout)
    retrieval = sl.theory.phase_retrieval
    options: Any = {"step": 0.05, "noise": 0.5, "unit": "samples"}
    for name in ("annealed", "quenched"):
        expected = float(retrieval.exit_time(3000, average=name, **options))
        assert found["samples"][name]["mean"] == pytest.approx(expected)
    law = retrieval.exit_law(3000, average="quenched", **options)
    assert found["samples"]["quenched"]["quantile_90"] == pytest.approx(law.quantile(0.9))
    assert found["fastest_step"] == pytest.approx(0.08)
    assert found["largest_step"] == pytest.approx(0.16)
    # ω = 4(1 − 6γ) − 2γΔ: 0.08·2/(0.05·2.75)
    assert found["gain_of_fastest_step"] == pytest.approx(0.16 / 0.1375)
    linear, whole = (found["samples"][name]["mean"] for name in ("diffusive", "nonlinear"))
    assert linear < whole < 1.05 * linear


def test_sgd_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    picture = tmp_path / "new" / "law.png"
    words = ["--dim", 300, "--noise", 0.5, "--step", 0.05, "--check", "--runs", 60]
    result = call(*words, "--out", picture)
    assert result.exit_code == 0
    assert "SGD agrees" in result.stdout
    assert "60 runs, mean ±" in result.stdout
    assert imread(picture).shape[2] == 4
    told = json.loads(call(*words, "--json").stdout)["check"]
    assert told["agrees"] is True
    assert told["runs"] == 60
    assert told["quantile_10"] < told["mean"] < told["quantile_90"]


def test_a_contradiction_is_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain at half of the dimension is not what was predicted."""
    whole = sl.first_passage

    def half(task: object, event: object, dim: int, *words: object, **options: object) -> object:
        passage = whole(task, event, dim, *words, **options)  # type: ignore[arg-type]
        return passage.assign(time=passage.time / 2)

    monkeypatch.setattr(sl, "first_passage", half)
    result = call("--dim", 300, "--noise", 0.5, "--step", 0.05, "--check", "--runs", 60)
    assert result.exit_code == 1
    assert "SGD does not agree" in result.stdout


def test_the_fastest_step_is_the_default() -> None:
    result = call("--dim", 1000)
    assert result.exit_code == 0
    assert "fastest step: 0.08333, which this is" in result.stdout


def test_steps_that_need_a_larger_dim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default is a step at which formulas hold; beyond it the output says what happens."""
    monkeypatch.setenv("COLUMNS", "200")
    told = json.loads(call("--dim", 1000, "--width", 2, "--json").stdout)
    assert told["step"] == told["reliable_step"] == told["fastest_step"]
    assert told["slowing"] < 0.03
    words = ["--dim", 100, "--width", 2]
    told = json.loads(call(*words, "--json").stdout)
    assert told["step"] == told["reliable_step"] < told["fastest_step"]
    assert told["slowing"] == pytest.approx(0.03)
    out = call(*words, "--step", 0.395).stdout
    assert "reliable step at dim 100" in out
    assert "is too large for dim 100" in out
    assert "are trapped for good" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dim", 3000, "--step", 0.2, "--noise", 0.5], "step=0.2 is not allowed"),
        (["--dim", 3000, "--threshold", 1.5], "threshold=1.5 is not allowed"),
        (["--dim", 3000, "--width", 0], "width=0 is not allowed"),
        (["--dim", 1], "dim=1 is not allowed"),
        (["--dim", 50, "--width", 5], "dim=50 is not allowed"),
        (["--dim", 3000, "--noise", -1], "noise=-1.0 is not allowed"),
        (["--dim", 3000, "--noise", "nan"], "noise=nan is not allowed"),
        (["--dim", 300, "--out", "law.gif"], "must end in .png, .pdf or .svg"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ",
)
def test_wrong_input_is_one_line_and_code_2(words: list[object], said: str) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_help_loads_nothing_that_computes() -> None:
    assert not loaded(command("predict", "escape", "--help")) & HEAVY
    assert "escape" in CliRunner().invoke(app, ["predict"]).output

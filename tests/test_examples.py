"""The example scripts run, and the assertions they end in hold."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_your_own_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "your_own_task.py"))
    assert "largest gap" in capsys.readouterr().out
    assert (tmp_path / "results" / "your_own_task.png").stat().st_size > 10_000

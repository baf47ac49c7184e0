"""The example scripts run, and the assertions they end in hold."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("your_own_task", "largest gap"),
        ("is_my_set_closed", "quiet, noisy) is closed"),
        ("pca_portrait", "stable at m"),
        ("digits_spectra", "gradient out start  9"),
        ("tensor_bifurcation", "order 4: fold at snr = [6.75, 6.75]"),
        ("differentiate_the_limit", "closed form 0.527046276695"),
    ],
)
def test_example(
    name: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert said in capsys.readouterr().out
    assert (tmp_path / "pictures" / f"{name}.png").stat().st_size > 10_000

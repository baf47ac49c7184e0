"""Every experiment of the catalogue: its description, and a tiny run with all its checks."""

import re
from pathlib import Path

import pytest
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text

import sgdlimits as sl
from sgdlimits.experiments import catalogue, execute, get, names, plan
from sgdlimits.report.page import PAPERS

NAMES = names()
CATALOGUE = Path(catalogue.__file__).parent
SHARED = {path.stem for path in CATALOGUE.glob("_*.py")}


@pytest.mark.parametrize("name", NAMES)
def test_description(name: str) -> None:
    experiment = get(name)
    assert experiment.paper in PAPERS
    assert experiment.figure
    assert 20 <= len(experiment.claim) <= 110
    assert experiment.claim.endswith(".")
    assert all(row["meaning"] for row in experiment.parameters.describe())
    for preset in ("tiny", "quick", "paper"):
        experiment.parameters(**experiment.preset(preset))


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is drawn and leaves its figure by more than a pixel, as it is drawn."""
    found: list[str] = []
    draw = Text.draw

    def watched(text: Text, renderer: RendererBase) -> None:
        draw(text, renderer)
        figure = text.get_figure(root=True)
        if figure is None or not text.get_visible() or not text.get_text().strip():
            return
        box, whole = text.get_window_extent(renderer), figure.bbox
        reach = (box.x0, box.y0, whole.x1 - box.x1, whole.y1 - box.y1)
        if min(reach) < -1:
            found.append(f"{text.get_text()!r} by {-min(reach):.0f} pixels")

    monkeypatch.setattr(Text, "draw", watched)
    return found


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No SVG: it is the same picture, drawn again."""
    save = sl.plot.save

    def only_png(figure: Figure, path: Path) -> None:
        if path.suffix == ".png":
            save(figure, path)

    monkeypatch.setattr(sl.plot, "save", only_png)


def test_text_that_leaves_a_figure_is_seen(outside: list[str], tmp_path: Path) -> None:
    figure, _ = sl.plot.panels(1, 1)
    figure.text(0.9, 0.5, "a long text at the right edge")
    figure.text(0.1, 0.5, "a short one")
    sl.plot.save(figure, tmp_path / "a.png")
    (told,) = set(outside)
    assert told.startswith("'a long text at the right edge' by ")


@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize("name", NAMES)
def test_tiny_run(name: str, tmp_path: Path, outside: list[str]) -> None:
    outcome = execute(plan(name, tmp_path, preset="tiny"))
    assert outcome.error == ""
    assert outcome.record is not None
    checks = outcome.record["checks"]
    assert checks
    assert [check["name"] for check in checks if check["status"] == "failed"] == []
    assert outside == []


@pytest.mark.parametrize("name", NAMES)
def test_what_experiments_share_is_in_files_of_its_own(name: str) -> None:
    """The checksum of an experiment has no other experiments: it must not depend on them."""
    source = (CATALOGUE / f"{name}.py").read_text()
    assert set(re.findall(r"experiments\.catalogue(?:\.| import )(\w+)", source)) <= SHARED


def test_the_story_is_told_by_few() -> None:
    assert 8 <= sum(get(name).headline for name in NAMES) <= 10

"""Every experiment of the catalogue: its description, and a tiny run with all its checks."""

import re
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", NAMES)
def test_tiny_run(name: str, tmp_path: Path) -> None:
    outcome = execute(plan(name, tmp_path, preset="tiny"))
    assert outcome.error == ""
    assert outcome.record is not None
    checks = outcome.record["checks"]
    assert checks
    assert [check["name"] for check in checks if check["status"] == "failed"] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_experiments_share_is_in_files_of_its_own(name: str) -> None:
    """The checksum of an experiment has no other experiments: it must not depend on them."""
    source = (CATALOGUE / f"{name}.py").read_text()
    assert set(re.findall(r"experiments\.catalogue(?:\.| import )(\w+)", source)) <= SHARED


def test_the_story_is_told_by_few() -> None:
    assert 8 <= sum(get(name).headline for name in NAMES) <= 10

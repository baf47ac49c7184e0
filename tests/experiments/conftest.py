"""A catalogue with two experiments more."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgdlimits.experiments import catalogue
from sgdlimits.experiments.version import code_version

SOURCE = Path(__file__).with_name("fake.py")
NAMES = ("fake_numbers", "fake_others")


@pytest.fixture
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with experiments that cost nothing: one new file each, and they are there."""
    folder = tmp_path_factory.mktemp("catalogue")
    for name in NAMES:
        (folder / f"{name}.py").write_text(SOURCE.read_text())
    catalogue.__path__.append(str(folder))
    code_version.cache_clear()  # another test may have had others of these names
    yield folder
    catalogue.__path__.remove(str(folder))
    for name in NAMES:
        sys.modules.pop(f"{catalogue.__name__}.{name}", None)


@pytest.fixture
def fake(fakes: Path) -> str:
    """The name of the first of them."""
    return NAMES[0]

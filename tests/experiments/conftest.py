"""A catalogue with one experiment more."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sgdlimits.experiments import catalogue

SOURCE = Path(__file__).with_name("fake.py")


@pytest.fixture
def fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an experiment that costs nothing: one new file, and it is there."""
    folder = tmp_path_factory.mktemp("catalogue")
    (folder / "fake_numbers.py").write_text(SOURCE.read_text())
    catalogue.__path__.append(str(folder))
    yield "fake_numbers"
    catalogue.__path__.remove(str(folder))
    sys.modules.pop(f"{catalogue.__name__}.fake_numbers", None)

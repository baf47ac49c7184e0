"""The checksum of the code: it changes with all that an experiment builds on, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sgdlimits.experiments import catalogue
from sgdlimits.experiments.version import _with_imported, code_version, library_version

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file of a catalogue of one's own, and return the version of the code of ``main``."""
    monkeypatch.setattr(catalogue, "__path__", [*catalogue.__path__, str(tmp_path)])

    def write(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source)
        return code_version.__wrapped__("main")

    return write


def test_an_experiment_outside_of_the_package_counts(write: Write) -> None:
    first = write("main", "X = 1")
    assert write("main", "X = 2") != first
    assert write("main", "X = 1") == first


@pytest.mark.parametrize(
    "line",
    [
        "from sgdlimits.experiments.catalogue.basis import X",
        "from sgdlimits.experiments.catalogue import basis",
        "import sgdlimits.experiments.catalogue.basis",
        "from .basis import X",
        "from . import basis",
        "def f():\n    from ..catalogue.basis import X",
    ],
)
def test_what_it_imports_of_the_catalogue_counts(write: Write, line: str) -> None:
    write("basis", "from .deep import Y")
    write("deep", "Y = 1")
    write("main", line)
    first = write("other", "")
    assert write("deep", "Y = 2") != first
    assert write("deep", "Y = 1") == first
    assert write("other", "Z = 2") == first


def test_circles_end(write: Write) -> None:
    write("basis", "from . import main")
    write("main", "from . import basis")
    assert _with_imported("main").keys() == {"main", "basis"}


def test_the_library_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ("tasks/xor.py", "cli/guard.py", "experiments/catalogue/pca.py", "experiments/run.py")
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.setattr("sgdlimits.experiments.version._ROOT", tmp_path)
    first = library_version.__wrapped__()
    changed = []
    for file in files:
        (tmp_path / file).write_text("X = 1")
        if library_version.__wrapped__() != first:
            changed.append(file)
        (tmp_path / file).write_text("")
    assert changed == ["tasks/xor.py", "experiments/run.py"]


def test_of_our_own_catalogue() -> None:
    assert _with_imported("retrieval_risk").keys() == {"retrieval_risk", "_retrieval"}
    assert len({code_version(name) for name in ("pca_radius", "pca_equator")}) == 2

"""The arrows of the rooms, read off the imports: what may know about what."""

from pathlib import Path

import pytest

from tests.imports import (
    ARROWS,
    MODULES,
    PACKAGE,
    PRIVATE,
    SOURCE,
    cycle,
    imports,
    is_package,
    module_graph,
    name_of,
    room_graph,
    room_of,
)

LONGEST = 400
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def file_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """The imports in ``source``, the text of ``module``, that no arrow allows."""
    room = room_of(module)
    if room is None:
        return [f"{module} is in no room"]
    allowed = ARROWS[room] | PRIVATE | {room}
    return [
        f"{module} imports {name}"
        for name in sorted(imports(source, module, is_package=is_package))
        if room_of(name) not in allowed
    ]


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p) != PACKAGE], ids=file_of)
def test_imports_follow_the_arrows(path: Path) -> None:
    assert violations(path.read_text(), name_of(path), is_package=is_package(path)) == []


def test_every_room_of_the_table_exists() -> None:
    assert {room_of(name_of(path)) for path in MODULES} == {"", *ARROWS}


@pytest.mark.parametrize(
    ("module", "source", "reported"),
    [
        ("sgdlimits.dynamics.flow.solve", "from sgdlimits.simulate import run", "simulate.run"),
        ("sgdlimits.dynamics.effective", "from sgdlimits import simulate", "simulate"),
        ("sgdlimits.dynamics.flow.solve", "from sgdlimits import effective_dynamics", "effective"),
        ("sgdlimits.dynamics.flow.solve", "from ...theory.xor import drift", "theory.xor.drift"),
        ("sgdlimits.dynamics.flow.solve", "from sgdlimits.dynamics import rest", "dynamics.rest"),
        ("sgdlimits.dynamics.model.base", "from ..flow import solve", "dynamics.flow.solve"),
        ("sgdlimits.dynamics.rest.sets", "from sgdlimits.dynamics import noise", "dynamics.noise"),
        ("sgdlimits.simulate.run", "def f():\n    import sgdlimits.dynamics", "dynamics"),
        ("sgdlimits.simulate.run", "import sgdlimits as sl", "imports sgdlimits"),
        ("sgdlimits.theory.xor", "from sgdlimits.tasks import XorMixture", "tasks.XorMixture"),
        ("sgdlimits.theory.xor", "if True:\n    from sgdlimits import results", "results"),
        ("sgdlimits.lectures.covariance", "from sgdlimits.theory import xor", "theory.xor"),
        ("sgdlimits.triples.levels", "from sgdlimits.dynamics import rest", "dynamics.rest"),
        ("sgdlimits.plot.plane", "from sgdlimits.gaussian import sobol", "gaussian.sobol"),
        ("sgdlimits.tasks.base", "from sgdlimits.gaussian import sobol", "gaussian.sobol"),
        ("sgdlimits.gaussian.erf", "from sgdlimits.tasks import Task", "tasks.Task"),
        ("sgdlimits.results", "from sgdlimits.plot import style", "plot.style"),
        ("sgdlimits._checks", "from sgdlimits.tasks.base import Task", "tasks.base.Task"),
    ],
)
def test_a_forbidden_import_is_reported(module: str, source: str, reported: str) -> None:
    (report,) = violations(source, module)
    assert report.startswith(module)
    assert reported in report


def test_allowed_imports_are_not_reported() -> None:
    source = """
import numpy as np
from sgdlimits import _checks, results
from sgdlimits._version import __version__
from sgdlimits.dynamics.flow import solve
from sgdlimits.tasks import Task
from . import roots
from .stability import FLAT
"""
    assert violations(source, "sgdlimits.dynamics.rest.search") == []
    inside = "from .effective import x\nfrom ..tasks import Task\nfrom . import flow"
    assert violations(inside, "sgdlimits.dynamics", is_package=True) == []


def test_no_module_imports_itself_in_a_circle() -> None:
    assert cycle(module_graph()) == []


def test_a_circle_is_reported() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}
    assert cycle(graph) == ["b", "d", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_graph_in_the_guide_is_the_one_of_the_code() -> None:
    """``python -m tests.imports`` prints it."""
    assert room_graph() in CONTRIBUTING.read_text()


@pytest.mark.parametrize("path", MODULES, ids=file_of)
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST

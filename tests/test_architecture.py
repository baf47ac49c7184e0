"""The arrows of DESIGN.md, read off the imports: what may know about what."""

import ast
from pathlib import Path

import pytest

PACKAGE = "sgdlimits"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400

# theory, dynamics and simulate never import one another: their agreement is our evidence.
ARROWS: dict[str, set[str]] = {
    "_checks": set(),
    "_cores": set(),
    "_disk": set(),
    "_precision": set(),
    "_progress": set(),
    "_types": set(),
    "_version": set(),
    "tasks": set(),
    "gaussian": set(),
    "results": set(),
    "theory": {"gaussian"},
    "dynamics": {"tasks", "gaussian", "results"},
    "simulate": {"tasks", "gaussian", "results"},
    # training is that of simulate; nothing of dynamics or theory is known here
    "spectra": {"tasks", "gaussian", "results", "simulate"},
    "plot": {"results"},
    # through the public library only: what an experiment can do, a user can
    "experiments": {"", "plot", "results"},
    "report": {"experiments", "results"},
    "cli": {"experiments", "report"},
}
PRIVATE = {room for room in ARROWS if room.startswith("_")}  # anyone may import them


def room_of(module: str) -> str:
    """``sgdlimits.tasks.base`` is in the room ``tasks``, ``sgdlimits`` in the room ``""``."""
    return [*module.split("."), ""][1]


def imports(source: str, module: str, *, is_package: bool) -> set[str]:
    """All modules and names of our package that ``source`` imports, with absolute names."""
    found = set()
    parents = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join(above + ([node.module] if node.module else []))
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == PACKAGE}


def violations(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """The imports in ``source``, the text of ``module``, that no arrow allows."""
    room = room_of(module)
    if room not in ARROWS:
        return [f"{module} is in no room of DESIGN.md"]
    allowed = ARROWS[room] | PRIVATE | {room}
    return [
        f"{module} imports {name}"
        for name in sorted(imports(source, module, is_package=is_package))
        if room_of(name) not in allowed
    ]


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", [p for p in MODULES if name_of(p) != PACKAGE], ids=name_of)
def test_imports_follow_the_arrows(path: Path) -> None:
    is_package = path.name == "__init__.py"
    assert violations(path.read_text(), name_of(path), is_package=is_package) == []


def test_every_room_of_the_table_exists() -> None:
    assert {room_of(name_of(path)) for path in MODULES} == {"", *ARROWS}


@pytest.mark.parametrize(
    ("module", "source", "reported"),
    [
        ("sgdlimits.dynamics.solve", "from sgdlimits.simulate import run", "simulate.run"),
        ("sgdlimits.dynamics.solve", "from sgdlimits import simulate", "simulate"),
        ("sgdlimits.dynamics.solve", "from sgdlimits import effective_dynamics", "effective"),
        ("sgdlimits.dynamics.solve", "from ..theory.xor import drift", "theory.xor.drift"),
        ("sgdlimits.simulate.run", "def f():\n    import sgdlimits.dynamics", "dynamics"),
        ("sgdlimits.simulate.run", "import sgdlimits as sl", "imports sgdlimits"),
        ("sgdlimits.theory.xor", "from sgdlimits.tasks import XorMixture", "tasks.XorMixture"),
        ("sgdlimits.theory.xor", "if True:\n    from sgdlimits import results", "results"),
        ("sgdlimits.plot.plane", "from sgdlimits.gaussian import sobol", "gaussian.sobol"),
        ("sgdlimits.tasks.base", "from sgdlimits.gaussian import sobol", "gaussian.sobol"),
        ("sgdlimits.gaussian.erf", "from sgdlimits.tasks import Task", "tasks.Task"),
        ("sgdlimits.results", "from sgdlimits.plot import style", "plot.style"),
        ("sgdlimits._checks", "from sgdlimits.tasks.base import Task", "tasks.base.Task"),
        ("sgdlimits.attic.old", "import numpy", "attic.old is in no room"),
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
from sgdlimits.gaussian.erf import erf_product
from sgdlimits.tasks import Task
from . import model
from .solve import solutions
"""
    assert violations(source, "sgdlimits.dynamics.effective") == []
    inside = "from .effective import x\nfrom ..tasks import Task"
    assert violations(inside, "sgdlimits.dynamics", is_package=True) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST

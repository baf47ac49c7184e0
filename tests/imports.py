"""Who imports whom: the source of the package read as text, by module and by room.

``python -m tests.imports`` prints the arrows between rooms as CONTRIBUTING.md shows them.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGE = "sgdlimits"
SOURCE = Path(__file__).parents[1] / "src" / PACKAGE
# a package whose names load when they are first used lists them in its stub
MODULES = sorted([*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")])

# What may know about what. A room is a folder or a file; a sub-room has its own row, and the row of
# its parent is for the files beside the sub-rooms. theory, dynamics and simulate never import one
# another: their agreement is our evidence.
ARROWS: dict[str, set[str]] = {
    "__main__": {"cli"},
    "_cache": set(),
    "_checks": set(),
    "_cores": set(),
    "_disk": set(),
    "_errors": set(),
    "_events": set(),
    "_moves": set(),
    "_names": set(),
    "_newton": set(),
    "_pieces": set(),
    "_compiled": set(),
    "_precision": set(),
    "_segments": set(),
    "_progress": set(),
    "_switches": set(),
    "_types": set(),
    "_version": set(),
    "_warn": set(),
    "gaussian": set(),
    "results": set(),
    "tasks": set(),
    "theory": {"gaussian"},
    "dynamics.model": {"gaussian", "tasks"},
    "dynamics.flow": {"dynamics.model", "results", "tasks"},
    "dynamics.noise": {"dynamics.flow", "dynamics.model", "tasks"},
    "dynamics.rest": {"dynamics.flow", "dynamics.model", "results", "tasks"},
    "dynamics.branches": {"dynamics.model", "dynamics.rest", "results", "tasks"},
    "dynamics.escape": {"dynamics.flow", "dynamics.model", "dynamics.rest", "tasks"},
    "dynamics.plane": {"dynamics.model", "results", "tasks"},
    "dynamics.measures": {"dynamics.model", "tasks"},
    "dynamics": {
        *("dynamics.model", "dynamics.flow", "dynamics.noise", "dynamics.rest"),
        *("dynamics.branches", "dynamics.escape", "dynamics.plane", "dynamics.measures", "tasks"),
    },
    "triples": {"results"},
    "simulate": {"gaussian", "results", "tasks"},
    # the one place above both: events of simulations that a limit knows
    "named_means": {"dynamics", "simulate", "tasks"},
    # nothing of dynamics or theory is known here; simulate is for training runs
    "spectra.effective": {"gaussian", "results", "spectra", "tasks"},
    "spectra.empirical": {"results", "simulate", "spectra", "tasks"},
    "spectra": {"results", "simulate", "spectra.effective", "spectra.empirical", "tasks"},
    # the real thing beside theory, of which it knows nothing
    "lectures": {"gaussian", "results"},
    "plot": {"results"},
    # through the public library only: what an experiment can do, a user can
    "experiments": {"", "plot", "results"},
    "report": {"experiments", "results"},
    "cli": {"", "experiments", "report"},
}
PRIVATE = {room for room in ARROWS if room.startswith("_")}  # anyone may import them


def name_of(path: Path) -> str:
    """``sgdlimits.tasks.base``; a package has the name of its folder."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if is_package(path) else parts)


def is_package(path: Path) -> bool:
    """Whether a file stands for its folder."""
    return path.stem == "__init__"


def room_of(name: str) -> str | None:
    """The room of a module or of a name in it; ``""`` is the package itself, None no room."""
    parts = name.split(".")[1:]
    for size in range(len(parts), 0, -1):
        if ".".join(parts[:size]) in ARROWS:
            return ".".join(parts[:size])
    known = {path.stem if path.suffix else path.name for path in SOURCE.iterdir()}
    return None if parts and parts[0] in known else ""  # names of the package itself


def imports(source: str, module: str, *, is_package: bool) -> set[str]:
    """All modules and names of our package that ``source`` imports, with absolute names."""
    names = set()
    parents = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = parents[: len(parents) - node.level + 1] if node.level else []
            base = ".".join(above + ([node.module] if node.module else []))
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == PACKAGE}


def imports_of(path: Path) -> set[str]:
    """What a file of the package imports from it."""
    return imports(path.read_text(), name_of(path), is_package=is_package(path))


def module_graph() -> dict[str, set[str]]:
    """For every module the modules that it imports by name."""
    modules = {name_of(path) for path in MODULES}

    def module(name: str) -> str:
        return name if name in modules else name.rpartition(".")[0]

    graph: dict[str, set[str]] = {name: set() for name in modules}
    for path in MODULES:
        graph[name_of(path)] |= {module(name) for name in imports_of(path)}
    return {name: others - {name} for name, others in graph.items()}


def cycle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Modules that import one another in a circle, the first again at the end; [] if none do."""
    state: dict[str, int] = {}
    trail: list[str] = []

    def visit(node: str) -> list[str]:
        state[node] = 1
        trail.append(node)
        for other in sorted(graph.get(node, ())):
            if state.get(other) == 1:
                return [*trail[trail.index(other) :], other]
            if other not in state and (circle := visit(other)):
                return circle
        state[node] = 2
        trail.pop()
        return []

    for node in sorted(graph):
        if node not in state and (circle := visit(node)):
            return circle
    return []


def room_graph() -> str:
    """The arrows between rooms as they are, one line per room."""
    arrows: dict[str, set[str]] = {room: set() for room in ARROWS if room not in PRIVATE}
    for path in MODULES:
        room = room_of(name_of(path))
        if room in arrows:
            arrows[room] |= {room_of(name) or PACKAGE for name in imports_of(path)}
    width = max(map(len, arrows))
    lines = [
        f"{room:<{width}} → {', '.join(sorted(others - PRIVATE - {room})) or '·'}"
        for room, others in arrows.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(room_graph())

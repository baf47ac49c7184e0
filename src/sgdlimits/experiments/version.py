"""Which code made a result: a checksum of all source files that it depends on."""

import ast
import functools
import hashlib
import importlib.util
import platform
from importlib import metadata
from pathlib import Path

from sgdlimits._version import __version__
from sgdlimits.experiments import catalogue

_ROOT = Path(__file__).parents[1]
_CATALOGUE = "experiments/catalogue/"
_NOT_COMPUTING = ("cli/", "report/", "experiments/papers.py")
_LIBRARIES = ("diffrax", "equinox", "jax", "jaxlib", "numpy", "scipy", "xarray")


@functools.cache
def library_version() -> str:
    """Checksum of the library without experiments: of what we import, if called soon after it."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        file = path.relative_to(_ROOT).as_posix()
        of_catalogue = file.startswith(_CATALOGUE) and path.name != "__init__.py"
        if not of_catalogue and not file.startswith(_NOT_COMPUTING):
            digest.update(file.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@functools.cache
def code_version(name: str) -> str:
    """Version and checksum of the library with one experiment, without those it does not import."""
    digest = hashlib.sha256(library_version().encode())
    for module, source in sorted(_with_imported(name).items()):
        digest.update(module.encode() + b"\0" + source + b"\0")
    return f"{__version__}+{digest.hexdigest()[:12]}"


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute."""
    found = {name: metadata.version(name) for name in _LIBRARIES}
    return {"sgdlimits": __version__, "python": platform.python_version()} | found


def _with_imported(name: str) -> dict[str, bytes]:
    """Sources by name of one module of the catalogue and of all others there that it builds on."""
    sources: dict[str, bytes] = {}
    wanted = {name}
    while wanted:
        module = wanted.pop()
        spec = importlib.util.find_spec(f"{catalogue.__name__}.{module}")
        if spec is None or spec.origin is None:  # an imported name that is no module
            continue
        sources[module] = Path(spec.origin).read_bytes()  # it need not be in our own folder
        wanted |= _imports(sources[module]) - sources.keys()
    return sources


def _imports(source: bytes) -> set[str]:
    """Names that a module of the catalogue imports from the catalogue; some may be no modules."""
    prefix = f"{catalogue.__name__}."
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(relative, catalogue.__name__)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return {name.removeprefix(prefix).split(".")[0] for name in names if name.startswith(prefix)}

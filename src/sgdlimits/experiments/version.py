"""Which code made a result: a checksum of all source files that it depends on."""

import functools
import hashlib
import platform
from importlib import metadata
from pathlib import Path

from sgdlimits._version import __version__

_ROOT = Path(__file__).parents[1]
_CATALOGUE = "experiments/catalogue/"
_NOT_COMPUTING = ("cli.py", "report/")
_LIBRARIES = ("diffrax", "equinox", "jax", "jaxlib", "numpy", "scipy", "xarray")


@functools.cache
def code_version(name: str) -> str:
    """Version and checksum of the library with one experiment, without the other experiments.

    Files of the catalogue named ``_…``, which several experiments share, belong to the library.
    """
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        file = path.relative_to(_ROOT).as_posix()
        other = file.startswith(_CATALOGUE) and path.stem[0] != "_" and path.stem != name
        if not other and not file.startswith(_NOT_COMPUTING):
            digest.update(file.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{__version__}+{digest.hexdigest()[:12]}"


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute."""
    own = {"sgdlimits": __version__, "python": platform.python_version()}
    return own | {name: metadata.version(name) for name in _LIBRARIES}

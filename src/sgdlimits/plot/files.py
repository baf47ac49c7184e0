"""Writing figures: whole or not at all, and the same bytes for the same figure."""

import os
from pathlib import Path

from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits.plot.style import figure_style
from sgdlimits.results import replacing

_SUFFIXES = (".png", ".svg")


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to ``path``, a ``.png`` or an ``.svg`` file.

    Missing folders are made. An existing picture is replaced once the new one is complete.
    """
    target = Path(path)
    if target.suffix not in _SUFFIXES:
        allowed = " or ".join(_SUFFIXES)
        raise _checks.InputError(f"path={str(path)!r} is not allowed: path must end in {allowed}")
    form = target.suffix.removeprefix(".")
    with replacing(target) as temporary, figure_style():
        # An SVG carries its date unless told otherwise.
        metadata = {"Date": None} if form == "svg" else None
        figure.savefig(temporary, format=form, metadata=metadata)

"""Writing figures: whole or not at all, and the same bytes for the same figure."""

import os
from pathlib import Path

from matplotlib.figure import Figure

from sgdlimits import _checks
from sgdlimits.plot.style import figure_style
from sgdlimits.results import replacing

# A file carries its date unless told otherwise; that of the program that wrote it stays.
_METADATA = {".png": None, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to ``path``, a ``.png``, ``.pdf`` or ``.svg`` file.

    Missing folders are made. An existing picture is replaced once the new one is complete.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _METADATA:
        *others, last = _METADATA
        allowed = f"{', '.join(others)} or {last}"
        raise _checks.InputError(f"path={str(path)!r} is not allowed: path must end in {allowed}")
    form, metadata = suffix.removeprefix("."), _METADATA[suffix]
    with replacing(target) as temporary, figure_style():
        figure.savefig(temporary, format=form, metadata=metadata)

"""Warnings that point at the caller's line, however deep inside they arise."""

import sys
import warnings

_OURS = ("sgdlimits.", "equinox.", "jax.", "jaxtyping.", "beartype.", "functools", "contextlib")


def warn(message: str) -> None:
    """Warn with the file and line of the innermost frame outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__')}.".startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=level)

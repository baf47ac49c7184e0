"""Laws of random starts other than the usual one, as draws that are changed afterwards."""

from typing import Any, NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric


class InitialLaw(NamedTuple):
    """What a caller asks of random states; None where the usual law is meant."""

    readout: Numeric | None = None
    scale: Number | None = None
    overlap: Numeric | None = None

    @property
    def usual(self) -> bool:
        """Whether nothing is asked for."""
        return all(value is None for value in self)

    def without(self, reasons: dict[str, str], task: str) -> None:
        """Raise InputError if something is asked for that says nothing on this task.

        Args:
            reasons: by word, why the task does not have it.
            task: its name.
        """
        for name, reason in reasons.items():
            value = getattr(self, name)
            if value is not None:
                shown = _checks.shown(value)
                raise _checks.InputError(f"{name}={shown} is not allowed: {task} {reason}")

    @property
    def variance(self) -> float:
        """What W ~ N(0, I/dim) has its variance multiplied by."""
        return 1.0 if self.scale is None else _checks.nonnegative("scale", self.scale)


def filled(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in an array of these dims, or one number in all places of it.

    >>> filled("overlap", 0.5, (1, 2)), filled("overlap", [[0.5, 0.0]], (1, 2))
    (array([[0.5, 0.5]]), array([[0.5, 0. ]]))
    """
    if np.ndim(value) == 0:
        return np.full(shape, _checks.array(name, value, ()))
    return _checks.array(name, value, shape)

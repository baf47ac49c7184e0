"""Sizes whose arrays no memory holds are refused before anything is drawn."""

import math

from sgdlimits import _checks

MOST = 2**32  # numbers in one array, 32 GiB


def affordable(**sizes: int) -> None:
    """Refuse an array of these sizes if it would be larger than ``MOST``.

    >>> affordable(samples=10**6, dim=10**3)
    """
    if math.prod(sizes.values()) > MOST:
        given = ", ".join(f"{name}={size}" for name, size in sizes.items())
        names = " × ".join(sizes)
        raise _checks.InputError(
            f"{given} is not allowed: {names} must be at most 2**32, what fits into memory"
        )

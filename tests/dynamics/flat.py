"""Flat statistics, independently of the library."""

import numpy as np

from sgdlimits._types import State


def flatten(parts: State) -> np.ndarray:
    """The order of the coordinates, written down once more."""
    flat = [parts[name].ravel() for name in parts if name != "R"]
    if "R" in parts:
        flat.append(parts["R"][np.triu_indices(len(parts["R"]))])
    return np.concatenate(flat)

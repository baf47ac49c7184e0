"""Times at which a solution is wanted, and small repairs of what a solver returns there."""

from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import State
from sgdlimits.tasks import MultiIndexFamily, Task


def repaired(task: Task, states: State) -> State:
    """Take away the solver's error where it leaves the states: R ≥ 0, rows on the sphere."""
    if not isinstance(task, MultiIndexFamily):
        return states
    states = states | {"R": _positive_semidefinite(states["R"])}
    if task.spherical:
        scale = 1 / np.sqrt(task.squared_norms(states["M"], states["R"]))[..., None]
        states["M"] = states["M"] * scale
        states["R"] = states["R"] * scale * np.swapaxes(scale, -1, -2)
    return states


def _positive_semidefinite(R: np.ndarray) -> np.ndarray:
    finite = np.all(np.isfinite(R), axis=(-2, -1))
    values, vectors = np.linalg.eigh(R[finite])
    clipped = (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    below = np.any(values < 0, axis=-1)[..., None, None]
    result = R.copy()
    result[finite] = np.where(below, clipped, R[finite])
    return result


def even_times(time: Any, points: Any) -> np.ndarray:
    """Equally spaced times from 0 to ``time``."""
    end = _checks.positive("time", time)
    return np.linspace(0, end, _checks.integer("points", points, least=2))


def given_times(times: Any) -> np.ndarray:
    """The times a caller gave, if they increase from 0."""
    grid = _checks.array("times", times, np.shape(times))
    if grid.ndim != 1 or len(grid) < 2 or grid[0] != 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"times={_checks.shown(grid)} is not allowed: times must increase from 0, two or more"
        )
    return grid

"""Walks along a connected set of rest points: towards another, or along all of a curve of them."""

import numpy as np

from sgdlimits.dynamics.model import Model
from sgdlimits.dynamics.rest.roots import are_roots, polish
from sgdlimits.dynamics.rest.stability import FLAT, linearisation, null_space

STRIDE, STEPS = 0.15, 60  # of a walk; statistics are of order one
ARRIVED = STRIDE / 2


def connected(
    model: Model, start: np.ndarray, goal: np.ndarray, *, arrived: float = ARRIVED
) -> bool:
    """Walk from one rest point towards another along the flat directions, staying at rest.

    Whether the walk comes as close to the goal as ``arrived``.
    """
    position = start
    for _ in range(STEPS):
        way = goal - position
        if np.linalg.norm(way) < arrived:
            return True
        flat = null_space(slope(model, position), FLAT)
        along = flat @ (flat.T @ way)
        length = float(np.linalg.norm(along))
        if length < 1e-3 * np.linalg.norm(way):
            return False
        moved = polish(model, (position + along * min(1.0, STRIDE / length))[None])
        if not are_roots(model, moved)[0]:
            return False
        position = moved[0]
    return False


def traced(model: Model, start: np.ndarray) -> np.ndarray:
    """Rest points all along the curve of them through ``start``, in both directions.

    A closed curve is walked until it comes back, another one until it ends.
    """
    found = [start]
    flat = null_space(slope(model, start), FLAT)
    if flat.shape[1] != 1:
        return start[None]
    for sense in (1.0, -1.0):
        position, way = start, sense * flat[:, 0]
        for _ in range(STEPS):
            moved = polish(model, (position + STRIDE * way)[None])
            step = moved[0] - position
            length = float(np.linalg.norm(step))
            if not are_roots(model, moved)[0] or length < STRIDE / 4 or step @ way < 0:
                break
            position, way = moved[0], step / length
            found.append(position)
            if len(found) > 3 and np.linalg.norm(position - start) < ARRIVED:
                return np.array(found)  # back at the start: the other sense finds the same
    return np.array(found)


def slope(model: Model, vector: np.ndarray) -> np.ndarray:
    """Jacobian of drift and constraint together."""
    _, jacobian, constraint = linearisation(model, vector)
    return np.concatenate([jacobian, constraint])

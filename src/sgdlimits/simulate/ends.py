"""The internal state at which runs end: what it takes to continue them bit for bit.

The statistics do not tell it. It goes with a Dataset as one text per run, the coordinate
``internal_state``: a coordinate, so that arithmetic with Datasets leaves it alone; a text, so that
no axis is added, and every file format holds it.
"""

import base64

import jax
import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import staged
from sgdlimits.simulate.base import Moving, Process

NAME = "internal_state"
MOST = 2**27  # bytes of all runs; beyond it, as in direct SGD with very many weights, none is kept

Ends = np.ndarray  # (runs, numbers): steps taken, the time, and all that a process carries


def ends_of(process: Process, moving: Moving, steps: int) -> Ends:
    """As rows of numbers, one per run, after so many steps."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(moving.carry)]
    if process.runs_last:
        leaves = [np.moveaxis(leaf, -1, 0) for leaf in leaves]
    when = np.broadcast_to([float(steps), float(moving.time)], (process.lanes, 2))
    return np.concatenate([when, *(leaf.reshape(process.lanes, -1) for leaf in leaves)], axis=1)


def moving_of(process: Process, like: Moving, ends: Ends) -> Moving:
    """The same, back; ``like`` is what the process carries in another state."""
    leaves, structure = jax.tree.flatten(like.carry)
    values, place = [], 2
    for leaf in leaves:
        shape = np.shape(leaf)
        inner = shape[:-1] if process.runs_last else shape[1:]
        size = int(np.prod(inner))
        part = ends[:, place : place + size].reshape(-1, *inner)
        values.append(staged(np.moveaxis(part, 0, -1) if process.runs_last else part))
        place += size
    return Moving(staged(ends[0, 1]), jax.tree.unflatten(structure, values))


def encoded(ends: Ends) -> np.ndarray:
    """As texts."""
    rows = np.ascontiguousarray(ends, dtype="<f8")
    return np.array([base64.b64encode(row.tobytes()).decode() for row in rows], dtype=object)


def decoded(texts: np.ndarray) -> Ends:
    """From texts."""
    try:
        rows = [np.frombuffer(base64.b64decode(str(text), validate=True), "<f8") for text in texts]
        return np.stack(rows)
    except ValueError as error:
        raise _checks.InputError(f"{NAME} of continue_from is not readable: {error}") from error

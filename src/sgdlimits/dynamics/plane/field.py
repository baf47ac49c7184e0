"""The drift on a grid in the plane of two statistics, the others held or slaved."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from sgdlimits import _checks, results
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Numbers, StateLike, Word
from sgdlimits.dynamics.model import Limit, Model, Table
from sgdlimits.dynamics.plane.others import Held, Slaved, hold, is_state, slave
from sgdlimits.tasks.base import Task

OTHERS = ("held", "slaved")
BATCH = 64  # points at a time


class Plane(NamedTuple):
    """Two statistics by their position among the flat coordinates, and a grid in their plane."""

    x: int
    y: int
    x_values: np.ndarray
    y_values: np.ndarray
    slaved: bool


@double_precision
def drift_in_plane(  # noqa: D417 - a method: self needs no word
    self: Limit,
    x: Word,
    y: Word,
    *,
    x_values: Numbers,
    y_values: Numbers,
    state: StateLike | None = None,
    others: Word = "held",
) -> xr.Dataset:
    r"""The drift (h_x, h_y) at every (x, y) of a grid, given the other statistics z.

        held:    z as in ``state``; on the sphere, moved as little as puts (x, y, z) on it
        slaved:  P h_z(x, y, z) = 0: where z comes to rest, starting at ``state``, if x and y are
                 kept still; P projects along the sphere, off it P = 1

    Held, the lines of this field are paths of the dynamics as far as z does not move, and
    ``others_speed`` says how fast it does; slaved, as far as z is much faster than x and y. Should
    z end at rest that repels it, ``others_growth`` is positive.

    Args:
        x: flat name of the statistic along the horizontal axis.
        y: flat name of the one along the vertical axis.
        x_values: increasing values of x.
        y_values: increasing values of y.
        state: from which the others are taken; may be left out where there are none.
        others: "held" or "slaved". Rest is searched with fewer quadrature nodes, for that takes a
            Jacobian at every step: ``others_speed`` says how far from rest z is with all nodes.

    Returns:
        A Dataset over ``y`` and ``x``: ``x_velocity``, ``y_velocity``, ``others_speed`` (largest
        component of P h_z), ``others_growth`` (if slaved: largest real part of an eigenvalue of
        the Jacobian of that motion) and the statistics at which the drift was taken. NaN where
        there is no such state (r2 < 0, R not positive semidefinite) or no rest was found.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> field = limit.drift_in_plane("m", "r2", x_values=[0.5, 1.0], y_values=[-1.0, 0.75])
    >>> field.x_velocity.values
    array([[nan, nan],
           [ 2.,  1.]])
    """
    self.check_constant_step("drift_in_plane")
    task, names = self.task, self.coordinates
    plane = _check_plane(names, x, y, x_values, y_values, others)
    reference = _reference(self.model, task, plane, state)
    points = np.stack(np.meshgrid(plane.x_values, plane.y_values), axis=-1).reshape(-1, 2)
    model, coarse = _models(self, plane, reference, points)
    held, growth = _everywhere(Table(model), Table(coarse), plane, reference, points)
    if not held.valid.any():
        raise _checks.InputError(
            f"x={names[plane.x]!r}, y={names[plane.y]!r} is not allowed here: with the others "
            f"{OTHERS[plane.slaved]} no point of x_values and y_values is a state"
        )
    arrays: dict[str, Any] = {
        "x_velocity": held.drift[:, plane.x],
        "y_velocity": held.drift[:, plane.y],
        "others_speed": held.speed,
    }
    if growth is not None:
        arrays["others_growth"] = growth
    dims: dict[str, tuple[str, ...]] = dict.fromkeys(arrays, ("y", "x"))
    arrays |= task.layout.unravel(held.vectors)
    dims |= {name: ("y", "x", *axes) for name, axes in task.layout.dims.items()}
    for name, values in arrays.items():
        masked = np.where(held.valid.reshape(-1, *[1] * (values.ndim - 1)), values, np.nan)
        arrays[name] = masked.reshape(len(plane.y_values), len(plane.x_values), *values.shape[1:])
    attrs = self.provenance | {
        "kind": "plane",
        "x": names[plane.x],
        "y": names[plane.y],
        "others": OTHERS[plane.slaved],
    }
    coords = {"x": plane.x_values, "y": plane.y_values} | task.layout.coords
    return results.build(arrays, dims, coords, attrs, **task.layout.kinds)


def _check_plane(
    names: list[str], x: Word, y: Word, x_values: Any, y_values: Any, others: Word
) -> Plane:
    """The plane, if two different statistics are named and the values along each increase."""
    i = names.index(_checks.choice("x", x, names))
    j = names.index(_checks.choice("y", y, [name for name in names if name != x]))
    grids = _increasing("x_values", x_values), _increasing("y_values", y_values)
    return Plane(i, j, *grids, slaved=_checks.choice("others", others, OTHERS) == "slaved")


def _models(
    limit: Limit, plane: Plane, reference: np.ndarray, points: np.ndarray
) -> tuple[Model, Model]:
    """Accurate in this plane, and cheaper for the search for rest."""
    vectors = np.tile(reference, (len(points), 1))
    vectors[:, [plane.x, plane.y]] = points
    table = Table(limit.model)
    nearest, valid = table.retract(vectors), is_state(table, vectors)
    states = nearest[valid] if valid.any() else nearest
    model, error = limit.suited(states, smooth=plane.slaved)
    limit.warn_if_poor(error, "in this plane")
    return model, limit.cheaper(states, "in this plane") if plane.slaved else model


def _everywhere(
    table: Table, coarse: Table, plane: Plane, reference: np.ndarray, points: np.ndarray
) -> tuple[Held, np.ndarray | None]:
    """All points, in batches of one size: one compilation then serves every grid and plane."""
    pair = [plane.x, plane.y]
    order = np.array(pair + _others(plane, len(reference)))
    parts: list[Held] = []
    growth: list[np.ndarray] = []
    with progress("points of the plane", len(points)) as advance:
        for first in range(0, len(points), BATCH):
            batch = points[first : first + BATCH]
            starts = np.tile(reference, (BATCH, 1))
            starts[:, pair] = batch[np.minimum(np.arange(BATCH), len(batch) - 1)]
            held = hold(table, order, starts)
            if plane.slaved:
                slaved = slave(coarse, order, held.vectors)
                held = hold(table, order, slaved.vectors)
                held = held._replace(valid=held.valid & slaved.arrived)
                growth.append(_growth(slaved)[: len(batch)])
            parts.append(Held(*(part[: len(batch)] for part in held)))
            advance(len(batch))
    joined = Held(*map(np.concatenate, zip(*parts, strict=True)))
    return joined, np.concatenate(growth) if growth else None


def _others(plane: Plane, count: int) -> list[int]:
    return [i for i in range(count) if i not in (plane.x, plane.y)]


def _reference(model: Model, task: Task, plane: Plane, state: StateLike | None) -> np.ndarray:
    """The flat reference state; checks that the constraint leaves both x and y free."""
    names = task.layout.coordinates
    others = _others(plane, len(names))
    if state is None and others:
        raise _checks.InputError(
            f"state=None is not allowed: state must be one of {type(task).__name__}, from which "
            f"{', '.join(names[i] for i in others)} are taken"
        )
    vector = np.zeros(len(names)) if state is None else model.ravel(task.check_state(state))
    vector = np.asarray(vector)
    slope = Table(model).constraint_jacobian(vector[None])[0][:, others]
    if len(slope) and (not others or np.linalg.matrix_rank(slope) < len(slope)):
        raise _checks.InputError(
            f"y={names[plane.y]!r} is not allowed with x={names[plane.x]!r}: at this state the "
            "sphere ties one to the other"
        )
    return vector


def _growth(slaved: Slaved) -> np.ndarray:
    slopes, arrived = slaved.slope, slaved.arrived
    growth = np.full(len(slopes), np.nan)
    if slopes.shape[-1]:
        growth[arrived] = np.linalg.eigvals(slopes[arrived]).real.max(axis=-1)
    return growth


def _increasing(name: str, values: Any) -> np.ndarray:
    grid = _checks.array(name, values, None)
    if grid.ndim != 1 or len(grid) == 0 or np.any(np.diff(grid) <= 0):
        raise _checks.InputError(
            f"{name}={_checks.shown(grid)} is not allowed: {name} must be increasing numbers"
        )
    return grid

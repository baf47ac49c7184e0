"""Zeros of the drift: damped Gauss–Newton from many starts."""

import numpy as np

from sgdlimits._newton import SHARES, least_norm
from sgdlimits.dynamics.model import Model, Table
from sgdlimits.dynamics.rest.stability import FLAT

RESIDUAL = 1e-9  # a root: every component of the drift is below this
STILL = 1e-11  # a step shorter than this was the last
SAME = 1e-3  # roots closer than this, relative to 1 + their size, are not new
STEPS = 128  # enough for the slow convergence to roots of high order
DUST = 1e-20  # what is smaller at a root is rounding
ROUND = 4  # steps after which they are looked at
PATIENCE = 3  # rounds in which the drift must have halved


def polish(model: Model, starts: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """Damped Gauss–Newton steps of least norm towards h = 0 from every start.

    Steps of least norm do not move along directions in which the drift is flat, so that a start
    near a ring of rest points ends on the ring, wherever it is closest. Those that come near a
    known root are left there. Each stays on the branch of the drift that it starts on.
    """
    origins = np.asarray(starts)
    if len(origins) == 0:
        return origins.copy()
    table = Table(model)
    signs = table.signs(origins) if table.slides else np.zeros((len(origins), 0))
    # a step along a ring may leave the states, where the drift means nothing
    vectors = np.array(table.onto_switches(table.retract(origins), signs == 0))
    values = _equations(table, vectors, signs)
    active = np.arange(len(origins))
    sizes = [_largest(values)]  # of the drift, every few steps
    for number in range(1, STEPS + 1):
        now = vectors[active], values[active], signs[active]
        moved, values[active] = _damped(table, *now, _steps(table, *now))
        last = _largest(moved - vectors[active])
        vectors[active] = moved
        going = last >= STILL
        if number % ROUND == 0:
            vectors[active] = table.onto_switches(table.retract(moved), signs[active] == 0)
            values[active] = _equations(table, vectors[active], signs[active])
            sizes.append(_largest(values))
            if len(sizes) > PATIENCE:
                going &= ~(sizes[-1] > 0.5 * sizes[-1 - PATIENCE])[active]
            if known is not None:
                going &= ~are_near(known, vectors[active], SAME)
        active = active[going]
        if len(active) == 0:
            break
    vectors[np.abs(vectors) < DUST] = 0.0
    return table.onto_switches(vectors, signs == 0)


def _equations(table: Table, vectors: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """What vanishes at a rest point: the drift, and what does at every state."""
    return np.concatenate([table.held(vectors, signs), table.constraint(vectors)], axis=1)


def _steps(table: Table, vectors: np.ndarray, values: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Full steps of least norm; none where the derivative is not finite."""
    slopes = table.held_jacobian(vectors, signs), table.constraint_jacobian(vectors)
    slope = np.nan_to_num(np.concatenate(slopes, axis=1), posinf=0.0, neginf=0.0)
    steps = np.zeros_like(vectors)
    for row in np.flatnonzero(np.all(np.isfinite(values), axis=1)):
        steps[row] = least_norm(slope[row], values[row])
    return steps


def _damped(
    table: Table, vectors: np.ndarray, values: np.ndarray, signs: np.ndarray, steps: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The steps where they halve the equations, else that part of them at which these are least."""
    best, at_best = vectors.copy(), values.copy()
    goal = np.linalg.norm(values, axis=1) / 2
    least = 2 * goal
    for number in range(SHARES):
        rows = np.flatnonzero(~(least <= goal))
        if len(rows) == 0:
            break
        tried = vectors[rows] + 0.25**number * steps[rows]
        there = _equations(table, tried, signs[rows])
        size = np.linalg.norm(there, axis=1)
        better = size < least[rows]  # not if it is nan
        chosen = rows[better]
        best[chosen], at_best[chosen] = tried[better], there[better]
        least[chosen] = size[better]
    return best, at_best


def _largest(values: np.ndarray) -> np.ndarray:
    return np.max(np.abs(values), axis=1, initial=0.0)


def are_near(known: np.ndarray, vectors: np.ndarray, apart: float) -> np.ndarray:
    """Which of the vectors are as close to a known one, relative to 1 + their size."""
    if len(known) == 0 or len(vectors) == 0:
        return np.zeros(len(vectors), dtype=bool)
    gaps = np.array([np.min(np.max(np.abs(known - vector), axis=1)) for vector in vectors])
    return gaps <= apart * (1 + np.max(np.abs(vectors), axis=1))


def are_roots(model: Model, vectors: np.ndarray) -> np.ndarray:
    """Whether the drift vanishes at each vector, and it is a state."""
    if len(vectors) == 0:
        return np.zeros(0, dtype=bool)
    table = Table(model)
    residuals = np.concatenate([table.drift(vectors), table.constraint(vectors)], axis=1)
    return (_largest(residuals) < RESIDUAL) & (table.margin(vectors) > -RESIDUAL)


def flat_dimensions(model: Model, vectors: np.ndarray) -> np.ndarray:
    """In how many directions the drift does not change to first order, at each vector."""
    table = Table(model)
    slopes = np.concatenate([table.jacobian(vectors), table.constraint_jacobian(vectors)], axis=1)
    return np.sum(np.linalg.svd(slopes, compute_uv=False) < FLAT, axis=1)

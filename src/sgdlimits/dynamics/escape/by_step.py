"""How fast a rest point is left as a function of the step, and which step takes fewest samples.

One sample at step c is c/dim of a unit of time, so that what grows at the rate ω(c) per unit of
time grows by cω(c)/dim with each sample. Where the corrector leaves the rest point in place, the
Jacobian is linear in c, and with one direction ω(c) = a − bc: the fastest step a/(2b) is half of
the largest one, a/b. Where the corrector moves it, it is followed.

Large steps may make other things grow, such as overlaps between neurons, that do not lead out:
rates are those of the directions that grow at small steps already.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from sgdlimits.dynamics.escape.growth import GROWS, Growth, growth
from sgdlimits.dynamics.model import Limit, Model, Table
from sgdlimits.dynamics.rest.roots import are_roots, polish
from sgdlimits.dynamics.rest.stability import null_space

FARTHEST = 1e4  # times the step: beyond it no step is too large
APART = 1.3  # ratio of steps from one to the next of which a rest point is followed
SMALLEST = 1e-4  # times the step: as good as none
EXACT = 1e-10
WITHIN = 0.5  # part of the square of an eigenvector that lies among the directions

Rate = Callable[[float], float]
Linearised = Callable[[float], tuple[np.ndarray, np.ndarray]]  # Jacobian and tangent at a step


def growth_by_step(limit: Limit, model: Model, vector: np.ndarray, allowed: float) -> Rate:
    """The growth rate as a function of the step; NaN where the rest point has ended.

    Args:
        limit: at its own step.
        model: of the limit, with an accurate Jacobian.
        vector: the rest point at that step.
        allowed: size of a drift that counts as none.
    """
    own = limit.step
    other = Table(limit.at_step_size(model, 2 * own)).drift(vector[None])
    if np.max(np.abs(other)) > allowed:
        linearised, smallest = _followed(limit, model, vector), own
    else:
        linearised, smallest = _in_place(limit, model, vector), SMALLEST * own
    step = smallest
    while len((found := growth(*linearised(step))).rates) == 0 and step > SMALLEST * own:
        step /= 2
    outwards, readings = found.directions, found.readings
    if smallest < own and outwards.shape[1] and _invariant(linearised(own)[0], found):
        ends = [readings @ linearised(step)[0] @ outwards for step in (own, 2 * own)]
        return lambda step: _fastest(ends[0] + (step / own - 1) * (ends[1] - ends[0]))

    def rate(step: float) -> float:
        jacobian, tangent = linearised(step)
        if not np.all(np.isfinite(jacobian)):
            return math.nan
        values, vectors = np.linalg.eig(tangent.T @ jacobian @ tangent)
        if outwards.shape[1] == 0:
            return float(values.real.max())
        parts = np.sum(np.abs(outwards.T @ tangent @ vectors) ** 2, axis=0)
        return float(values.real[parts >= min(WITHIN, parts.max())].max())

    return rate


def _fastest(matrix: np.ndarray) -> float:
    return float(np.linalg.eigvals(matrix).real.max())


def _invariant(jacobian: np.ndarray, found: Growth) -> bool:
    """Whether the growing directions at one step are such a set at another one too.

    Then they are so at every step, by linearity.
    """
    moved = jacobian @ found.directions
    apart = moved - found.directions @ (found.readings @ moved)
    return bool(np.max(np.abs(apart)) < GROWS * max(1.0, float(np.max(np.abs(moved)))))


def tangent_at(model: Model, vector: np.ndarray) -> np.ndarray:
    """Directions in which states lie, as orthonormal columns."""
    return null_space(Table(model).constraint_jacobian(vector[None])[0])


def _in_place(limit: Limit, model: Model, vector: np.ndarray) -> Linearised:
    """Of a rest point that does not move: linear in the step."""
    own, tangent = limit.step, tangent_at(model, vector)
    one, two = (
        Table(limit.at_step_size(model, step)).jacobian(vector[None])[0] for step in (own, 2 * own)
    )
    return lambda step: (one + (step / own - 1) * (two - one), tangent)


def _followed(limit: Limit, model: Model, vector: np.ndarray) -> Linearised:
    """Of one that does, from step to step; NaN where it ends."""
    known = {limit.step: vector}

    def linearised(step: float) -> tuple[np.ndarray, np.ndarray]:
        while step not in known:
            near = min(known, key=lambda c: abs(math.log(c / step)))
            now = near * min(max(step / near, 1 / APART), APART)
            now = step if math.isclose(now, step) else now
            found = polish(limit.at_step_size(model, now), known[near][None])
            if not are_roots(limit.at_step_size(model, now), found)[0]:
                return np.full((len(vector), len(vector)), math.nan), np.eye(len(vector))
            known[now] = found[0]
        at = limit.at_step_size(model, step)
        return Table(at).jacobian(known[step][None])[0], tangent_at(model, known[step])

    return linearised


def largest_step(rate: Rate, step: float) -> float | None:
    """The step at and beyond which nothing grows.

    ``math.inf`` if growth does not end, and None where no step makes anything grow, or the rest
    point ends first.
    """
    low = step
    while not rate(low) > 0:
        low /= 2
        if low < SMALLEST * step:
            return None
    high = low
    while rate(high) > 0:
        low, high = high, 2 * high
        if high > FARTHEST * step:
            return math.inf
    if math.isnan(rate(high)):
        return None
    return float(brentq(rate, low, high, xtol=EXACT * high, rtol=EXACT))


def fastest_step(rate: Rate, largest: float | None) -> float | None:
    """The step c at which cω(c) is largest; as ``largest_step`` where there is none."""
    if largest is None or math.isinf(largest):
        return largest
    best = minimize_scalar(
        lambda c: -c * rate(c),
        bounds=(0.0, largest),
        method="bounded",
        options={"xatol": EXACT * largest},
    )
    return float(best.x)

"""Which of the rules that a task allows is accurate enough at a state, at least cost."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Generic, TypeVar

import jax.numpy as jnp
import numpy as np

from sgdlimits.dynamics.model.accuracy import (
    TINY,
    Ruled,
    RuledModel,
    Survey,
    jacobian_errors,
    misses_bends,
    spread_error,
    surveys,
)
from sgdlimits.dynamics.model.base import Given, Rows
from sgdlimits.dynamics.model.blocks import pairs_needed
from sgdlimits.dynamics.model.quadrature import RANDOM
from sgdlimits.dynamics.model.sizes import MOST_NODES, Size, sizes, typical_error

USUAL = 1e-5  # who asks for less error than this is given more nodes
# larger rules of a kind are not tried beyond so many times the error wanted
HOPELESS = {"orthant": 300.0, "sparse": 1e3}
SLOW = 30.0  # the same for kinds that converge more slowly
SLOPES = 30.0  # a Jacobian may have so many times the error wanted of a drift
SOME = 3  # vectors at which it is looked at
TIME = {"orthant": 3.0, "lines": 10.0}  # of a node, that of a random one being 1
UNLIKELY = 5.0  # a rule that mostly has so many times the error wanted is not tried
WORTH = 1 / 3  # random nodes, which have no symmetry, must be better than others by this factor

R = TypeVar("R", bound=Ruled)
M = TypeVar("M", bound=RuledModel)


@dataclasses.dataclass
class _Tried(Generic[R]):
    """A model with one of the rules, and the error it has, as far as that is known."""

    model: R
    error: float
    met: bool = False  # whether its nodes are known to meet the bends of steep units

    @property
    def regular(self) -> bool:
        """Whether it has the symmetries of the task, which random nodes have not."""
        return self.model.smooth and self.model.size.kind not in RANDOM


def chosen(
    model: R, vectors: Rows, rtol: float, *, smooth: bool, most: int | None = None
) -> tuple[R, float]:
    """The first rule whose error is at most rtol at all vectors; else the best, at any cost.

    No rule takes more time than ``most`` random nodes for each component, if that is given. Where
    one rule of a family is far off, of the others only the largest is tried, at the end.
    """
    rows = [jnp.asarray(row) for row in np.asarray(vectors)]
    seen = surveys(model, rows)
    rules = allowed(model, seen, rtol, smooth=smooth, most=most)
    largest = {family(size): size for size in rules}
    tried: list[_Tried[R]] = []
    given_up = set()
    for number, size in enumerate([*rules, *largest.values()]):
        again = number >= len(rules)
        hopeless = typical_error(size) > UNLIKELY * rtol or family(size) in given_up
        if hopeless != again:
            continue
        rung = model.sized(size)
        error = max(relative_error(rung, row, one) for row, one in zip(rows, seen, strict=True))
        one = _Tried(rung, error)
        for smaller in tried:  # a rule that hardly changes to a smaller one may be far off with it
            if family(smaller.model.size) == family(size) and size.kind not in RANDOM:
                smaller.error = max(smaller.error, error)
        tried.append(one)
        if error <= rtol and (best := _best(tried, rows, seen)).error <= rtol:
            return best.model, best.error
        if one.error > HOPELESS.get(size.kind, SLOW) * rtol and size != largest[family(size)]:
            given_up.add(family(size))
    best = _best(tried, rows, seen)
    return best.model, best.error


def _best(tried: list[_Tried[R]], rows: Sequence[Given], seen: Sequence[Survey]) -> _Tried[R]:
    """The best of those whose nodes meet all bends, which is asked only of who would be the best.

    Whose nodes do not knows nothing: its error is that of knowing nothing, from then on.
    """
    while True:
        best = tried[0]
        for one in tried[1:]:
            if one.error < best.error * (WORTH if best.regular and not one.regular else 1.0):
                best = one
        if best.met or not any(
            misses_bends(best.model, row, one) for row, one in zip(rows, seen, strict=True)
        ):
            best.met = True
            return best
        best.error, best.met = max(best.error, 1.0), True


def family(size: Size) -> tuple[str, bool, int]:
    """Rules that differ in their orders only: kind, cuts around bends, number of pairs."""
    pairs = sum(isinstance(order, tuple) and len(order) == 3 for order in size.orders)
    return size.kind, size.bends, pairs


def relative_error(model: Ruled, vector: Given, seen: Survey) -> float:
    """The largest error relative to the terms that averages are made of; whatever it misses."""
    scale = float(seen.scale)
    error = float(np.max(spread_error(model, vector, seen))) / scale if scale > 0 else 0.0
    return error if error < math.inf else math.inf


def with_slopes(model: M, vectors: Rows, rtol: float) -> M:
    """The same, if its Jacobian is accurate too; else the first rule whose is, or the best.

    The drift may hardly depend on what its derivative hangs on: where the loss vanishes, the drift
    does by any rule. Only for smooth losses: at kinks more nodes mend little.
    """
    if not model.rule.kinks.smooth:
        return model
    some = np.unique(np.linspace(0, len(vectors) - 1, SOME).round().astype(int))
    few = [jnp.asarray(row) for row in np.asarray(vectors)[some]]

    def worst(rung: M) -> float:
        return max(slope_error(rung, vector) for vector in few)

    best, least = model, worst(model)
    if least <= SLOPES * rtol:
        return best
    for size in allowed(model, surveys(model, few), rtol, smooth=True):
        rung = model.sized(size)
        error = worst(rung)
        if error < least:
            best, least = rung, error
        if least <= SLOPES * rtol:
            break
    return best


def slope_error(model: RuledModel, vector: Given) -> float:
    """The largest error of the Jacobian relative to its largest entry."""
    jacobian, error = jacobian_errors(model, vector)
    return float(np.max(error) / max(np.max(np.abs(jacobian)), TINY))


def allowed(
    model: Ruled, seen: Sequence[Survey], rtol: float, *, smooth: bool, most: int | None = None
) -> list[Size]:
    """Rules for what the fields are like at some states."""
    dependence: dict[int, tuple[float, ...]] = {}
    if all(one.arranged for one in seen):
        for pairs in {pairs_needed(one.arranged[-1]) for one in seen}:
            left = [one.arranged[pairs].left for one in seen]
            dependence[pairs] = tuple(np.max(left, axis=0).tolist())
    rules = sizes(
        model.task,
        most or (MOST_NODES if rtol >= USUAL else 4 * MOST_NODES),
        smooth=smooth,
        reach=np.max([one.reach for one in seen], axis=0),
        bent=max(float(one.bent) for one in seen),
        dependence=dependence,
    )
    if most is None:
        return rules
    time = [size.nodes * TIME.get(size.kind, 1.0) for size in rules]
    return [size for size, t in zip(rules, time, strict=True) if t <= max(most, min(time))]

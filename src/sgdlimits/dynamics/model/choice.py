"""Which of the rules that a task allows is accurate enough at a state, at least cost."""

import math
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.dynamics.model.accuracy import TINY, Ruled, bent, jacobian_errors
from sgdlimits.dynamics.model.blocks import Arrangement, arrangement, pairs_needed
from sgdlimits.dynamics.model.kinks import field_count
from sgdlimits.dynamics.model.quadrature import RANDOM
from sgdlimits.dynamics.model.sizes import MOST_NODES, Size, sizes, typical_error, whole_fields

USUAL = 1e-5  # who asks for less error than this is given more nodes
# larger rules of a kind are not tried beyond so many times the error wanted
HOPELESS = {"orthant": 1e3, "sparse": 1e3}
SLOW = 30.0  # the same for kinds that converge more slowly
SLOPES = 30.0  # a Jacobian may have so many times the error wanted of a drift
SOME = 3  # vectors at which it is looked at
UNLIKELY = 10.0  # a rule that mostly has so many times the error wanted is not tried
WORTH = 1 / 3  # random nodes, which have no symmetry, must be better than others by this factor

R = TypeVar("R", bound=Ruled)


def chosen(model: R, vectors: Float[Array, "q n"], rtol: float, *, smooth: bool) -> tuple[R, float]:
    """The first rule whose error is at most rtol at all vectors; else the best, at any cost."""
    best, least, skipped = model, math.inf, ""
    rules = allowed(model, vectors, rtol, smooth=smooth)
    for number, size in enumerate(rules):
        last = [*(other.kind for other in rules[number + 1 :]), ""][0] != size.kind
        hopeless = typical_error(size) > UNLIKELY * rtol
        if (hopeless or size.kind == skipped) and not last:
            continue
        rung = model.sized(size)
        error = max(float(rung.errors(vector[None]).relative[0]) for vector in vectors)
        regular = rung.smooth and size.kind not in RANDOM
        if error < least * (1.0 if regular else WORTH):
            best, least = rung, error
        if least <= rtol:
            break
        skipped = size.kind if error > HOPELESS.get(size.kind, SLOW) * rtol else ""
    return best, least


def with_slopes(model: R, vectors: Float[Array, "q n"], rtol: float) -> R:
    """The same, if its Jacobian is accurate too; else the first rule whose is, or the best.

    The drift may hardly depend on what its derivative hangs on: where the loss vanishes, the drift
    does by any rule. Only for smooth losses: at kinks more nodes mend little.
    """
    if not model.rule.kinks.smooth:
        return model
    few = vectors[np.linspace(0, len(vectors) - 1, SOME).round().astype(int)]

    def worst(rung: R) -> float:
        return max(slope_error(rung, vector) for vector in few)

    best, least = model, worst(model)
    for size in allowed(model, few, rtol, smooth=True):
        if least <= SLOPES * rtol:
            break
        rung = model.sized(size)
        error = worst(rung)
        if error < least:
            best, least = rung, error
    return best


def slope_error(model: Ruled, vector: Float[Array, " n"]) -> float:
    """The largest error of the Jacobian relative to its largest entry."""
    largest = jnp.max(jnp.abs(_jacobian(model, vector)))
    return float(jnp.max(jacobian_errors(model, vector)) / jnp.maximum(largest, TINY))


_jacobian = eqx.filter_jit(lambda model, vector: model.jacobian(vector))


def allowed(model: Ruled, vectors: Float[Array, "q n"], rtol: float, *, smooth: bool) -> list[Size]:
    """Rules for what the fields are like at these vectors."""
    kinks, m = model.rule.kinks, field_count(model.task)
    whole = whole_fields(kinks, m)
    dependence: dict[int, tuple[float, ...]] = {}
    if len(whole) < m:
        paired = _arranged(model, vectors, (m - len(whole)) // 2, tuple(whole))
        for pairs in {pairs_needed(one) for one in paired}:
            arranged = _arranged(model, vectors, pairs, tuple(whole))
            dependence[pairs] = tuple(np.max([one.left for one in arranged], axis=0).tolist())
    return sizes(
        model.task,
        MOST_NODES if rtol >= USUAL else 4 * MOST_NODES,
        smooth=smooth,
        reach=np.max(np.asarray(_reach(model, vectors)), axis=0),
        bent=bent(model, vectors),
        dependence=dependence,
    )


def _arranged(
    model: Ruled, vectors: Float[Array, "q n"], pairs: int, whole: tuple[int, ...]
) -> list[Arrangement]:
    found = _arrangements(model, vectors, pairs, whole)
    return [jax.tree.map(lambda x, k=k: np.asarray(x[k]), found) for k in range(len(vectors))]


@eqx.filter_jit
def _arrangements(
    model: Ruled, vectors: Float[Array, "q n"], pairs: int, whole: tuple[int, ...]
) -> Arrangement:
    def at(vector: Float[Array, " n"]) -> Arrangement:
        return arrangement(model.frame(vector).factor, pairs, whole)

    return jax.vmap(at)(vectors)


@eqx.filter_jit
def _reach(model: Ruled, vectors: Float[Array, "q n"]) -> Float[Array, "q m"]:
    """How far the fields move along each direction of their frame."""
    return jax.vmap(lambda vector: jnp.linalg.norm(model.frame(vector).factor, axis=0))(vectors)

"""Which of the rules that a task allows is accurate enough at a state, at least cost."""

import math
from typing import Protocol, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.dynamics.model.base import Errors
from sgdlimits.dynamics.model.blocks import Arrangement, arrangement, pairs_needed
from sgdlimits.dynamics.model.frame import Frame
from sgdlimits.dynamics.model.kinks import field_count
from sgdlimits.dynamics.model.quadrature import (
    MOST_NODES,
    RANDOM,
    Quadrature,
    Size,
    sizes,
    typical_error,
    whole_fields,
)
from sgdlimits.tasks.multi_index import MultiIndexFamily

USUAL = 1e-5  # who asks for less error than this is given more nodes
HOPELESS = {"orthant": 1e3}  # times the error wanted: larger rules of this kind are not tried
SLOW = 30.0  # the same for kinds that converge more slowly
UNLIKELY = 10.0  # a rule that mostly has so many times the error wanted is not tried
WORTH = 1 / 3  # random nodes, which have no symmetry, must be better than others by this factor


class Ruled(Protocol):
    """A model whose expectations are by a rule that can be another one."""

    @property
    def task(self) -> MultiIndexFamily:
        """What is learned."""

    @property
    def rule(self) -> Quadrature:
        """That of the expectations."""

    @property
    def smooth(self) -> bool:
        """Whether the drift by this rule is."""

    def sized(self, size: Size) -> Self:
        """The same with another rule."""

    def errors(self, vectors: Float[Array, "q n"]) -> Errors:
        """Of the drift at some vectors."""

    def frame(self, vector: Float[Array, " n"]) -> Frame:
        """How the fields depend on independent normals."""

    def bent(self, vectors: Float[Array, "q n"]) -> float:
        """How far the arguments of saturating units move."""


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
        bent=model.bent(vectors),
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

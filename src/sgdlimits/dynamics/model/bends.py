"""Do the nodes of a rule meet the bends of steep units? If none does, all rules are wrong alike."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgdlimits._types import Index
from sgdlimits.dynamics.model.base import Vector
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.kinks import candidates
from sgdlimits.dynamics.model.quadrature import Quadrature
from sgdlimits.dynamics.model.samples import Samples
from sgdlimits.tasks.multi_index import MultiIndexFamily

BEND, FEWEST = 2.0, 3  # arguments below this are in the bend; nodes that must be there
NEVER = 1e-7  # a bend with less weight than this on one side is out of reach


class Bends(NamedTuple):
    """How steeply saturating units bend at a state."""

    deviation: Float[Array, "..."]  # largest standard deviation of an argument
    missed: Bool[Array, "..."]  # whether a bend is crossed, or left, with few nodes in it


class _Sums(NamedTuple):
    """Over nodes, of the arguments of saturating units."""

    weight: Float[Array, ""]
    first: Float[Array, " u"]
    second: Float[Array, " u"]
    above: Float[Array, " u"]  # weight of positive ones
    below: Float[Array, " u"]
    inside: Float[Array, " u"]  # number of nodes in the bend, on the positive side
    beyond: Float[Array, " u"]


class Averaged(Protocol):
    """A model whose expectations are sums over nodes."""

    @property
    def task(self) -> MultiIndexFamily:
        """What is learned."""

    @property
    def rule(self) -> Quadrature:
        """That of the expectations."""

    def unravel(self, vector: Vector) -> JaxState:
        """The state with this vector."""

    def frame(self, vector: Vector) -> Frame:
        """How the fields depend on independent normals."""

    def over_nodes(self, state: JaxState, frame: Frame, part: Callable[..., Any]) -> Any:
        """What ``part`` makes of all nodes of each component."""


def bends_at(model: Averaged, vector: Vector) -> Bends:
    """Those of all components, through the nodes of the rule; labels have no noise."""
    task, state = model.task, model.unravel(vector)
    chosen = jnp.array(model.rule.kinks.soft)
    readout = state["v"] if task.trained else jnp.zeros(task.width)

    def part(samples: Samples, c: Index) -> _Sums:
        known = task.labels is not None
        y = samples.fields if known else jnp.concatenate([samples.anchors, samples.fields])
        each = jax.vmap(candidates, (None, None, 1, None, None), 1)
        values = each(task, c, y, jnp.zeros(()), readout)[chosen]
        w, real = samples.weights, (samples.weights != 0).astype(float)
        sides = [(x > 0) for x in (values, -values)]
        return _Sums(
            jnp.sum(w),
            values @ w,
            values**2 @ w,
            *(side @ w for side in sides),
            *((side & (jnp.abs(values) < BEND)) @ real for side in sides),
        )

    sums = model.over_nodes(state, model.frame(vector), part)
    total = sums.weight[:, None]
    mean, square, above, below = (x / total for x in sums[1:5])
    few = (jnp.minimum(sums.inside, sums.beyond) < 1) | (sums.inside + sums.beyond < FEWEST)
    crossed = jnp.minimum(above, below) > NEVER
    # half a bend: an argument that rests at zero, as that of a ReLU unit, and leaves it
    one_sided = ~crossed & (above + below > NEVER) & (above + below < 1 - NEVER)
    missed = (crossed & few) | (one_sided & (sums.inside + sums.beyond < FEWEST))
    variance = jnp.max(square - mean**2)
    return Bends(jnp.sqrt(jnp.maximum(variance, 0.0)), jnp.any(missed))

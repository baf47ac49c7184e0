"""Do the nodes of a rule meet the bends of steep units? If none does, all rules are wrong alike."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgdlimits._types import Index
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.kinks import candidates
from sgdlimits.dynamics.model.quadrature import Quadrature
from sgdlimits.dynamics.model.samples import samples_of
from sgdlimits.tasks.multi_index import MultiIndexFamily

BEND, FEWEST = 2.0, 3  # arguments below this are in the bend; nodes that must be there
NEVER = 1e-7  # a bend with less weight than this on one side is out of reach


class Bends(NamedTuple):
    """How steeply saturating units bend at a state."""

    deviation: Float[Array, "..."]  # largest standard deviation of an argument
    missed: Bool[Array, "..."]  # whether a bend is crossed, or left, with few nodes in it


def bends_at(task: MultiIndexFamily, rule: Quadrature, frame: Frame, state: JaxState) -> Bends:
    """Those of all components, through the nodes of the rule; labels have no noise."""
    chosen = jnp.array(rule.kinks.soft)
    readout = state["v"] if task.trained else jnp.zeros(task.width)

    def one(c: Index) -> Bends:
        samples = samples_of(task, rule, frame, state, c, jnp.asarray(0))
        known = task.labels is not None
        y = samples.fields if known else jnp.concatenate([samples.anchors, samples.fields])
        each = jax.vmap(candidates, (None, None, 1, None, None), 1)
        values = each(task, c, y, jnp.zeros(()), readout)[chosen]
        weights = samples.weights / jnp.sum(samples.weights)
        centred = values - (values @ weights)[:, None]
        above, below = (jnp.sum(jnp.where(x > 0, weights, 0.0), 1) for x in (values, -values))
        inside, beyond = (jnp.sum((x > 0) & (x < BEND), axis=1) for x in (values, -values))
        few = (jnp.minimum(inside, beyond) < 1) | (inside + beyond < FEWEST)
        crossed = jnp.minimum(above, below) > NEVER
        # half a bend: an argument that rests at zero, as that of a ReLU unit, and leaves it
        one_sided = ~crossed & (above + below > NEVER) & (above + below < 1 - NEVER)
        missed = (crossed & few) | (one_sided & (inside + beyond < FEWEST))
        return Bends(jnp.sqrt(jnp.max(centred**2 @ weights)), jnp.any(missed))

    of_each = jax.lax.map(one, jnp.arange(len(task.weights)))
    return Bends(jnp.max(of_each.deviation), jnp.any(of_each.missed))

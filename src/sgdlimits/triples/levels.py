"""Level sets of the statistics: different parameters with the same u, at every dimension."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from sgdlimits._compiled import compiled
from sgdlimits._newton import damped, least_norm_step
from sgdlimits.triples.averages import derived
from sgdlimits.triples.enriched import enriched
from sgdlimits.triples.triple import Params, Triple, statistics_at
from sgdlimits.triples.visited import visited

CORRECTIONS = 40
REACHED = 1e-7  # how near, relative to 1 + |u|


class Level(NamedTuple):
    """Parameters at one dim, moved to target values of u that are the same at every dim."""

    dim: int
    states: Params  # along a leading axis: for each target, all states that were moved to it
    arrived: np.ndarray  # whether each of them reached its target: (targets, states)


def same_levels(
    triple: Triple,
    dims: Sequence[int],
    step: float,
    time: float,
    count: int,
    seed: int,
    *,
    targets: int | None = None,
    enrich: int = 0,
) -> Iterator[Level]:
    """At each dim, parameters that SGD visits, moved to the same values of u.

    The targets are the values of u of the first states at the first dim. With ``targets=None`` each
    state has its own, one target per state; else ``count`` states of their own are moved to each of
    so many targets, so that a level has many different parameters with the same u. With
    ``enrich`` > 0 they are varied inside their arrays first, by means of so many samples: see
    ``enriched``.
    """
    wanted = None
    for dim in dims:
        states = count * (targets or 1)
        pool = visited(triple, dim, step, time, states, seed, pure=targets or 0)
        if wanted is None:
            wanted = np.asarray(statistics_at(triple, dim, pool))[:targets]
        if enrich > 0:
            pool = enriched(triple, dim, pool, enrich, derived(seed, "enrich"))
        shape = (count, 1) if targets is None else (targets, count)
        goals = np.repeat(wanted, states // len(wanted), axis=0)
        moved, arrived = onto_level(triple, dim, pool, jnp.asarray(goals))
        yield Level(dim, moved, np.asarray(arrived).reshape(shape))


@compiled
def onto_level(
    triple: Triple, dim: int, states: Params, targets: Float[Array, "states k"]
) -> tuple[Params, Bool[Array, " states"]]:
    r"""Each state (along a leading axis) moved to u(x) = its target, and which have arrived.

    Damped Newton steps along the gradients of the statistics, x ← x − Jᵀ(JJᵀ)⁻¹(u(x) − u*), which
    is the shortest way and leaves all other directions alone. J is k × p and JJᵀ k × k, p the
    number of parameters. A state that does not arrive is given back as it was.
    """
    unravel = ravel_pytree(jax.tree.map(lambda x: x[0], states))[1]

    def statistics(x: Float[Array, " p"]) -> Float[Array, " k"]:
        return triple.statistics(unravel(x), dim)

    def move(params: Params, target: Float[Array, " k"]) -> tuple[Params, Array]:
        def gap(x: Float[Array, " p"]) -> Float[Array, " k"]:
            return statistics(x) - target

        def newton(x: Array, _: None) -> tuple[Array, None]:
            value, pull = jax.vjp(gap, x)
            slope = jax.vmap(pull)(jnp.eye(len(value)))[0]
            return damped(gap, x, least_norm_step(slope, value)), None

        start = ravel_pytree(params)[0]
        x, _ = jax.lax.scan(newton, start, None, length=CORRECTIONS)
        distance = jnp.max(jnp.abs(statistics(x) - target) / (1 + jnp.abs(target)))
        arrived = (distance < REACHED) & jnp.all(jnp.isfinite(x))
        return unravel(jnp.where(arrived, x, start)), arrived

    return jax.vmap(move)(states, targets)

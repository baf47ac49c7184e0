"""What is observed of rows of coordinates, and of a velocity whose momentum is slow."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits.simulate.kernel import products_of_rows
from sgdlimits.simulate.rows import Block, Carry
from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic
from sgdlimits.tasks.with_velocity import WithVelocity


def velocity_statistics(task: MultiIndexFamily) -> tuple[Statistic, ...]:
    """What is observed of a slow velocity U, besides the statistics of the weights.

    >>> import sgdlimits as sl
    >>> [statistic.name for statistic in velocity_statistics(sl.tasks.PhaseRetrieval())]
    ['velocity_M', 'velocity_R', 'cross_R']
    """
    own = len(task.layout.statistics)
    return WithVelocity(task, friction=1.0).layout.statistics[own:]


def observed(
    carry: Carry, root: Float[Array, "r r"], *, slow: bool
) -> dict[str, Float[Array, "runs ..."]]:
    """The statistics v, M and R, and the overlaps of a slow velocity; anchors are L = ``root``."""
    r, (v, W) = len(root), carry.weights
    state = {} if v is None else {"v": v.T}
    state |= {"M": _overlaps(W[:, :r], root), "R": products_of_rows(W[:, r:], W[:, r:])}
    if carry.velocity is not None and slow:
        u, U = carry.velocity
        state |= {} if u is None else {"velocity_v": u.T}
        state["velocity_M"] = _overlaps(U[:, :r], root)
        state["velocity_R"] = products_of_rows(U[:, r:], U[:, r:])
        state["cross_R"] = products_of_rows(W[:, r:], U[:, r:])
    return state


def _overlaps(M: Block, root: Float[Array, "r r"]) -> Float[Array, "runs K r"]:
    """With the anchors, from those with orthonormal ones."""
    # no products of matrices here: these do not compile into a loop of short steps
    return jnp.moveaxis(jnp.sum(M[:, None] * root[None, :, :, None], axis=2), -1, 0)

"""Expectations of functions with kinks on the coordinate planes, as accurate as of smooth ones."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits.gaussian.truncated import REACH, truncated


class Whole(NamedTuple):
    """A variable without kinks: nodes and weights for a standard normal."""

    line: Float[Array, "2 n"]


class Split(NamedTuple):
    """A variable with a kink at zero: a ``truncated_table`` for either side of it."""

    table: Float[Array, "2 c 4 n"]


class Pair(NamedTuple):
    """Two nearly dependent variables, both with kinks at zero.

    ``along`` and ``across`` are tables for their principal directions; ``between`` is a rule on
    [0, 1] for the piece between the two kinks on a line along the first of them.
    """

    across: Float[Array, "2 c 4 n"]
    along: Float[Array, "2 c 4 n"]
    between: Float[Array, "2 n"]


Block = Whole | Split | Pair
Nodes = tuple[Float[Array, "b q n"], Float[Array, "q n"]]


def orthant_nodes(
    mean: Float[Array, " dim"], factor: Float[Array, "dim dim"], blocks: Sequence[Block]
) -> tuple[Float[Array, "dim q"], Float[Array, "dim q"], Float[Array, " q"]]:
    r"""Nodes for x = mean + Lη, η ~ N(0, I), that respect the planes x_i = 0.

    One block of variables after the other is integrated given those before it. A variable is split
    at zero, with a Gauss rule for the truncated normal law on either side. Two nearly dependent
    variables would need many nodes where the first one is nearly zero and decides the sign of the
    second: their plane is integrated along lines of its long direction, cut where either of them is
    zero, and across from the line where both are. Nodes and weights are smooth in mean and L.

    Args:
        mean: of x.
        factor: lower triangular L with positive diagonal.
        blocks: rules for the variables in order, two for a ``Pair``.

    Returns:
        x, η and weights of all nodes.

    >>> import jax
    >>> from sgdlimits.gaussian import truncated_table
    >>> with jax.enable_x64(True):
    ...     split = Split(jnp.asarray(truncated_table(4)))
    ...     x, eta, weights = orthant_nodes(jnp.array([0.3]), jnp.array([[1.0]]), [split])
    ...     mean = float(weights @ jnp.maximum(x[0], 0.0))
    >>> round(mean, 8)  # 0.3 Φ(0.3) + φ(0.3)
    0.56676124
    """
    eta, total = jnp.zeros((0, 1)), jnp.ones(1)
    for block in blocks:
        i = len(eta)
        rows = slice(i, i + (2 if isinstance(block, Pair) else 1))
        center = mean[rows, None] + factor[rows, :i] @ eta
        new, weights = _of_block(block, center, factor[rows, rows])
        before = jnp.broadcast_to(eta[..., None], (i, *weights.shape))
        eta = jnp.concatenate([before, new]).reshape(-1, weights.size)
        total = (total[:, None] * weights).ravel()
    return mean[:, None] + factor @ eta, eta, total


def _of_block(block: Block, center: Float[Array, "b q"], factor: Float[Array, "b b"]) -> Nodes:
    """η of each variable of a block, and weights, along a new last axis."""
    if isinstance(block, Whole):
        shape = (center.shape[1], block.line.shape[1])
        nodes, weights = (jnp.broadcast_to(part, shape) for part in block.line)
        return nodes[None], weights
    if isinstance(block, Split):
        cut = -center[0] / factor[0, 0]
        nodes, weights = _outside(cut, cut, block.table)
        return nodes[None], weights
    return _of_pair(block, center, factor)


def _outside(
    low: Float[Array, "*batch"], high: Float[Array, "*batch"], table: Float[Array, "2 c 4 n"]
) -> tuple[Float[Array, "*batch k"], Float[Array, "*batch k"]]:
    """A standard normal variable above one cut and below another."""
    above, above_weights = truncated(high, table)
    below, below_weights = truncated(-low, table)
    weights = jnp.concatenate([above_weights, below_weights], axis=-1)
    return jnp.concatenate([above, -below], axis=-1), weights


def _of_pair(block: Pair, center: Float[Array, "2 q"], factor: Float[Array, "2 2"]) -> Nodes:
    r"""Variables x_i/σ_i of correlation ρ > 0 are m₀ + αt + βe and m₁ + αt − βe.

    With α² = (1 + ρ)/2, β² = (1 − ρ)/2 and independent t and e. Where ρ < 0 the second one is
    mirrored. Both are zero at e = (m₁ − m₀)/2β.
    """
    second = jnp.sqrt(factor[1, 0] ** 2 + factor[1, 1] ** 2)
    sign = jnp.where(factor[1, 0] < 0, -1.0, 1.0)
    alpha = jnp.sqrt((1 + jnp.abs(factor[1, 0]) / second) / 2)
    beta = factor[1, 1] / second / (2 * alpha)
    first, other = center[0] / factor[0, 0], sign * center[1] / second
    both = (other - first) / (2 * beta)
    e, e_weights = _outside(both, both, block.across)
    cuts = -(first[..., None] + beta * e) / alpha, -(other[..., None] - beta * e) / alpha
    low, high = jnp.minimum(*cuts), jnp.maximum(*cuts)
    outside, outside_weights = _outside(low, high, block.along)
    between, between_weights = _between(low, high, block.between)
    t = jnp.concatenate([outside, between], axis=-1)
    weights = e_weights[..., None] * jnp.concatenate([outside_weights, between_weights], axis=-1)
    e = e[..., None]
    eta = jnp.stack([alpha * t + beta * e, sign * (beta * t - alpha * e)])
    return eta.reshape(*center.shape, -1), weights.reshape(center.shape[1], -1)


def _between(
    low: Float[Array, "*batch"], high: Float[Array, "*batch"], line: Float[Array, "2 n"]
) -> tuple[Float[Array, "*batch n"], Float[Array, "*batch n"]]:
    """A standard normal variable between two cuts."""
    low, high = jnp.clip(low, -REACH, REACH), jnp.clip(high, -REACH, REACH)
    length = (high - low)[..., None]
    t = low[..., None] + length * line[0]
    return t, length * line[1] * jnp.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)

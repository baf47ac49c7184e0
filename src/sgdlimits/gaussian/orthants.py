"""Expectations of functions with kinks on the coordinate planes, as accurate as of smooth ones."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits._compiled import entry
from sgdlimits._types import Index
from sgdlimits.gaussian.lines import legendre, padded
from sgdlimits.gaussian.quadrature import hermite_line
from sgdlimits.gaussian.truncated import (
    REACH,
    chosen_node,
    column_of,
    truncated,
    truncated_table,
    truncated_tables,
)

TABULATED = (5, 13, 40)  # highest orders in tables, which take a while to make


class Whole(NamedTuple):
    """A variable without kinks, by a Gauss rule of this order."""

    order: int


class Split(NamedTuple):
    """A variable with a kink at zero, by a Gauss rule of this order on either side of it."""

    order: int


class Pair(NamedTuple):
    """Two nearly dependent variables, both with kinks at zero.

    ``across`` and ``along`` are orders for their principal directions, ``between`` that of the
    piece between the two kinks on a line along the first of them.
    """

    across: int
    along: int
    between: int


Block = Whole | Split | Pair


class Choices(NamedTuple):
    """Which node each variable takes: all of them but the last, and nodes in blocks.

    Attributes:
        column: of the table of all truncated rules.
        side: +1 above the cut, −1 below it; 0 between two cuts, or where there is none.
        place: of the node between two cuts, from 0 to 1, or where there is no cut.
        share: its weight.
        weights: 1; 0 for nodes that only fill the last block.
    """

    column: Int[Array | np.ndarray, "blocks v p"]
    side: Float[Array | np.ndarray, "blocks v p"]
    place: Float[Array | np.ndarray, "blocks v p"]
    share: Float[Array | np.ndarray, "blocks v p"]
    weights: Float[Array | np.ndarray, "blocks p"]


class OrthantRule(eqx.Module):
    """A product of rules for one variable after the other, given those before it.

    Which node every variable takes is data: one program serves rules of many orders. Only for the
    last variable, where most of the work is, orders are shapes.

    Attributes:
        kinds: of the blocks of variables in order.
        choices: nodes of all variables but the last.
        last: truncated rules for the last variable; None if it has no kink.
        line: its rule without a kink, or between those of a pair.
        table: ``truncated_tables``; None where somebody else has it.
    """

    kinds: tuple[type[Block], ...] = eqx.field(static=True)
    choices: Choices
    last: Any  # (2, cells, 4, n)
    line: Any  # (2, n)
    table: Any


class _Options(NamedTuple):
    """The nodes that one variable can take."""

    column: np.ndarray
    side: np.ndarray
    place: np.ndarray
    share: np.ndarray


def orthant_rule(
    blocks: Sequence[Block],
    *,
    size: int | None = None,
    most: int = 1,
    as_if: Sequence[Block] | None = None,
) -> OrthantRule:
    """The rule with these orders.

    Args:
        blocks: rules for the variables in order, two for a ``Pair``.
        size: nodes of all variables but the last that are in a block; by default all.
        most: at least so many blocks, all but the first of which may be empty.
        as_if: arrays have the shapes of the rule with these orders, which must not be lower.
    """
    shapes = blocks if as_if is None else as_if
    *some, _ = [options for block in blocks for options in _options(block)]
    counts = [len(options.side) for options in some]
    count = math.prod(counts)
    size = count if size is None else size
    number = max(most, -(-count // size))
    index = np.minimum(np.arange(number * size), count - 1)
    each = np.unravel_index(index, counts) if counts else ()

    def taken(field: int, dtype: type) -> np.ndarray:
        """A field of the options of every variable, in blocks."""
        rows = [options[field][k] for options, k in zip(some, each, strict=True)]
        return np.moveaxis(np.array(rows, dtype).reshape(-1, number, size), 1, 0)

    real = (np.arange(number * size) < count).astype(float)
    choices = Choices(
        taken(0, int), taken(1, float), taken(2, float), taken(3, float), real.reshape(number, size)
    )
    last, line = _last(blocks[-1], shapes[-1])
    return OrthantRule(
        tuple(map(type, blocks)), choices, last, line, truncated_tables(_tabulated(shapes))
    )


def orthant_nodes(
    mean: Float[Array, " dim"], factor: Float[Array, "dim dim"], rule: OrthantRule, b: Index = 0
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
        rule: orders for the variables.
        b: which block of nodes.

    Returns:
        x, η and weights of the nodes.

    >>> import jax
    >>> with jax.enable_x64(True):
    ...     rule = orthant_rule([Split(4)])
    ...     x, eta, weights = orthant_nodes(jnp.array([0.3]), jnp.array([[1.0]]), rule)
    ...     mean = float(weights @ jnp.maximum(x[0], 0.0))
    >>> round(mean, 8)  # 0.3 Φ(0.3) + φ(0.3)
    0.56676124
    """
    choices = jax.tree.map(lambda part: entry(part, b), rule.choices)
    # a branch of its own: fused with what follows, it would be done again for every node
    i, count = len(mean) - (2 if rule.kinds[-1] is Pair else 1), len(choices.weights)
    nothing = _Given(jnp.zeros((i, count)), jnp.zeros(count), jnp.zeros(count))
    given = jax.lax.cond(
        choices.weights[0] > 0,
        lambda: _before_last(mean, factor, rule, choices),
        lambda: nothing,
    )
    centers = mean[i:, None] + factor[i:, :i] @ given.eta
    if rule.kinds[-1] is Whole:
        z, w = (jnp.broadcast_to(part, (count, part.size)) for part in jnp.asarray(rule.line))
        new = [z]
    elif rule.kinds[-1] is Split:
        cut = -centers[0] / factor[i, i]
        z, w = _outside(cut, cut, jnp.asarray(rule.last))
        new = [z]
    else:
        turn = _Turn.of(centers, factor[i:, i:])
        low, high = turn.cuts(given.across)
        outside = _outside(low, high, jnp.asarray(rule.last))
        between = _between(low[:, None], high[:, None], jnp.asarray(rule.line))
        t, w = (jnp.concatenate(parts, axis=1) for parts in zip(outside, between, strict=True))
        new = turn.variables(t, given.across[:, None])
    before = jnp.broadcast_to(given.eta[..., None], (i, *w.shape))
    eta = jnp.concatenate([before, jnp.stack(new)]).reshape(len(mean), -1)
    return mean[:, None] + factor @ eta, eta, (given.weights[:, None] * w).ravel()


class _Given(NamedTuple):
    """Of nodes: η of all variables before the last block, and if that is a pair, its e."""

    eta: Float[Array, "v p"]
    across: Float[Array, " p"]
    weights: Float[Array, " p"]


def _before_last(
    mean: Float[Array, " dim"], factor: Float[Array, "dim dim"], rule: OrthantRule, choices: Choices
) -> _Given:
    """The chosen nodes of all variables but the last."""
    column, side, place, share, weights = map(jnp.asarray, choices)
    tables = jnp.asarray(rule.table)
    eta = jnp.zeros((0, len(weights)))

    def outside(i: int, low: Array, high: Array) -> tuple[Array, Array]:
        """Variable i above one cut or below another."""
        z, w = chosen_node(jnp.where(side[i] > 0, high, -low), column[i], tables)
        return side[i] * z, w

    for number, kind in enumerate(rule.kinds):
        i = len(eta)
        centers = mean[i : i + 2, None] + factor[i : i + 2, :i] @ eta
        if kind is Pair:
            turn = _Turn.of(centers, factor[i : i + 2, i : i + 2])
            e, w = outside(i, turn.vertex, turn.vertex)
            weights = weights * w
            if number == len(rule.kinds) - 1:
                return _Given(eta, e, weights)
            low, high = turn.cuts(e)
            t, w = (
                jnp.where(side[i + 1] != 0, *both)
                for both in zip(
                    outside(i + 1, low, high),
                    _between(low, high, (place[i + 1], share[i + 1])),
                    strict=True,
                )
            )
            new = turn.variables(t, e)
        elif number == len(rule.kinds) - 1:
            break
        elif kind is Whole:
            new, w = [place[i]], share[i]
        else:
            cut = -centers[0] / factor[i, i]
            z, w = outside(i, cut, cut)
            new = [z]
        eta, weights = jnp.concatenate([eta, jnp.stack(new)]), weights * w
    return _Given(eta, jnp.zeros_like(weights), weights)


class _Turn(NamedTuple):
    r"""Principal directions of a pair.

    Variables x_i/σ_i of correlation ρ > 0 are m₀ + αt + βe and m₁ + αt − βe with α² = (1 + ρ)/2,
    β² = (1 − ρ)/2 and independent t and e. Where ρ < 0 the second one is mirrored.
    """

    first: Float[Array, "..."]  # m₀
    other: Float[Array, "..."]  # m₁
    alpha: Float[Array, ""]
    beta: Float[Array, ""]
    sign: Float[Array, ""]

    @classmethod
    def of(cls, centers: Float[Array, "2 p"], factor: Float[Array, "2 2"]) -> "_Turn":
        second = jnp.sqrt(factor[1, 0] ** 2 + factor[1, 1] ** 2)
        sign = jnp.where(factor[1, 0] < 0, -1.0, 1.0)
        alpha = jnp.sqrt((1 + jnp.abs(factor[1, 0]) / second) / 2)
        beta = factor[1, 1] / second / (2 * alpha)
        return cls(centers[0] / factor[0, 0], sign * centers[1] / second, alpha, beta, sign)

    @property
    def vertex(self) -> Array:
        """The e at which both variables can be zero."""
        return (self.other - self.first) / (2 * self.beta)

    def cuts(self, e: Array) -> tuple[Array, Array]:
        """The t at which one variable is zero, and the other, in order."""
        one, two = (
            (self.first + self.beta * e) / self.alpha,
            (self.other - self.beta * e) / self.alpha,
        )
        return -jnp.maximum(one, two), -jnp.minimum(one, two)

    def variables(self, t: Array, e: Array) -> list[Array]:
        """η of both variables."""
        return [self.alpha * t + self.beta * e, self.sign * (self.beta * t - self.alpha * e)]


def _outside(
    low: Float[Array, " p"], high: Float[Array, " p"], table: Float[Array, "2 c 4 n"]
) -> tuple[Float[Array, "p k"], Float[Array, "p k"]]:
    """A standard normal variable above one cut and below another, all nodes of both rules."""
    above, above_weights = truncated(high, table)
    below, below_weights = truncated(-low, table)
    weights = jnp.concatenate([above_weights, below_weights], axis=-1)
    return jnp.concatenate([above, -below], axis=-1), weights


def _between(low: Array, high: Array, line: Any) -> tuple[Array, Array]:
    """A standard normal variable between two cuts, by a rule on [0, 1]."""
    low, high = jnp.clip(low, -REACH, REACH), jnp.clip(high, -REACH, REACH)
    t = low + (high - low) * line[0]
    return t, (high - low) * line[1] * jnp.exp(-(t**2) / 2) / math.sqrt(2 * math.pi)


def _tabulated(blocks: Sequence[Block]) -> int:
    """Up to which order rules are tabulated: few if that is enough."""
    highest = max(max(block) for block in blocks)
    return next(most for most in TABULATED if most >= highest)


def _options(block: Block) -> list[_Options]:
    """The nodes of each variable of a block."""
    if isinstance(block, Whole):
        return [_free(hermite_line(block.order))]
    if isinstance(block, Split):
        return [_cut(block.order)]
    beyond, inside = _cut(block.along), _free(legendre(block.between))
    second = _Options(*(np.concatenate(parts) for parts in zip(beyond, inside, strict=True)))
    return [_cut(block.across), second]


def _cut(order: int) -> _Options:
    """On either side of a cut."""
    column = np.tile([column_of(order, k) for k in range(order)], 2)
    nothing = np.zeros(2 * order)
    return _Options(column, np.repeat([1.0, -1.0], order), nothing, nothing)


def _free(line: np.ndarray) -> _Options:
    """Nodes that no cut moves, or that are between two of them."""
    nothing = np.zeros(line.shape[1])
    return _Options(nothing.astype(int), nothing, *line)


def _last(block: Block, shapes: Block) -> tuple[Any, Any]:
    """Rules for the last variable, padded to the orders of ``shapes``."""
    match block, shapes:
        case Whole(order), Whole(most):
            return None, padded(hermite_line(order), most)
        case Split(order), Split(most):
            return truncated_table(order, most), None
        case Pair(_, along, between), Pair(_, most, many):
            return truncated_table(along, most), padded(legendre(between), many)
    raise TypeError(f"{block} is not of the kind of {shapes}")

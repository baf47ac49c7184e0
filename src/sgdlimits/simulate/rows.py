r"""Weights and velocities as rows of coordinates, and how a gradient moves them.

The first r coordinates of a row are those along orthonormal anchors. The others are along an
orthonormal basis, which is not known and need not be, of a space that holds what weights and
velocities have beyond the anchors: N coordinates for N rows, which may be kept triangular, or all
the d − r directions there are where these are fewer. A gradient has further coordinates, along
directions beyond. After a step :func:`lower` chooses another basis, in which those vanish.

Arrays are (rows, coordinates, runs).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits.simulate.kernel import computed_once

WRITTEN_OUT = 6  # up to this many rows each has code of its own

Block = Float[Array, "_ _ runs"]
# of few rows the columns, without the rows above their diagonal entries; otherwise all of them
Triangle = tuple[Block, ...]


class Rows(NamedTuple):
    """A readout, if it is trained, and rows."""

    readout: Float[Array, "K runs"] | None
    rows: Block


class Carry(NamedTuple):
    """What moves: weights, and their velocity if there is momentum."""

    weights: Rows
    velocity: Rows | None


class Rule(eqx.Module):
    """How a gradient moves the weights: see ``sgdlimits._moves``."""

    dim: Float[Array, ""]
    ridge: Float[Array, ""]
    readout_step: Float[Array, ""]  # ε
    retained: Float[Array, ""]  # β
    friction: Float[Array, ""]  # κ
    normalised: bool = eqx.field(static=True)
    tangential: bool = eqx.field(static=True)
    spherical: bool = eqx.field(static=True)
    slow: bool = eqx.field(static=True)  # momentum is 1 − κδ, not β

    def move(self, carry: Carry, gradient: Rows, delta: Float[Array, ""], r: int) -> Carry:
        """One step, with the gradient of the loss without its ridge."""
        beyond = gradient.rows.shape[1] - carry.weights.rows.shape[1]
        weights, velocity = (_widened(rows, beyond) for rows in carry)
        assert weights is not None
        gradient = self._prepared(gradient, weights)
        if velocity is not None:
            retained = 1 - self.friction * delta if self.slow else self.retained
            velocity = _combined(retained, velocity, delta, gradient)
            gradient, delta = velocity, delta if self.slow else jnp.ones(())
        rows = weights.rows - delta * gradient.rows
        if self.spherical:
            rows = rows / jnp.sqrt(contracted(rows, rows))[:, None]
        v = weights.readout
        if v is not None and gradient.readout is not None:
            v = v - self.readout_step * delta * gradient.readout
        return _narrowed(Carry(Rows(v, rows), velocity), r, beyond)

    def _prepared(self, gradient: Rows, weights: Rows) -> Rows:
        """Normalised, with the ridge, tangential: whatever of these it is."""
        v, (g, rows) = weights.readout, gradient
        if self.normalised:
            squared = jnp.sum(contracted(rows, rows), axis=0)
            squared = squared if g is None else squared + jnp.sum(g**2, axis=0)
            # no gradient at all does not move; what overflows becomes nan
            inverse = jnp.where(squared < jnp.inf, jax.lax.rsqrt(squared), jnp.nan)
            factor = jnp.where(squared > 0, jnp.sqrt(self.dim) * inverse, 0.0)
            rows, g = factor * rows, None if g is None else factor * g
        if v is not None and g is not None:
            g = g + self.ridge * v
        if self.tangential:
            W = weights.rows
            along = contracted(rows, W) / contracted(W, W)
            return Rows(g, rows - along[:, None] * W)
        return Rows(g, rows + self.ridge * weights.rows)


def contracted(first: Block, second: Block) -> Float[Array, "_ runs"]:
    """Inner products of each row of one with its row of the other, or with the only one."""
    if first.shape[1] <= 2 * WRITTEN_OUT:  # sums that are written out stay elementwise
        return sum(
            (first[:, k] * second[:, k] for k in range(1, first.shape[1])),
            start=first[:, 0] * second[:, 0],
        )
    return jnp.sum(first * second, axis=1)


def lower(block: Block) -> Block:
    """L with LLᵀ = BBᵀ, triangular with as many columns as rows, by modified Gram–Schmidt.

    BBᵀ is not formed, so that every row keeps its relative accuracy, be B singular or not. A block
    that has no more columns than rows is returned as it is. What overflows becomes nan.
    """
    rows, width, _ = block.shape
    if width <= rows:
        return block
    if rows <= WRITTEN_OUT:
        columns = []
        for above in range(rows):
            along, block = computed_once(_taken_off)(block)
            columns.append(jnp.pad(along, [(above, 0), (0, 0)]))
        return jnp.stack(columns, axis=1)

    number = jnp.arange(rows)[:, None]

    def onward(block: Block, above: Array) -> tuple[Block, Float[Array, "_ runs"]]:
        unit = _unit(block[above][None])
        along = jnp.where(number >= above, contracted(block, unit), 0.0)
        rest = block - along[:, None] * unit
        return jnp.where(number[:, None] > above, rest, 0.0), along

    _, along = jax.lax.scan(onward, block, jnp.arange(rows))
    return jnp.swapaxes(along, 0, 1)


def nothing(rows: int, runs: int) -> Triangle:
    """A triangle of zeros."""
    if rows > WRITTEN_OUT:
        return (jnp.zeros((rows, rows, runs)),)
    return tuple(jnp.zeros((rows - above, 1, runs)) for above in range(rows))


def absorbed(triangle: Triangle, columns: Block) -> Triangle:
    """The triangle L' with L'L'ᵀ = LLᵀ + GGᵀ, for a triangle L and columns G.

    A reflection for each row turns its entries in G into its diagonal one: half the work of
    :func:`lower`, which knows nothing of zeros. Rows keep their relative accuracy.
    """
    if len(columns) > WRITTEN_OUT:
        return (lower(jnp.concatenate([*triangle, columns], axis=1)),)
    turned = []
    for column in triangle:
        along, columns = computed_once(_reflected)(column[:, 0], columns)
        turned.append(along[:, None])
    return tuple(turned)


def square(triangle: Triangle) -> Block:
    """With the rows above diagonals."""
    rows = len(triangle[0])
    parts = [jnp.pad(part, [(rows - len(part), 0), (0, 0), (0, 0)]) for part in triangle]
    return jnp.concatenate(parts, axis=1)


def _reflected(
    column: Float[Array, "n runs"], block: Block
) -> tuple[Float[Array, "n runs"], Block]:
    """[column, block] with the first row turned into its first entry: that column, and the rest.

    With u the first row over its length, the reflection takes u to −e₀; the column changes its
    sign.
    """
    squared = column[0] ** 2 + contracted(block[:1], block[:1])[0]
    inverse = jnp.where(squared < jnp.inf, jax.lax.rsqrt(squared), jnp.nan)
    first = jnp.where(squared == 0, 1.0, inverse * column[0])
    unit = jnp.where(squared == 0, 0.0, inverse) * block[:1]
    along = first * column + contracted(block, unit)
    share = (along[1:] + column[1:]) / (1 + first)  # the diagonal of a triangle is not negative
    return along, block[1:] - share[:, None] * unit


def _taken_off(block: Block) -> tuple[Float[Array, "_ runs"], Block]:
    """What all rows are along the first one, and the others without it."""
    unit = _unit(block[:1])
    along = contracted(block, unit)
    return along, block[1:] - along[1:, None] * unit


def _unit(row: Block) -> Block:
    squared = contracted(row, row)
    inverse = jnp.where(squared < jnp.inf, jax.lax.rsqrt(squared), jnp.nan)
    return jnp.where(squared == 0, 0.0, inverse)[:, None] * row


def _widened(rows: Rows | None, beyond: int) -> Rows | None:
    if rows is None or beyond == 0:
        return rows
    return Rows(rows.readout, jnp.pad(rows.rows, [(0, 0), (0, beyond), (0, 0)]))


def _combined(a: Array, first: Rows, b: Array, second: Rows) -> Rows:
    """The sum of a multiple of one and a multiple of the other."""
    v = None
    if first.readout is not None and second.readout is not None:
        v = a * first.readout + b * second.readout
    return Rows(v, a * first.rows + b * second.rows)


def _narrowed(carry: Carry, r: int, beyond: int) -> Carry:
    """In a basis in which coordinates beyond vanish."""
    if beyond == 0:
        return carry
    (v, weights), velocity = carry
    K = len(weights)
    if velocity is None:
        return Carry(Rows(v, jnp.concatenate([weights[:, :r], lower(weights[:, r:])], 1)), None)
    both = lower(jnp.concatenate([weights[:, r:], velocity.rows[:, r:]]))
    weights = jnp.concatenate([weights[:, :r], both[:K]], axis=1)
    moving = jnp.concatenate([velocity.rows[:, :r], both[K:]], axis=1)
    return Carry(Rows(v, weights), Rows(velocity.readout, moving))

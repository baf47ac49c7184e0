"""The exact chain of multi-index tasks with batches, momentum and the other moves."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index, State
from sgdlimits.simulate import batch_noise, noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.kernel import computed_once, in_rows
from sgdlimits.simulate.moved_chain import (
    BESIDE,
    MovedChain,
    freedom_of,
    rule_of,
    sample_key,
    times,
)
from sgdlimits.simulate.multi_index_data import MultiIndexData, data_of
from sgdlimits.simulate.reflections import reflected, turned_back
from sgdlimits.simulate.rows import (
    WRITTEN_OUT,
    Block,
    Carry,
    Rows,
    Rule,
    Triangle,
    absorbed,
    nothing,
    square,
)
from sgdlimits.simulate.square_roots import square_roots
from sgdlimits.simulate.velocity import observed, velocity_statistics
from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic


def block_of(width: int) -> int:
    """Samples of a batch that are drawn together, at most.

    So many that what a block costs beside its samples is little, and so few that they stay cached.
    """
    return 4 if width <= WRITTEN_OUT else 16


class Sums(NamedTuple):
    """Sums over samples: of gradients in the readout, of g aᵀ, g ηᵀ, and T with TTᵀ = Σ ggᵀ."""

    readout: Float[Array, "K runs"] | None
    along: Block
    inside: Block
    factor: Triangle


class Samples(NamedTuple):
    """Some of a batch: gradients in the readout and the fields, anchor fields a, and η."""

    readout: Float[Array, "K b runs"] | None
    fields: Float[Array, "K b runs"]
    anchors: Float[Array, "r b runs"]
    eta: Float[Array, "m b runs"]


class MultiIndexMoved(MovedChain):
    r"""Rows (M, C) with M in orthonormal coordinates of the anchors and CCᵀ = R.

    A sample has coordinates z = (anchor fields, η/√λ), so that s = Wz, and its gradient is g zᵀ,
    and g ξᵀ/√λ in the directions beyond. Of a batch, the gradients are G = (g₁, …, g_b) times
    independent ξ there: GGᵀ = TTᵀ is all that matters. T is G itself, if there are no more samples
    than neurons, or the triangle of G; GGᵀ, singular for few samples, is not formed.

    Where labels are those of components and noise is isotropic, g knows of the noise in the span of
    W alone: W = [L, 0]H with H orthogonal, s = W E[z] + Lη/√λ, and only the K numbers η are drawn
    for every sample; the noise in the other coordinates of [η, …]H is of the form Tξ as well.
    """

    data: MultiIndexData
    rule: Rule
    clock: Clock
    first_run: Index
    freedom: Float[Array, " q"]
    batch: int = eqx.field(static=True)
    columns: int = eqx.field(static=True)  # coordinates of a row that are not along anchors
    moving: bool = eqx.field(static=True)  # whether there is a velocity
    noisy: bool = eqx.field(static=True)  # whether labels have noise

    @property
    def lanes(self) -> int:
        """Fewer than where one sample is drawn at a time: a block of them is to stay cached."""
        return min(64, self.data.lanes)

    @property
    def along(self) -> int:
        """One for each anchor."""
        return len(self.data.task.anchors)

    def start(self, states: State) -> Carry:
        """Factor R and turn M to orthonormal coordinates; nothing moves yet."""
        M = self.data.orthonormal(states["M"])
        C = np.moveaxis(square_roots(states["R"], self.columns), 0, -1)
        v = staged(states["v"].T) if self.data.task.trained else None
        weights = Rows(v, staged(np.concatenate([M, C], axis=1)))
        return Carry(weights, jax.tree.map(jnp.zeros_like, weights) if self.moving else None)

    def gradient(self, weights: Rows, key: noise.Key, triangle: Block | None) -> Rows:
        """The mean over a batch of fresh samples."""
        beyond = triangle is not None
        sums = (self._turned if self._turns else self._sums)(weights, key, beyond)
        share = 1 / self.batch
        deviation = share / jnp.sqrt(self.data.task.precision)
        parts = [share * sums.along, deviation * sums.inside]
        if triangle is not None:
            parts.append(deviation * times(square(sums.factor), triangle))
        readout = None if sums.readout is None else share * sums.readout
        return Rows(readout, jnp.concatenate(parts, axis=1))

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M and R, and the overlaps of a slow velocity."""
        return observed(carry, self.data.root, slow=self.rule.slow)

    @property
    def further(self) -> tuple[Statistic, ...]:
        """Overlaps of a slow velocity U: U Aᵀ, U⊥U⊥ᵀ and W⊥U⊥ᵀ."""
        return velocity_statistics(self.data.task) if self.rule.slow else ()

    @property
    def _block(self) -> tuple[int, int]:
        """How many blocks of samples are drawn one after another, and their size."""
        count = -(-self.batch // block_of(self.data.task.width))
        return count, -(-self.batch // count)

    @property
    def _turns(self) -> bool:
        """Whether noise beside the span of the weights is drawn once for the whole batch."""
        known = not self.data.noisy and not self.data.correlated
        return known and self.batch > self.data.task.width and len(self.freedom) > 0

    def _turned(self, weights: Rows, key: noise.Key, beyond: bool) -> Sums:
        """The sums, from samples whose coordinates are E[z] along anchors, and η/√λ."""
        K, coordinates, lanes = weights.rows.shape
        L, reflections = reflected(weights.rows)
        seen = jnp.concatenate([weights.rows[:, : self.along], L], axis=1)
        sums = self._sums(Rows(weights.readout, seen), key, beyond)
        others = coordinates - K
        own = noise.derived(key, BESIDE)
        normals, _ = batch_noise.normals_and_uniforms(own, K * others, 0, lanes)
        beside = times(square(sums.factor), normals.reshape(K, others, lanes))
        turned = turned_back(jnp.concatenate([sums.inside, beside], axis=1), reflections)
        noisy = turned[:, : self.along] / jnp.sqrt(self.data.task.precision)
        return sums._replace(along=sums.along + noisy, inside=turned[:, self.along :])

    def _sums(self, weights: Rows, key: noise.Key, beyond: bool) -> Sums:
        (K, coordinates, lanes), (count, _) = weights.rows.shape, self._block
        few = kept(self.batch, K) == self.batch
        weights = self._scaled(weights)

        def add(number: Index, sums: Sums) -> Sums:
            readout, along, inside, factor = sums
            parts = self._samples(weights, sample_key(key, number), number)
            for part in parts:
                for i in range(part.fields.shape[1]):
                    g = part.fields[:, i]
                    along = along + g[:, None] * part.anchors[:, i]
                    inside = inside + g[:, None] * part.eta[:, i]
                    if readout is not None and part.readout is not None:
                        readout = readout + part.readout[:, i]
            if beyond:
                G = jnp.concatenate([part.fields for part in parts], axis=1)
                factor = (G,) if few else absorbed(factor, G)
            return Sums(readout, along, inside, factor)

        sums = Sums(
            None if weights.readout is None else jnp.zeros((K, lanes)),
            jnp.zeros((K, self.along, lanes)),
            jnp.zeros((K, coordinates - self.along, lanes)),
            (jnp.zeros((K, self.batch, lanes)),) if few else nothing(K, lanes),
        )
        return add(0, sums) if count == 1 else jax.lax.fori_loop(0, count, add, sums)

    def _scaled(self, weights: Rows) -> Rows:
        """With coordinates for η in place of η/√λ, and a readout for every sample of a part."""
        scale = 1 / jnp.sqrt(self.data.task.precision)
        rows = jnp.concatenate(
            [weights.rows[:, : self.along], scale * weights.rows[:, self.along :]], axis=1
        )
        readout = weights.readout
        if readout is not None:
            several = self._parts(rows.shape[1])[1] * [readout]
            readout = computed_once(lambda v: jnp.concatenate(v, axis=1))(several)
        return Rows(readout, rows)

    def _parts(self, coordinates: int) -> tuple[int, int]:
        """How many parts a block of samples is made of, and their size.

        Normal numbers are made in pairs, so those of two halves together: none is left over.
        """
        (_, size), draws = self._block, self._draws(coordinates)
        parts = 1 if size % 2 or draws % 2 == 0 else 2
        return parts, size // parts

    def _draws(self, coordinates: int) -> int:
        """Normal numbers for a sample."""
        return coordinates - (self.along if self._turns else 0) + self.noisy

    def _samples(self, weights: Rows, key: noise.Key, number: Index) -> list[Samples]:
        """Those of one block, in parts."""
        data, (_, coordinates, lanes) = self.data, weights.rows.shape
        (parts, each), draws = self._parts(coordinates), self._draws(coordinates)
        normals, uniforms = batch_noise.normals_and_uniforms(
            key, parts * draws, parts if len(data.thresholds) else 0, each * lanes
        )
        inside = draws - self.noisy - (coordinates - self.along)  # where η begins

        def anchors_and_labels(uniform: Array, zeta: Array, noise: Array) -> tuple[Array, Array]:
            anchors = data.center(uniform) if self._turns else data.anchors(uniform, zeta)
            return anchors, data.labels(uniform, anchors, noise)

        def part(j: int) -> Samples:
            own, zeros = normals[j * draws : (j + 1) * draws], jnp.zeros(each * lanes)
            anchors, labels = computed_once(anchors_and_labels)(
                uniforms[j] if len(uniforms) else zeros,
                own[:inside],
                own[-1] if self.noisy else zeros,
            )
            eta = own[inside : draws - self.noisy]
            anchors, eta = (x.reshape(-1, each, lanes) for x in (anchors, eta))
            fields = computed_once(_fields)(weights.rows, anchors, eta)
            # samples and runs share an axis where a loop is a simple one only then
            flat = fields.reshape(-1, each * lanes)
            found = computed_once(in_rows(data.gradients))(flat, weights.readout, labels)
            readout, g = jax.tree.map(lambda x: x.reshape(-1, each, lanes), found)
            if self.batch % self._block[1]:  # of the last block not all are used
                left = self.batch - number * self._block[1]
                used = jnp.arange(j * each, (j + 1) * each)[:, None] < left
                readout, g = jax.tree.map(lambda x: jnp.where(used, x, 0.0), (readout, g))
            return Samples(readout, g, anchors, eta)

        return [part(j) for j in range(parts)]


def _fields(rows: Block, anchors: Block, eta: Block) -> Block:
    return times(rows[:, : len(anchors)], anchors) + times(rows[:, len(anchors) :], eta)


def kept(batch: int, width: int) -> int:
    """Columns of T: the gradients themselves where they are few, or a triangle."""
    return batch if batch <= min(width, block_of(width)) else width


def make_moved(task: MultiIndexFamily, dim: int, moves: Moves, first_run: int) -> MultiIndexMoved:
    """The chain of a multi-index task in dimension ``dim``, however SGD moves."""
    moving = moves.moving or moves.friction is not None
    directions, rows = dim - len(task.anchors), (2 if moving else 1) * task.width
    columns = min(rows, directions)
    return MultiIndexMoved(
        data=data_of(task),
        rule=rule_of(moves, dim, task.ridge, spherical=task.spherical),
        clock=clock(moves, dim),
        first_run=staged(first_run),
        freedom=staged(freedom_of(directions, columns, kept(moves.batch, task.width))),
        batch=moves.batch,
        columns=columns,
        moving=moving,
        noisy=task.noisy,
    )

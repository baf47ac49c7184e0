"""The exact chain of multi-index tasks with batches, momentum and the other moves."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index, State
from sgdlimits.simulate import noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.kernel import computed_once
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
from sgdlimits.simulate.rows import Block, Carry, Rows, Rule, absorbed
from sgdlimits.simulate.square_roots import square_roots
from sgdlimits.simulate.velocity import observed, velocity_statistics
from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic

BLOCK = 4  # samples of a batch that are drawn together, at most


class Sums(NamedTuple):
    """Sums over samples: of gradients in the readout, of g zᵀ, and T with TTᵀ = Σ ggᵀ."""

    readout: Float[Array, "K runs"] | None
    rows: Block
    factor: Block


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
        readout, rows = sums.readout, share * sums.rows
        if triangle is not None:
            scale = share / jnp.sqrt(self.data.task.precision)
            rows = jnp.concatenate([rows, scale * times(sums.factor, triangle)], axis=1)
        return Rows(None if readout is None else share * readout, rows)

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
        count = -(-self.batch // BLOCK)
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
        normals, _ = noise.normals_and_uniform(own, K * others, lanes)
        beside = times(sums.factor, normals.reshape(K, others, lanes))
        beside = beside / jnp.sqrt(self.data.task.precision)
        span = jnp.concatenate([sums.rows[:, self.along :], beside], axis=1)
        means = jnp.pad(sums.rows[:, : self.along], [(0, 0), (0, self.columns), (0, 0)])
        return sums._replace(rows=means + turned_back(span, reflections))

    def _sums(self, weights: Rows, key: noise.Key, beyond: bool) -> Sums:
        (K, coordinates, lanes), (count, _) = weights.rows.shape, self._block
        few = kept(self.batch, K) == self.batch

        def add(number: Index, sums: Sums) -> Sums:
            parts = self._samples(weights, sample_key(key, number), number)
            rows, factor = sums.rows, sums.factor
            for _, g, z in parts:
                for i in range(g.shape[1]):
                    rows = rows + g[:, i, None] * z[:, i]
            if beyond:
                G = jnp.concatenate([g for _, g, _ in parts], axis=1)
                factor = G if few else absorbed(factor, G)
            readout = sums.readout
            for each, _, _ in parts:
                if each is not None and readout is not None:
                    readout = sum((each[:, i] for i in range(each.shape[1])), start=readout)
            return Sums(readout, rows, factor)

        none = None if weights.readout is None else jnp.zeros((K, lanes))
        factor = jnp.zeros((K, kept(self.batch, K), lanes))
        nothing = Sums(none, jnp.zeros((K, coordinates, lanes)), factor)
        return add(0, nothing) if count == 1 else jax.lax.fori_loop(0, count, add, nothing)

    def _samples(
        self, weights: Rows, key: noise.Key, number: Index
    ) -> list[tuple[Float[Array, "K b runs"] | None, Float[Array, "K b runs"], Block]]:
        """Gradients in the readout and in the fields of one block, and coordinates z, in parts."""
        data, r, (_, size) = self.data, self.along, self._block
        _, coordinates, lanes = weights.rows.shape
        means = r if self._turns else 0  # coordinates that have no noise
        draws = coordinates - means + data.noisy
        # numbers are made in pairs, so those of two halves together: none is left over
        parts = 1 if size % 2 or draws % 2 == 0 else 2
        each, picks = size // parts, parts if len(data.thresholds) else 0
        normals, uniforms = noise.normals_and_uniforms(key, parts * draws, picks, each * lanes)

        def drawn(uniform: Array, normals: Array) -> tuple[Array, Array]:
            anchors = data.center(uniform) if means else data.anchors(uniform, normals[:r])
            inside = normals[r - means : coordinates - means]
            z = jnp.concatenate([anchors, 1 / jnp.sqrt(data.task.precision) * inside])
            return z, data.labels(uniform, anchors, normals[-1])

        def part(j: int) -> Any:
            uniform = uniforms[j] if picks else jnp.zeros(each * lanes)
            # no axis of samples and runs together from here on: loops would not be simple ones
            z, labels = computed_once(drawn)(uniform, normals[j * draws : (j + 1) * draws])
            z, labels = z.reshape(coordinates, each, lanes), labels.reshape(each, lanes)
            fields = computed_once(times)(weights.rows, z)
            gradients = jax.vmap(data.gradients, (1, None, 0), 1)
            found = computed_once(gradients)(fields, weights.readout, labels)
            if self.batch % size:  # of the last block not all are used
                used = jnp.arange(j * each, (j + 1) * each)[:, None] < self.batch - number * size
                found = jax.tree.map(lambda x: jnp.where(used, x, 0.0), found)
            return *found, z

        return [part(j) for j in range(parts)]


def kept(batch: int, width: int) -> int:
    """Columns of T: the gradients themselves where they are few, or a triangle."""
    return batch if batch <= min(width, BLOCK) else width


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
    )

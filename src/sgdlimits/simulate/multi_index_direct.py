"""SGD on all coordinates of the weights of a multi-index task."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Index, State
from sgdlimits.simulate.base import Process, Step, Words, run_keys
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.square_roots import square_roots
from sgdlimits.simulate.velocity import velocity_statistics
from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic


class Weights(NamedTuple):
    """A readout, if it is trained, and rows of weights."""

    v: Float[Array, "*runs K"] | None
    W: Float[Array, "*runs K d"]


class Carry(NamedTuple):
    """What moves: weights, and their velocity if there is momentum."""

    weights: Weights
    velocity: Weights | None


class MultiIndexDirect(Process):
    """Draws data vectors in R^d and differentiates the loss in v and W: SGD as it is written.

    The anchors lie in the first r coordinates, the rows of their Cholesky factor.
    """

    task: MultiIndexFamily
    moves: Moves
    clock: Clock
    dim: int = eqx.field(static=True)
    offset: Index  # number of the first run
    anchors: Float[Array, "r d"]
    spike: Float[Array, "r r"]  # square root, in units of anchors, of covariance added to theirs

    @property
    def lanes(self) -> int:
        """Runs that fit into a core's cache in most dimensions."""
        return 32

    def start(self, states: State) -> Carry:
        """Weights that realise the given v, M and R; nothing moves yet."""
        weights = weights_from_state(self.task, states, self.dim)
        moving = self.moves.moving or self.moves.friction is not None
        return Carry(weights, jax.tree.map(jnp.zeros_like, weights) if moving else None)

    def stepper(self, words: Words) -> Step:
        """Step i of run j uses key (j, i)."""

        def step(number: Index, carry: Carry, delta: Float[Array, ""]) -> Carry:
            keys = run_keys(words, self.offset, carry.weights.W.shape[0], number)
            return jax.vmap(self._step, (0, 0, None))(carry, keys, delta)

        return step

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M = WAᵀ and R, of the coordinates after r; those of slow velocities."""
        r, (v, W) = len(self.task.anchors), carry.weights
        state = {} if v is None else {"v": v}
        state |= {"M": W @ self.anchors.T, "R": _products(W[..., r:], W[..., r:])}
        if carry.velocity is not None and self.moves.friction is not None:
            u, U = carry.velocity
            state |= {} if u is None else {"velocity_v": u}
            state["velocity_M"] = U @ self.anchors.T
            state["velocity_R"] = _products(U[..., r:], U[..., r:])
            state["cross_R"] = _products(W[..., r:], U[..., r:])
        return state

    @property
    def further(self) -> tuple[Statistic, ...]:
        """Overlaps of a slow velocity."""
        return velocity_statistics(self.task) if self.moves.friction is not None else ()

    def datum(self, key: Array) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """One data vector and its label."""
        task, r = self.task, len(self.task.anchors)
        component_key, data_key, spike_key, label_key = jax.random.split(key, 4)
        c = jax.random.choice(component_key, len(task.weights), p=jnp.asarray(task.weights))
        x = jnp.asarray(task.means)[c] @ self.anchors
        x = x + jax.random.normal(data_key, (self.dim,)) / jnp.sqrt(task.precision)
        x = x + self.spike @ jax.random.normal(spike_key, (r,)) @ self.anchors
        return x, task.label(c, self.anchors @ x, jax.random.normal(label_key))

    def _step(self, carry: Carry, key: Array, delta: Float[Array, ""]) -> Carry:
        """As the steps at the top of ``sgdlimits._moves`` say it."""
        task, moves, (weights, velocity) = self.task, self.moves, carry
        # a single sample has the key of its step, so that it can be drawn again
        keys = key[None] if moves.batch == 1 else jax.random.split(key, moves.batch)
        x, y = jax.vmap(self.datum)(keys)

        def loss(weights: Weights) -> Float[Array, ""]:
            fields = x @ weights.W.T
            return jnp.mean(jax.vmap(task.loss, (0, None, 0))(fields, weights.v, y))

        G = jax.grad(loss)(weights)
        if moves.normalised:
            norm = jnp.sqrt(sum(jnp.sum(part**2) for part in jax.tree.leaves(G)))
            G = jax.tree.map(lambda g: jnp.where(norm > 0, self.dim**0.5 * g / norm, 0.0), G)
        G = jax.tree.map(lambda g, w: g + task.ridge * w, G, weights)
        if moves.tangential:
            radial = jnp.sum(G.W * weights.W, 1) / jnp.sum(weights.W**2, 1)
            G = G._replace(W=G.W - radial[:, None] * weights.W)
        if moves.friction is not None:
            retained = 1 - moves.friction * delta
            velocity = jax.tree.map(lambda u, g: retained * u + delta * g, velocity, G)
            change = jax.tree.map(lambda u: delta * u, velocity)
        elif moves.moving:
            velocity = jax.tree.map(lambda u, g: moves.momentum * u + delta * g, velocity, G)
            change = velocity
        else:
            change = jax.tree.map(lambda g: delta * g, G)
        v = weights.v if change.v is None else weights.v - moves.readout_step * change.v
        W = weights.W - change.W
        if task.spherical:
            W = W / jnp.linalg.norm(W, axis=1, keepdims=True)
        return Carry(Weights(v, W), velocity)


def weights_from_state(task: MultiIndexFamily, states: State, dim: int) -> Weights:
    """Weights in R^dim whose statistics are the given ones (runs along axis 0).

    The parts orthogonal to the anchors fill the K coordinates after the anchors', or all there are:
    by rotation invariance of the data the choice does not matter.
    """
    K, r = task.width, len(task.anchors)
    L = np.linalg.cholesky(np.asarray(task.gram))
    columns = min(K, dim - r)
    W = np.zeros((states["R"].shape[0], K, dim))
    W[..., :r] = states["M"] @ np.linalg.inv(L).T
    W[..., r : r + columns] = square_roots(states["R"], columns)
    v = staged(states["v"]) if task.trained else None
    return Weights(v, staged(W))


def make_direct(task: MultiIndexFamily, dim: int, moves: Moves, offset: int) -> MultiIndexDirect:
    """SGD on all coordinates of a multi-index task."""
    r = len(task.anchors)
    anchors = np.zeros((r, dim))
    anchors[:, :r] = np.linalg.cholesky(task.gram)
    values, vectors = np.linalg.eigh(task.spike)
    return MultiIndexDirect(
        task=as_arrays(task),
        moves=as_arrays(moves),
        clock=clock(moves, dim),
        dim=dim,
        offset=staged(offset),
        anchors=staged(anchors),
        spike=staged(np.linalg.solve(task.gram, vectors * np.sqrt(np.maximum(values, 0)))),
    )


def _products(first: Float[Array, "runs K m"], second: Float[Array, "runs K m"]) -> Array:
    return first @ jnp.swapaxes(second, -1, -2)

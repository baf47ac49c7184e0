"""SGD on all coordinates of the weights of a multi-index task."""

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
from sgdlimits.tasks import MultiIndexFamily

Carry = tuple[Float[Array, "runs K"] | None, Float[Array, "runs K d"]]


class MultiIndexDirect(Process):
    """Draws data vectors in R^d and differentiates the loss in v and W: SGD as it is written.

    The anchors lie in the first r coordinates, the rows of their Cholesky factor.
    """

    task: MultiIndexFamily
    clock: Clock
    readout_step: Float[Array, ""]  # ε
    dim: int = eqx.field(static=True)
    offset: Index  # number of the first run
    anchors: Float[Array, "r d"]
    spike: Float[Array, "r r"]  # square root of the covariance added to the anchor fields

    @property
    def lanes(self) -> int:
        """Runs that fit into a core's cache in most dimensions."""
        return 32

    def start(self, states: State) -> Carry:
        """Weights that realise the given v, M and R."""
        return weights_from_state(self.task, states, self.dim)

    def stepper(self, words: Words) -> Step:
        """Step i of run j uses key (j, i)."""

        def step(number: Index, carry: Carry, delta: Float[Array, ""]) -> Carry:
            keys = run_keys(words, self.offset, carry[1].shape[0], number)
            return jax.vmap(self._step, (0, 0, None))(carry, keys, delta)

        return step

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M = WAᵀ and R, the Gram matrix outside the first r coordinates."""
        v, W = carry
        outside = W[..., len(self.task.anchors) :]
        state = {} if v is None else {"v": v}
        state["M"] = W @ self.anchors.T
        state["R"] = outside @ jnp.swapaxes(outside, -1, -2)
        return state

    def datum(self, key: Array) -> tuple[Float[Array, " d"], Float[Array, ""]]:
        """One data vector and its label."""
        task, r = self.task, len(self.task.anchors)
        component_key, data_key, spike_key, label_key = jax.random.split(key, 4)
        c = jax.random.choice(component_key, len(task.weights), p=jnp.asarray(task.weights))
        x = jnp.asarray(task.means)[c] @ self.anchors
        x = x + jax.random.normal(data_key, (self.dim,)) / jnp.sqrt(task.precision)
        extra = self.spike @ jax.random.normal(spike_key, (r,))  # added to the anchor fields
        x = x + jnp.linalg.solve(task.gram, extra) @ self.anchors
        return x, task.label(c, self.anchors @ x, jax.random.normal(label_key))

    def _step(
        self,
        carry: tuple[Float[Array, " K"] | None, Float[Array, "K d"]],
        key: Array,
        delta: Float[Array, ""],
    ) -> tuple[Float[Array, " K"] | None, Float[Array, "K d"]]:
        task = self.task
        v, W = carry
        x, y = self.datum(key)

        def loss(v: Float[Array, " K"] | None, W: Float[Array, "K d"]) -> Float[Array, ""]:
            penalty = jnp.sum(W**2) + (0.0 if v is None else jnp.sum(v**2))
            return task.loss(W @ x, v, y) + task.ridge / 2 * penalty

        if v is None:
            W = W - delta * jax.grad(loss, 1)(None, W)
        else:
            readout_gradient, gradient = jax.grad(loss, (0, 1))(v, W)
            v, W = v - self.readout_step * delta * readout_gradient, W - delta * gradient
        if task.spherical:
            W = W / jnp.linalg.norm(W, axis=1, keepdims=True)
        return v, W


def weights_from_state(task: MultiIndexFamily, states: State, dim: int) -> Carry:
    """Weights in R^dim whose statistics are the given ones (runs along axis 0).

    The parts orthogonal to the anchors fill the K coordinates after the anchors': by rotation
    invariance of the data the choice does not matter.
    """
    K, r = task.width, len(task.anchors)
    L = np.linalg.cholesky(np.asarray(task.gram))
    values, vectors = np.linalg.eigh(states["R"])
    W = np.zeros((states["R"].shape[0], K, dim))
    W[..., :r] = states["M"] @ np.linalg.inv(L).T
    W[..., r : r + K] = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
    v = staged(states["v"]) if task.trained else None
    return v, staged(W)


def make_direct(task: MultiIndexFamily, dim: int, moves: Moves, offset: int) -> MultiIndexDirect:
    """SGD on all coordinates of a multi-index task."""
    r = len(task.anchors)
    anchors = np.zeros((r, dim))
    anchors[:, :r] = np.linalg.cholesky(task.gram)
    values, vectors = np.linalg.eigh(task.spike)
    return MultiIndexDirect(
        task=as_arrays(task),
        clock=clock(moves, dim),
        readout_step=staged(moves.readout_step),
        dim=dim,
        offset=staged(offset),
        anchors=staged(anchors),
        spike=staged(vectors * np.sqrt(np.maximum(values, 0))),
    )

"""The exact chain of multi-index tasks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Index, State
from sgdlimits.simulate import triangle
from sgdlimits.simulate.chain import LANES, Chain, Noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.kernel import computed_once
from sgdlimits.tasks import MultiIndexFamily

Carry = tuple[Float[Array, "K runs"] | None, Float[Array, "K r runs"], triangle.Triangle]


class MultiIndexChain(Chain):
    r"""(v, M, C) with R = CCᵀ, C lower triangular.

    Draw a component, the anchor fields, η ~ N(0, I_K) with s⊥ = Cη/√λ, and ρ² ~ χ²_{d−r−K}. With
    a = 1 − δα, M' = aM − δ g (Ax)ᵀ, v' = v − δ(∂ℓ/∂v + αv) and R' = BBᵀ for
    B = [aC − δ g ηᵀ/√λ, δρ g/√λ]. C' is the triangle of B, found without ever forming R, so that it
    keeps its relative accuracy as R vanishes. M is kept in orthonormal coordinates of the anchors.
    """

    task: MultiIndexFamily
    clock: Clock
    readout_step: Float[Array, ""]  # ε
    first_run: Index
    freedom: Float[Array, " 1"]
    root: Float[Array, "r r"]  # L with P = LLᵀ; anchor fields are L times orthonormal ones
    centers: Float[Array, "k r"]  # means of the orthonormal anchor fields
    spread: Float[Array, "r r"]  # square root of their covariance
    thresholds: Float[Array, " k_less_one"]  # a uniform number above the j-th is beyond component j
    correlated: bool = eqx.field(static=True)  # spread is not a multiple of the identity

    @property
    def lanes(self) -> int:
        """Fewer the wider: the square roots of all have to fit into a core's cache."""
        K = self.task.width
        return LANES if K <= 8 else 64 if K <= 16 else 32 if K <= 32 else 16

    @property
    def normals(self) -> int:
        """The anchor fields, η, and the label noise."""
        return len(self.task.anchors) + self.task.width + (self.task.labels is None)

    def start(self, states: State) -> Carry:
        """Factor R and turn M to orthonormal coordinates."""
        inverse = np.linalg.inv(np.linalg.cholesky(np.asarray(self.task.gram)))
        M = np.moveaxis(states["M"] @ inverse.T, 0, -1)
        C = np.moveaxis(_square_roots(states["R"]), 0, -1)
        v = staged(states["v"].T) if self.task.trained else None
        return v, staged(M), triangle.triangle_of(C)

    def step(self, carry: Carry, noise: Noise, delta: Float[Array, ""]) -> Carry:
        """One step of SGD for (v, M, C)."""
        task = self.task
        r, scale = len(task.anchors), 1 / jnp.sqrt(task.precision)
        v, M, C = carry
        zeta, eta = noise.normals[:r], noise.normals[r : r + task.width]

        anchors = self._pick(noise.uniform, self.centers) + self._spread(zeta)
        C, orthogonal, tau = triangle.gather(C, eta, noise.lengths[0])
        fields = scale * orthogonal + sum(M[:, k] * anchors[k] for k in range(r))
        labels = self._labels(noise.uniform, anchors, noise.normals[-1])
        readout_gradient, g = computed_once(self._gradients)(fields, v, labels)

        keep = 1 - delta * task.ridge
        if v is not None and readout_gradient is not None:
            v = v - self.readout_step * delta * (readout_gradient + task.ridge * v)
        M = keep * M - delta * g[:, None] * anchors[None]
        last = jnp.where(tau > 0, keep / tau, 0.0) * orthogonal - (delta * scale * tau) * g
        C = triangle.absorb(C, keep, last)
        if task.spherical:
            norm = jnp.sqrt(jnp.sum(M**2, axis=1) + triangle.squared_norms(C))
            M, C = M / norm[:, None], triangle.divided(C, norm)
        return v, M, C

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M and R."""
        v, M, C = carry
        state = {} if v is None else {"v": v.T}
        state["M"] = jnp.einsum("irn,sr->nis", M, self.root)
        state["R"] = triangle.gram(C)
        return state

    def _pick(
        self, which: Float[Array, " runs"], table: Float[Array, "k m"]
    ) -> Float[Array, "m runs"]:
        """The row of ``table`` that belongs to each run's component."""
        picked = jnp.broadcast_to(table[0][:, None], (table.shape[1], which.shape[0]))
        for c, threshold in enumerate(self.thresholds, start=1):
            picked = jnp.where(which > threshold, table[c][:, None], picked)
        return picked

    def _spread(self, zeta: Float[Array, "r runs"]) -> Float[Array, "r runs"]:
        if not self.correlated:
            return self.spread[0, 0] * zeta
        return jnp.sum(self.spread[:, :, None] * zeta[None], axis=1)

    def _labels(
        self,
        which: Float[Array, " runs"],
        anchors: Float[Array, "r runs"],
        noise: Float[Array, " runs"],
    ) -> Float[Array, " runs"]:
        if self.task.labels is not None:
            return self._pick(which, jnp.asarray(self.task.labels)[:, None])[0]
        component = jnp.sum(which[None] > self.thresholds[:, None], axis=0)
        true = jnp.sum(self.root[:, :, None] * anchors[None], axis=1)
        return jax.vmap(self.task.label, (0, -1, 0))(component, true, noise)

    def _gradients(
        self,
        fields: Float[Array, "K runs"],
        v: Float[Array, "K runs"] | None,
        labels: Float[Array, " runs"],
    ) -> tuple[Float[Array, "K runs"] | None, Float[Array, "K runs"]]:
        if v is None:
            single = jax.grad(lambda s, y: self.task.loss(s, None, y))
            return None, jax.vmap(single, (-1, -1), -1)(fields, labels)
        both = jax.grad(lambda v, s, y: self.task.loss(s, v, y), (0, 1))
        return jax.vmap(both, (-1, -1, -1), -1)(v, fields, labels)


def make_chain(task: MultiIndexFamily, dim: int, moves: Moves, first_run: int) -> MultiIndexChain:
    """The chain of a multi-index task in dimension ``dim``."""
    r = len(task.anchors)
    L = np.linalg.cholesky(task.gram)
    inverse = np.linalg.inv(L)
    covariance = np.eye(r) / task.precision + inverse @ task.spike @ inverse.T
    correlated = bool(task.spike.any())
    spread = np.linalg.cholesky(covariance) if correlated else np.sqrt(covariance)
    cumulative = np.cumsum(task.weights)[:-1]
    return MultiIndexChain(
        task=as_arrays(task),
        clock=clock(moves, dim),
        readout_step=staged(moves.readout_step),
        first_run=staged(first_run),
        freedom=staged([float(dim - r - task.width)]),
        root=staged(L),
        centers=staged(task.means @ L),
        spread=staged(spread),
        thresholds=staged(cumulative),
        correlated=correlated,
    )


def _square_roots(R: np.ndarray) -> np.ndarray:
    """Lower triangular square roots of positive semidefinite matrices, singular ones included."""
    if np.array_equal(R, np.broadcast_to(R[:1], R.shape)):  # as most often where a start is given
        return np.repeat(_square_root(R[0])[None], len(R), axis=0)
    return np.stack([_square_root(matrix) for matrix in R])


def _square_root(R: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.cholesky(R)
    except np.linalg.LinAlgError:  # singular
        values, vectors = np.linalg.eigh(R)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return np.swapaxes(np.linalg.qr(root.T, mode="r"), 0, 1)

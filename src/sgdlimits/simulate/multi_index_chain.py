"""The exact chain of multi-index tasks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from sgdlimits._precision import as_arrays
from sgdlimits._types import Index, State
from sgdlimits.simulate.chain import Chain, Freedom
from sgdlimits.tasks import MultiIndexFamily

Carry = tuple[Float[Array, "K runs"] | None, Float[Array, "K r runs"], Float[Array, "K K runs"]]


class MultiIndexChain(Chain):
    r"""(v, M, C) with R = CCᵀ, C lower triangular.

    Draw a component, the anchor fields, η ~ N(0, I_K) with s⊥ = Cη/√λ, and ρ² ~ χ²_{d−r−K}. With
    a = 1 − δα, M' = aM − δ g (Ax)ᵀ, v' = v − δ(∂ℓ/∂v + αv) and R' = BBᵀ for
    B = [aC − δ g ηᵀ/√λ, δρ g/√λ]. C' is the triangle of B, found without ever forming R, so that it
    keeps its relative accuracy as R vanishes. M is kept in orthonormal coordinates of the anchors.
    """

    task: MultiIndexFamily
    delta: Float[Array, ""]
    first_run: Index
    freedom: Freedom
    triangle: Float[Array, "r r"]  # L with P = LLᵀ; anchor fields are L times orthonormal ones
    centers: Float[Array, "k r"]  # means of the orthonormal anchor fields
    spread: Float[Array, "r r"]  # square root of their covariance
    thresholds: Float[Array, " k_less_one"]  # a normal number above the j-th is beyond component j
    correlated: bool = eqx.field(static=True)  # spread is not a multiple of the identity

    @property
    def normals(self) -> int:
        """The component, the anchor fields, η, and the label noise."""
        return 1 + len(self.task.anchors) + self.task.width + (self.task.labels is None)

    def start(self, states: State) -> Carry:
        """Factor R and turn M to orthonormal coordinates."""
        inverse = np.linalg.inv(np.linalg.cholesky(np.asarray(self.task.gram)))
        M = np.moveaxis(states["M"] @ inverse.T, 0, -1)
        C = np.moveaxis(_triangle(states["R"]), 0, -1)
        v = jnp.asarray(states["v"].T) if self.task.trained else None
        return v, jnp.asarray(M), jnp.asarray(C)

    def step(
        self, carry: Carry, noise: Float[Array, "j runs"], lengths: Float[Array, "blocks runs"]
    ) -> Carry:
        """One step of SGD for (v, M, C)."""
        task, delta, (rho,) = self.task, self.delta, lengths
        K, r = task.width, len(task.anchors)
        v, M, C = carry
        scale = 1 / jnp.sqrt(task.precision)
        which, zeta, eta = noise[0], noise[1 : 1 + r], noise[1 + r : 1 + r + K]

        anchors = self._pick(which, self.centers) + self._spread(zeta)
        orthogonal = scale * jnp.sum(C * eta[None], axis=1)
        fields = jnp.sum(M * anchors[None], axis=1) + orthogonal
        readout_gradient, g = self._gradients(fields, v, self._labels(which, anchors, noise[-1]))
        # without this barrier XLA computes the gradient again for every one of its uses
        g, rho = jax.lax.optimization_barrier((g, rho))

        keep = 1 - delta * task.ridge
        if v is not None and readout_gradient is not None:
            v = keep * v - delta * readout_gradient
        M = keep * M - delta * g[:, None] * anchors[None]
        reach = delta * scale
        tail = jnp.concatenate([-reach * eta, (reach * rho)[None]])
        wide = jnp.concatenate([keep * C, jnp.zeros_like(C[:, :1])], axis=1)
        C = _lower_triangle(wide + g[:, None] * tail[None])
        if task.spherical:
            norm = jnp.sqrt(jnp.sum(M**2, axis=1) + jnp.sum(C**2, axis=1))[:, None]
            M, C = M / norm, C / norm
        return v, M, C

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M and R."""
        v, M, C = carry
        state = {} if v is None else {"v": v.T}
        state["M"] = jnp.einsum("irn,sr->nis", M, self.triangle)
        state["R"] = jnp.einsum("ikn,jkn->nij", C, C)
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
        true = jnp.sum(self.triangle[:, :, None] * anchors[None], axis=1)
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


def make_chain(task: MultiIndexFamily, dim: int, step: float, first_run: int) -> MultiIndexChain:
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
        delta=jnp.asarray(step / dim),
        first_run=jnp.asarray(first_run),
        freedom=Freedom.of(dim - r - task.width),
        triangle=jnp.asarray(L),
        centers=jnp.asarray(task.means @ L),
        spread=jnp.asarray(spread),
        thresholds=jnp.asarray(scipy.special.ndtri(cumulative)),
        correlated=correlated,
    )


def _lower_triangle(rows: Float[Array, "K m runs"]) -> Float[Array, "K K runs"]:
    """L with LLᵀ = BBᵀ by modified Gram–Schmidt on the rows of B: backward stable row by row."""
    K = rows.shape[0]
    columns = []
    for i in range(K):
        squared = jnp.sum(rows[0] ** 2, axis=0)
        inverse = jnp.where(squared == 0, 0.0, jax.lax.rsqrt(squared))
        inverse = jnp.where(jnp.isfinite(squared), inverse, jnp.nan)  # overflow is divergence
        unit = rows[0] * inverse
        along = jnp.sum(rows * unit[None], axis=1)
        columns.append(jnp.concatenate([jnp.zeros((i, along.shape[1])), along]))
        rows = rows[1:] - along[1:, None] * unit[None]
    return jnp.stack(columns, axis=1)


def _triangle(R: np.ndarray) -> np.ndarray:
    """Lower triangular square roots of positive semidefinite matrices, singular ones included."""
    values, vectors = np.linalg.eigh(R)
    root = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]
    upper = np.linalg.qr(np.swapaxes(root, -1, -2), mode="r")
    return np.swapaxes(upper, -1, -2)

"""Samples of multi-index tasks as the anchors and the loss see them, runs along the last axis."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._precision import as_arrays, staged
from sgdlimits.simulate.chain import LANES
from sgdlimits.tasks import MultiIndexFamily


class MultiIndexData(eqx.Module):
    """From uniform and normal numbers to anchor fields, labels and gradients.

    Anchor fields are those of orthonormal anchors: the true ones are ``root`` times them.
    """

    task: MultiIndexFamily
    root: Float[Array, "r r"]  # L with P = LLᵀ
    centers: Float[Array, "k r"]  # means of the orthonormal anchor fields
    spread: Float[Array, "r r"]  # square root of their covariance
    thresholds: Float[Array, " k_less_one"]  # a uniform number above the j-th is beyond component j
    correlated: bool = eqx.field(static=True)  # spread is not a multiple of the identity

    @property
    def noisy(self) -> bool:
        """Whether labels may depend on more than the component, and are given a noise."""
        return self.task.labels is None

    @property
    def lanes(self) -> int:
        """Runs advanced together: fewer the wider, so that what they carry fits into a cache."""
        K = self.task.width
        return LANES if K <= 8 else 64 if K <= 16 else 32 if K <= 32 else 16

    def orthonormal(self, M: Float[np.ndarray, "runs K r"]) -> Float[np.ndarray, "K r runs"]:
        """M in orthonormal coordinates of the anchors, runs along the last axis."""
        inverse = np.linalg.inv(np.linalg.cholesky(np.asarray(self.task.gram)))
        return np.moveaxis(M @ inverse.T, 0, -1)

    def anchors(
        self, which: Float[Array, " runs"], zeta: Float[Array, "r runs"]
    ) -> Float[Array, "r runs"]:
        """Anchor fields from the uniform number that picks a component, and from normal ones."""
        return self.center(which) + self._spread(zeta)

    def center(self, which: Float[Array, " runs"]) -> Float[Array, "r runs"]:
        """Anchor fields of the mean of a component."""
        return self._pick(which, self.centers)

    def labels(
        self,
        which: Float[Array, " runs"],
        anchors: Float[Array, "r runs"],
        noise: Float[Array, " runs"],
    ) -> Float[Array, " runs"]:
        """Labels of samples, from their anchor fields and normal noise."""
        if self.task.labels is not None:
            return self._pick(which, jnp.asarray(self.task.labels)[:, None])[0]
        component = jnp.sum(which[None] > self.thresholds[:, None], axis=0)
        true = jnp.sum(self.root[:, :, None] * anchors[None], axis=1)
        return jax.vmap(self.task.label, (0, -1, 0))(component, true, noise)

    def gradients(
        self,
        fields: Float[Array, "K runs"],
        v: Float[Array, "K runs"] | None,
        labels: Float[Array, " runs"],
    ) -> tuple[Float[Array, "K runs"] | None, Float[Array, "K runs"]]:
        """Of the loss of samples, in the readout and in the fields."""
        if v is None:
            single = jax.grad(lambda s, y: self.task.loss(s, None, y))
            return None, jax.vmap(single, (-1, -1), -1)(fields, labels)
        both = jax.grad(lambda v, s, y: self.task.loss(s, v, y), (0, 1))
        return jax.vmap(both, (-1, -1, -1), -1)(v, fields, labels)

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


def data_of(task: MultiIndexFamily) -> MultiIndexData:
    """The samples of a task."""
    r = len(task.anchors)
    L = np.linalg.cholesky(task.gram)
    inverse = np.linalg.inv(L)
    covariance = np.eye(r) / task.precision + inverse @ task.spike @ inverse.T
    correlated = bool(task.spike.any())
    return MultiIndexData(
        task=as_arrays(task),
        root=staged(L),
        centers=staged(task.means @ L),
        spread=staged(np.linalg.cholesky(covariance) if correlated else np.sqrt(covariance)),
        thresholds=staged(np.cumsum(task.weights)[:-1]),
        correlated=correlated,
    )

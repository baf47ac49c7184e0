"""Online PCA: the leading eigenvector of a spiked covariance (J24, section 11.2.1)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Number, Real
from sgdlimits.tasks.multi_index import MultiIndexFamily


class OnlinePCA(MultiIndexFamily):
    r"""x ~ N(0, I + snr vvᵀ), loss −⟨x, w⟩² on the sphere.

    Args:
        snr: what the signal adds to the variance along v.

    >>> OnlinePCA(2.0).spike
    array([[2.]])
    """

    snr: float

    def __init__(self, snr: Number = 1.0):
        self.snr = _checks.nonnegative("snr", snr)
        super().__init__(
            width=1,
            anchors=("signal",),
            labels=[0.0],
            spike=[[self.snr]],
            spherical=True,
            kinks="none",
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """−s²."""
        return -jnp.sum(fields**2)

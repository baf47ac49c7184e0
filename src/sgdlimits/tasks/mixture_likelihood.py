"""Maximum likelihood for two antipodal Gaussians (J24, section 11.2.2)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Number, Real
from sgdlimits.tasks.multi_index import MultiIndexFamily


class MixtureLikelihood(MultiIndexFamily):
    r"""x ~ p N(μ, I) + (1 − p) N(−μ, I), loss −log cosh(⟨x, w⟩ + h) on the sphere, p = σ(2h).

    Args:
        weight: p, the probability of the component with mean μ.

    >>> MixtureLikelihood(0.5).weights
    array([0.5, 0.5])
    """

    weight: float

    def __init__(self, weight: Number = 0.5):
        self.weight = _checks.fraction("weight", weight)
        super().__init__(
            width=1,
            anchors=("mu",),
            means=[[1.0], [-1.0]],
            weights=[self.weight, 1 - self.weight],
            labels=[0.0, 0.0],
            spherical=True,
            kinks="none",
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """−log cosh(s + h), written so that it does not overflow."""
        u = jnp.sum(fields) + jnp.log(self.weight / (1 - self.weight)) / 2
        return jnp.log(2.0) - jnp.logaddexp(u, -u)

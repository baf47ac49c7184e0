"""How particles move, given what is left of the labels: functions of arrays, in JAX."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits.theory.mean_field.targets import Targets
from sgdlimits.theory.mean_field.units import Smooth


class Particles(NamedTuple):
    """Overlaps, squared norms beside the teacher, and readouts (None: all are 1)."""

    M: Float[Array | np.ndarray, "p r"]
    q: Float[Array | np.ndarray, " p"]
    v: Float[Array | np.ndarray, " p"] | None = None

    @property
    def readouts(self) -> Float[Array, " p"]:
        """Readouts, as numbers."""
        return jnp.ones_like(self.q) if self.v is None else jnp.asarray(self.v)


def residual(
    unit: Smooth, particles: Particles, masses: Float[Array, " p"], targets: Targets
) -> Float[Array, " q"]:
    """ψ(a) = f*(a) − Σⱼ massⱼ vⱼ σ̄ⱼ(a) at the nodes."""
    mean = unit(particles.M @ targets.solved.T, particles.q[:, None]).mean
    return jnp.asarray(targets.labels) - (masses * particles.readouts) @ mean


def velocity(
    unit: Smooth,
    particles: Particles,
    psi: Float[Array, " q"],
    targets: Targets,
    *,
    spherical: bool = False,
) -> Particles:
    """dm/dτ = v E[ψ σ̄' a], dq/dτ = 2v E[ψ E_η σ'(s) √q η], dv/dτ = E[ψ σ̄]."""
    seen = unit(particles.M @ targets.solved.T, particles.q[:, None])
    weighted, v = targets.weights * psi, particles.readouts
    M = v[:, None] * ((seen.slope * weighted) @ targets.fields)
    q = 2 * v * (seen.pull @ weighted)
    if spherical:  # less the radial part
        along = particles.M @ targets.inverse
        norm = jnp.sum(along * particles.M, axis=1) + particles.q
        rate = (jnp.sum(along * M, axis=1) + q / 2) / norm
        M, q = M - rate[:, None] * particles.M, q - 2 * rate * particles.q
    return Particles(M, q, None if particles.v is None else seen.mean @ weighted)

"""The exact chain of multi-index tasks."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index, State
from sgdlimits.simulate import triangle
from sgdlimits.simulate.chain import Chain, Noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.kernel import computed_once
from sgdlimits.simulate.multi_index_data import MultiIndexData, data_of
from sgdlimits.simulate.square_roots import square_roots
from sgdlimits.tasks import MultiIndexFamily

Carry = tuple[Float[Array, "K runs"] | None, Float[Array, "K r runs"], triangle.Triangle]


class MultiIndexChain(Chain):
    r"""(v, M, C) with R = CCᵀ, C lower triangular.

    Draw a component, the anchor fields, η ~ N(0, I_K) with s⊥ = Cη/√λ, and ρ² ~ χ²_{d−r−K}. With
    a = 1 − δα, M' = aM − δ g (Ax)ᵀ, v' = v − δ(∂ℓ/∂v + αv) and R' = BBᵀ for
    B = [aC − δ g ηᵀ/√λ, δρ g/√λ]. C' is the triangle of B, found without ever forming R, so that it
    keeps its relative accuracy as R vanishes. M is kept in orthonormal coordinates of the anchors.
    """

    data: MultiIndexData
    clock: Clock
    readout_step: Float[Array, ""]  # ε
    first_run: Index
    freedom: Float[Array, " 1"]

    @property
    def lanes(self) -> int:
        """Fewer the wider."""
        return self.data.lanes

    @property
    def normals(self) -> int:
        """The anchor fields, η, and the label noise."""
        task = self.data.task
        return len(task.anchors) + task.width + self.data.noisy

    def start(self, states: State) -> Carry:
        """Factor R and turn M to orthonormal coordinates."""
        C = np.moveaxis(square_roots(states["R"], self.data.task.width), 0, -1)
        v = staged(states["v"].T) if self.data.task.trained else None
        return v, staged(self.data.orthonormal(states["M"])), triangle.triangle_of(C)

    def step(self, carry: Carry, noise: Noise, delta: Float[Array, ""]) -> Carry:
        """One step of SGD for (v, M, C)."""
        data, task = self.data, self.data.task
        r, scale = len(task.anchors), 1 / jnp.sqrt(task.precision)
        v, M, C = carry
        zeta, eta = noise.normals[:r], noise.normals[r : r + task.width]

        anchors = data.anchors(noise.uniform, zeta)
        C, orthogonal, tau = triangle.gather(C, eta, noise.lengths[0])
        fields = scale * orthogonal + sum(M[:, k] * anchors[k] for k in range(r))
        labels = data.labels(noise.uniform, anchors, noise.normals[-1])
        readout_gradient, g = computed_once(data.gradients)(fields, v, labels)

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
        along = jnp.sum(M[:, None] * self.data.root[None, :, :, None], axis=2)
        state["M"] = jnp.moveaxis(along, -1, 0)
        state["R"] = triangle.gram(C)
        return state


def make_chain(task: MultiIndexFamily, dim: int, moves: Moves, first_run: int) -> MultiIndexChain:
    """The chain of a multi-index task in dimension ``dim``."""
    return MultiIndexChain(
        data=data_of(task),
        clock=clock(moves, dim),
        readout_step=staged(moves.readout_step),
        first_run=staged(first_run),
        freedom=staged([float(dim - len(task.anchors) - task.width)]),
    )

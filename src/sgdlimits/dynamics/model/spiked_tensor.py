"""The effective dynamics of spiked tensors, from the population loss and the noise covariance."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._precision import as_arrays
from sgdlimits._types import Metric
from sgdlimits.dynamics.model.base import Model, Vector, model_of
from sgdlimits.dynamics.model.mean import RISK, Mean
from sgdlimits.tasks.spiked_tensor import SpikedTensor


class SpikedTensorRisk(Mean):
    """E‖Y − x^{⊗k}‖², beside the constant E‖Y‖²."""

    task: SpikedTensor

    def at(self, vector: Vector) -> Float[Array, ""]:
        """−2λmᵏ + R²ᵏ."""
        return jnp.asarray(self.task.risk(vector[0], vector[1]))


class SpikedTensorModel(Model):
    """∇m = v and ∇r2 = 2x⊥ are orthogonal with squared norms 1 and 4·r2; V = A·I + B·xxᵀ."""

    task: SpikedTensor
    step: Float[Array, ""]

    def population_drift(self, vector: Vector) -> Vector:
        """⟨∇Φ, ∇u⟩ by differentiating Φ(m, r2)."""
        along, across = jax.grad(lambda u: self.task.population_loss(u[0], u[1]))(vector)
        return jnp.stack([along, 4 * vector[1] * across])

    def mean(self, metric: Metric) -> Mean:
        """The risk; data are whole tensors, so there is nothing else to average."""
        if metric != RISK:
            raise _checks.InputError(
                f"metric={metric!r} is not allowed: of SpikedTensor only the risk is known, since "
                "its samples are tensors, without fields and labels"
            )
        return SpikedTensorRisk(self.task)

    def corrector(self, vector: Vector) -> Vector:
        """½δ⟨V, ∇²u⟩: ∇²m = 0, ∇²r2 = 2(I − vvᵀ), and the trace of V is dim·A at leading order."""
        isotropic, _ = self.task.noise_variances(vector[0] ** 2 + vector[1])
        return jnp.stack([jnp.zeros_like(isotropic), self.step * isotropic])

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """c·JVJᵀ; the norm of the noise concentrates, so nothing else fluctuates at this order."""
        m, r2 = vector
        isotropic, radial = self.task.noise_variances(m**2 + r2)
        direction = jnp.stack([m, 2 * r2])  # (∇m·x, ∇r2·x)
        gram = jnp.diag(jnp.stack([jnp.ones_like(m), 4 * r2]))
        return self.step * (isotropic * gram + radial * jnp.outer(direction, direction))


@model_of.register(SpikedTensor)
def spiked_tensor_model(task: SpikedTensor, *, step: float, nodes: int) -> SpikedTensorModel:
    """Everything is in closed form: there are no nodes."""
    del nodes
    return SpikedTensorModel(task=as_arrays(task), step=jnp.asarray(step))

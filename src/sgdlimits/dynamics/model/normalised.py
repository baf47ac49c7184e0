r"""Tasks as SGD sees them that divides each gradient by its norm: G ← √dim G/‖G‖.

‖G‖² = ‖∇_W ℓ‖² + ‖∇_v ℓ‖², and for one sample of a network ∇_W ℓ = g xᵀ with ‖x‖² → dim/λ, beside
which the anchors' share and the readout are of order one. So √dim/‖G‖ → √λ/‖g‖, a function of the
fields: the same engine averages another gradient. It needs data with noise. A sample with G = 0
does not move the network. Where g = 0 but ∂ℓ/∂v ≠ 0, as for a readout of zeros, the readout moves
by √dim: there is no limit, and the drift is not finite.

A mean over b > 1 samples has a norm in which all of them take part: that limit is not built.

Of a spiked tensor the noise of the gradient has ‖G‖² → dim·A/b with the variance A of every entry,
the same for all samples: √dim/‖G‖ → √(b/A).
"""

import functools
import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._precision import as_arrays
from sgdlimits._types import Index, Real
from sgdlimits.dynamics.model.base import Model, Vector, model_of
from sgdlimits.dynamics.model.spiked_tensor import SpikedTensorModel
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.multi_index import MultiIndexFamily
from sgdlimits.tasks.spiked_tensor import SpikedTensor


@functools.singledispatch
def normalised(task: Task, batch: int) -> Task:
    """The task with normalised gradients, as its limit sees it; a family registers its own."""
    del batch
    raise _checks.InputError(
        f"normalised=True is not allowed: no limit with normalised gradients is known for "
        f"{type(task).__name__}"
    )


class NormalisedNetwork(MultiIndexFamily):
    """A multi-index task whose gradients in the fields are divided by ‖g‖/√λ."""

    of: MultiIndexFamily

    def __init__(self, of: MultiIndexFamily):
        self.of = of
        super().__init__(
            width=of.width,
            anchors=of.anchors,
            gram=of.gram,
            means=of.means,
            weights=of.weights,
            labels=of.labels,
            spike=of.spike,
            precision=of.precision,
            ridge=of.ridge,
            trained=of.trained,
            spherical=of.spherical,
            kinks="anywhere",  # those of the loss, and where g = 0
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """That of the task: its gradients are the ones to be divided."""
        return self.of.loss(fields, readout, label)

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """That of the task."""
        return self.of.label(component, anchors, noise)

    @property
    def affine_label_noise(self) -> bool:
        """Whether ``label`` is an affine function of its noise."""
        return self.of.affine_label_noise

    def gradients(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """√λ/‖g‖ times those of the task; zero where all are, infinite where only g is."""
        of_readout, g = self.of.gradients(fields, readout, label)
        # by the largest entry first: the square of a small gradient underflows
        largest = jnp.max(jnp.abs(g))
        zero = largest == 0
        unit = g / jnp.where(zero, 1.0, largest)
        norm = jnp.sqrt(jnp.where(zero, 1.0, jnp.sum(unit**2)))
        scale = jnp.sqrt(jnp.asarray(self.precision, float)) / norm
        over = scale / jnp.where(zero, 1.0, largest)
        still = jnp.where(of_readout == 0, 0.0, jnp.inf * jnp.sign(of_readout))
        return jnp.where(zero, still, over * of_readout), jnp.where(zero, 0.0, scale * unit)

    def examined(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """The loss, and the gradient's entries, at whose zeros its direction may jump."""
        g = self.of.gradients(fields, readout, label)[1]
        return self.of.examined(fields, readout, label) + jnp.sum(jnp.abs(g))


@normalised.register
def normalised_network(task: MultiIndexFamily, batch: int) -> NormalisedNetwork:
    """One sample at a time, with noise."""
    if batch > 1:
        raise _checks.InputError(
            f"batch={batch} is not allowed with normalised=True: the limit is known for batch=1 "
            "only, since the norm of a mean over samples depends on all of them"
        )
    if math.isinf(task.precision):
        raise _checks.InputError(
            "precision=inf is not allowed with normalised=True: without noise the norm of a "
            "gradient does not grow with dim, and there is no limit"
        )
    return NormalisedNetwork(task)


class NormalisedSpikedTensor(SpikedTensor):
    """A spiked tensor whose gradients, but for the ridge, are multiplied by √(b/A)."""

    batch: int = eqx.field(static=True)

    def __init__(self, of: SpikedTensor, batch: int):
        super().__init__(order=of.order, snr=of.snr, ridge=of.ridge)
        self.batch = batch


@normalised.register
def normalised_spiked_tensor(task: SpikedTensor, batch: int) -> NormalisedSpikedTensor:
    """In batches too."""
    return NormalisedSpikedTensor(task, batch)


class NormalisedSpikedTensorModel(Model):
    """Signal and noise over √A, the ridge as it is; x = 0 stays where it is."""

    task: NormalisedSpikedTensor
    step: Float[Array, ""]

    def population_drift(self, vector: Vector) -> Vector:
        """√(b/A) times that of the loss, without the ridge, which is added after."""
        gain = self._gain(vector) * jnp.sqrt(float(self.task.batch))
        ridge = self.task.ridge * jnp.stack([vector[0], 2 * vector[1]])
        loss = SpikedTensorModel(self.task, self.step).population_drift(vector) - ridge
        return gain * loss + ridge

    def corrector(self, vector: Vector) -> Vector:
        """The squared length of the noise does not depend on the state."""
        plain = SpikedTensorModel(self.task, self.step * self.task.batch).corrector(vector)
        return self._gain(vector) ** 2 * plain

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ of the noise, divided by A."""
        plain = SpikedTensorModel(self.task, self.step * self.task.batch).diffusion(vector)
        return self._gain(vector) ** 2 * plain

    def _gain(self, vector: Vector) -> Float[Array, ""]:
        variance, _ = self.task.noise_variances(vector[0] ** 2 + vector[1])
        zero = variance <= 0
        return jnp.where(zero, 0.0, 1 / jnp.sqrt(jnp.where(zero, 1.0, variance)))


@model_of.register(NormalisedSpikedTensor)
def normalised_spiked_tensor_model(
    task: NormalisedSpikedTensor, *, step: float, nodes: int
) -> NormalisedSpikedTensorModel:
    """Everything is in closed form: there are no nodes."""
    del nodes
    return NormalisedSpikedTensorModel(task=as_arrays(task), step=jnp.asarray(step))

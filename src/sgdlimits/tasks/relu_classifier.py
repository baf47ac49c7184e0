"""A two-layer ReLU network for two classes, trained by cross-entropy (BGJ22, (4.1))."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Matrix, Number, Numbers, Real, WholeNumber
from sgdlimits.tasks.multi_index import MultiIndexFamily


class ReluClassifier(MultiIndexFamily):
    r"""ŷ = σ(v · relu(Wx)) on a mixture with labels 0 and 1; both layers are trained."""

    def __init__(
        self,
        *,
        width: WholeNumber,
        anchors: tuple[str, ...],
        means: Matrix,
        labels: Numbers,
        precision: Number,
        ridge: Number,
    ):
        super().__init__(
            width=width,
            anchors=anchors,
            means=means,
            labels=labels,
            precision=precision,
            ridge=ridge,
            trained=True,
            kinks="zero",
        )

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """−y h + log(1 + eʰ) with h = v · relu(s); relu'(0) = 0."""
        h = _output(fields, readout)
        return -label * h + _softplus(h)

    def decide(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None
    ) -> Float[Array, ""]:
        """1 where ŷ > ½, that is h > 0; else 0, as where no neuron is active."""
        return (_output(fields, readout) > 0).astype(float)


def _output(fields: Float[Array, " K"], readout: Float[Array, " K"] | None) -> Float[Array, ""]:
    assert readout is not None
    return jnp.sum(readout * jax.nn.relu(fields))


@jax.custom_jvp
def _softplus(h: Float[Array, ""]) -> Float[Array, ""]:
    """log(1 + eʰ), whose derivative is made of one exponential: JAX takes two and a logarithm."""
    return jax.nn.softplus(h)


_softplus.defjvps(lambda rate, _, h: rate * jax.nn.sigmoid(h))

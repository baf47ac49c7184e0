"""What one sample adds to the Hessian and to the gradient matrix of a multi-index task.

The loss sees a sample x through its fields s = Wx only, so that derivatives in W are derivatives in
s times x: with ℓ = loss(s, v, y),

    ∂²ℓ / ∂W_i ∂W_j = D_ij x xᵀ,   D_ij = ∂²ℓ / ∂s_i ∂s_j          (Hessian)
    ∇_iℓ (∇_jℓ)ᵀ    = D_ij x xᵀ,   D_ij = (∂ℓ/∂s_i) (∂ℓ/∂s_j)      (gradient matrix)

Every block between rows of W is therefore an average of x xᵀ with the weights D. Second derivatives
are those that exist almost surely: a kink, such as that of ReLU at zero, adds nothing.

In all functions ``matrix`` is "hessian" or "gradient", and ``fields``, ``labels`` are those of n
samples.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index, Real
from sgdlimits.tasks import MultiIndexFamily


@eqx.filter_jit
def field_weights(
    task: MultiIndexFamily,
    matrix: str,
    i: Index,
    j: Index,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"] | None,
    labels: Float[Array, " n"],
) -> Float[Array, " n"]:
    """D_ij of every sample: its weight in the block W_i W_j."""

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, ""]:
        gradient = jax.grad(task.loss)
        if matrix == "hessian":
            return jax.grad(lambda s: gradient(s, readout, y)[i])(s)[j]
        g = gradient(s, readout, y)
        return g[i] * g[j]

    return jax.vmap(one)(fields, labels)


@eqx.filter_jit
def cross_weights(
    task: MultiIndexFamily,
    matrix: str,
    j: Index,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"],
    labels: Float[Array, " n"],
) -> Float[Array, "n K"]:
    """The vector a of every sample x whose part of the block vW_j is a xᵀ.

    a = ∂²ℓ / ∂v ∂s_j for the Hessian, (∂ℓ/∂v) (∂ℓ/∂s_j) for the gradient matrix.
    """

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, " K"]:
        if matrix == "hessian":
            return jax.grad(lambda v: jax.grad(task.loss)(s, v, y)[j])(readout)
        along_s, along_v = jax.grad(task.loss, (0, 1))(s, readout, y)
        return along_s[j] * along_v

    return jax.vmap(one)(fields, labels)


@eqx.filter_jit
def readout_matrix(
    task: MultiIndexFamily,
    matrix: str,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"],
    labels: Float[Array, " n"],
    probabilities: Float[Array, " n"],
) -> Float[Array, "K K"]:
    """The block vv: the samples' ∂²ℓ/∂v∂v or (∂ℓ/∂v)(∂ℓ/∂v)ᵀ, summed with probabilities."""

    def one(s: Float[Array, " K"], y: Real) -> Float[Array, "K K"]:
        def loss(v: Float[Array, " K"]) -> Float[Array, ""]:
            return task.loss(s, v, y)

        if matrix == "hessian":
            return jax.hessian(loss)(readout)
        gradient = jax.grad(loss)(readout)
        return jnp.outer(gradient, gradient)

    return jnp.tensordot(probabilities, jax.vmap(one)(fields, labels), axes=1)


@eqx.filter_jit
def products(
    task: MultiIndexFamily,
    matrix: str,
    fields: Float[Array, "n K"],
    readout: Float[Array, " K"] | None,
    labels: Float[Array, " n"],
    moved_fields: Float[Array, "n K"],
    moved_readout: Float[Array, " K"] | None,
) -> tuple[Float[Array, "n K"], Float[Array, "n K"] | None]:
    """Each sample's (K + K) × (K + K) matrix of derivatives in (s, v), times a direction.

    Moving the parameters along (dW, dv) moves the fields of a sample x by ds = dW x, which differs
    from sample to sample, and the readout by dv, which does not.

    Args:
        task: whose loss is differentiated.
        matrix: "hessian" or "gradient".
        fields: s of every sample.
        readout: v, None where it is fixed.
        labels: of every sample.
        moved_fields: ds of every sample.
        moved_readout: dv, None where the readout is fixed.

    Returns:
        The parts of the products along s and along v, the latter None where it is fixed.
    """

    def one(
        s: Float[Array, " K"], y: Real, ds: Float[Array, " K"]
    ) -> tuple[Float[Array, " K"], Float[Array, " K"] | None]:
        def gradient(s: Any, v: Any) -> Any:
            if v is None:
                return jax.grad(task.loss)(s, v, y), None
            return jax.grad(task.loss, (0, 1))(s, v, y)

        if matrix == "hessian":
            return jax.jvp(gradient, (s, readout), (ds, moved_readout))[1]
        along_s, along_v = gradient(s, readout)
        change = along_s @ ds + (0.0 if along_v is None else along_v @ moved_readout)
        return along_s * change, None if along_v is None else along_v * change

    return jax.vmap(one)(fields, labels, moved_fields)

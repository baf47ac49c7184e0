"""The four expectations that drive a multi-index task, and the motion they produce."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Real
from sgdlimits.dynamics.model.frame import inward_of
from sgdlimits.tasks.multi_index import MultiIndexFamily


class Moments(NamedTuple):
    """Expectations of the loss's gradients times the data; or the same products of one sample.

    g = ∂ℓ/∂s is the gradient in the fields s = Wx, Ax are the anchor fields, s⊥ the part of s that
    is orthogonal to the anchors.
    """

    readout: Float[Array, " K"]  # E[∂ℓ/∂v]
    anchors: Float[Array, "K r"]  # E[g (Ax)ᵀ]
    orthogonal: Float[Array, "K K"]  # E[g s⊥ᵀ]
    square: Float[Array, "K K"]  # E[g gᵀ]


def motion(
    task: MultiIndexFamily,
    state: dict[str, Float[Array, "..."]],
    moments: Moments,
    step: Real,
    share: Real = 1.0,
) -> dict[str, Float[Array, "..."]]:
    r"""Change of the statistics per unit of time; linear in ``moments``.

    - dv/dt = −E[∂ℓ/∂v] − αv
    - dM/dt = −E[g (Ax)ᵀ] − αM
    - dR/dt = −E[g s⊥ᵀ + s⊥ gᵀ] − 2αR + (c/λ) E[g gᵀ]

    On the sphere the radial part is subtracted: with q_i = −2E[g_i s_i] + (c/λ)E[g_i²] the change
    of ‖W_i‖², row i of M loses M_i q_i/2 and R_ij loses R_ij (q_i + q_j)/2. The ridge is radial.

    ``share`` is that of the ridge: where moments are a sum over some components only, motions are
    summed too, and one of them has all of the ridge.
    """
    M, R, ridge = state["M"], state["R"], share * task.ridge
    correction = step / task.precision * moments.square
    dM = -moments.anchors
    dR = correction - moments.orthogonal - moments.orthogonal.T
    if task.spherical:
        inward = inward_of(task, M)
        inside = jnp.sum(inward * moments.anchors, axis=1)
        radial = jnp.diag(correction) - 2 * (inside + jnp.diag(moments.orthogonal))
        # divided by ‖W_i‖², which is 1: off the sphere by rounding, it then stays there
        radial = radial / (jnp.sum(inward * M, axis=1) + jnp.diag(R))
        dM = dM - M * radial[:, None] / 2
        dR = dR - R * (radial[:, None] + radial[None, :]) / 2
    else:
        dM = dM - ridge * M
        dR = dR - 2 * ridge * R
    change = {"M": dM, "R": dR}
    if task.trained:
        change["v"] = -moments.readout - ridge * state["v"]
    return change

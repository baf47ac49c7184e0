"""Exact moments of squared losses between committees of erf or square units."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Real
from sgdlimits.dynamics.model.moments import Moments
from sgdlimits.gaussian.erf import erf_curvature, erf_gradient, erf_product, erf_slopes
from sgdlimits.gaussian.wick import quadratic_second, quadratic_square_second
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily


def committee_moments(
    task: MultiIndexFamily, committee: Committee, state: dict[str, Float[Array, "..."]]
) -> Moments:
    """The moments of a task that declares a ``Committee``, without quadrature.

    Fields are written as (s⊥, a) with covariance diag(R, P)/λ and s = s⊥ + M P⁻¹ a: everything that
    multiplies s⊥ is then proportional to R, with no cancellation as R vanishes.
    """
    K, r = task.width, len(task.anchors)
    readout = state["v"] if task.trained else jnp.ones(K)
    covariance = jax.scipy.linalg.block_diag(state["R"], task.gram) / task.precision
    mix = jnp.concatenate([jnp.eye(K), state["M"] @ jnp.linalg.inv(task.gram)], axis=1)
    # every unit whose output enters y − f, as a combination of (s⊥, a), and its coefficient
    units = jnp.concatenate([mix, jnp.eye(K + r)[K:]])
    coefficients = jnp.concatenate(
        [-committee.student_scale * readout, jnp.full(r, committee.teacher_scale)]
    )
    slope = -committee.loss_weight * committee.student_scale
    moments = _square if committee.activation == "square" else _erf
    outputs, gradients, squares = moments(covariance, units, coefficients, committee.noise, K)
    weighted = slope * readout[:, None] * gradients
    return Moments(
        readout=slope * outputs,
        anchors=weighted[:, K:],
        orthogonal=weighted[:, :K],
        square=slope**2 * jnp.outer(readout, readout) * squares,
    )


Parts = tuple[Float[Array, " K"], Float[Array, "K m"], Float[Array, "K K"]]


def _square(
    covariance: Float[Array, "m m"],
    units: Float[Array, "u m"],
    coefficients: Float[Array, " u"],
    noise: Real,
    K: int,
) -> Parts:
    """E[e s²], E[e 2s z] and E[e² 2s 2s] for the residual e = zᵀBz + √noise ε."""
    form = units.T @ (coefficients[:, None] * units)
    mix = units[:K]
    second = quadratic_second(form, covariance)
    fourth = quadratic_square_second(form, covariance) + noise * covariance
    outputs = jnp.einsum("im,mn,in->i", mix, second, mix)
    return outputs, 2 * mix @ second, 4 * mix @ fourth @ mix.T


def _erf(
    covariance: Float[Array, "m m"],
    units: Float[Array, "u m"],
    coefficients: Float[Array, " u"],
    noise: Real,
    K: int,
) -> Parts:
    """E[e σ(s)], E[e σ'(s) z] and E[e² σ'(s)σ'(s)] for the residual e = Σ c_u σ(u) + √noise ε."""
    C = units @ covariance @ units.T  # among units
    D = covariance @ units.T  # of (s⊥, a) with units
    variance = jnp.diag(C)
    size, m = C.shape[0], covariance.shape[0]

    def output(i: Array, u: Array) -> Array:
        return erf_product(variance[i], C[i, u], variance[u])

    def gradient(i: Array, z: Array, u: Array) -> Array:
        rows = [
            [C[i, i], D[z, i], C[i, u]],
            [D[z, i], covariance[z, z], D[z, u]],
            [C[i, u], D[z, u], C[u, u]],
        ]
        return erf_gradient(jnp.stack([jnp.stack(row) for row in rows]))

    def curvature(i: Array, j: Array, u: Array, w: Array) -> Array:
        index = jnp.stack([i, j, u, w])
        return erf_curvature(C[index[:, None], index[None, :]])

    def over(function: Callable[..., Array], *sizes: int) -> Array:
        for axis in reversed(range(len(sizes))):
            function = jax.vmap(function, [0 if a == axis else None for a in range(len(sizes))])
        return function(*[jnp.arange(size) for size in sizes])

    outputs = over(output, K, size) @ coefficients
    gradients = over(gradient, K, m, size) @ coefficients
    squares = over(curvature, K, K, size, size) @ coefficients @ coefficients
    slopes = erf_slopes(variance[:K, None], C[:K, :K], variance[None, :K])
    return outputs, gradients, squares + noise * slopes

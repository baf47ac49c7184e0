"""Exact moments and diffusion of squared losses between committees of erf or square units."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._types import Index, Real
from sgdlimits.dynamics.model.frame import inward_of
from sgdlimits.dynamics.model.moments import Moments, motion
from sgdlimits.gaussian.arccosine import relu_product
from sgdlimits.gaussian.erf import erf_curvature, erf_gradient, erf_product, erf_slopes
from sgdlimits.gaussian.tilted import tilted, tilted_fourth, tilted_second
from sgdlimits.gaussian.wick import quadratic_second, quadratic_square_mean, quadratic_square_second
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily

_PRODUCTS = {"erf": erf_product, "relu": relu_product}  # means of products of two units


def committee_moments(
    task: MultiIndexFamily, committee: Committee, state: dict[str, Float[Array, "..."]]
) -> Moments:
    """The moments of a task that declares a ``Committee``, without quadrature.

    Fields are written as (s⊥, a) with covariance diag(R, P)/λ and s = s⊥ + M P⁻¹ a: everything that
    multiplies s⊥ is then proportional to R, with no cancellation as R vanishes.
    """
    return moments_across(task, committee, state, jnp.zeros((task.width, 0)))[0]


def moments_across(
    task: MultiIndexFamily,
    committee: Committee,
    state: dict[str, Float[Array, "..."]],
    cross: Float[Array, "K n"],
) -> tuple[Moments, Float[Array, "K n"]]:
    """The same, and E[g u⊥ᵀ] with fields u⊥ that have covariance ``cross``/λ with s⊥."""
    K, n = cross.shape
    readout, covariance, units, coefficients = _residual(task, committee, state)
    m = len(covariance)
    # their own variance is of no account
    further = jnp.concatenate([cross / task.precision, jnp.zeros((m - K, n))])
    covariance = jnp.block([[covariance, further], [further.T, jnp.zeros((n, n))]])
    units = jnp.pad(units, ((0, 0), (0, n)))
    slope = -committee.loss_weight * committee.student_scale
    moments = _square if committee.activation == "square" else _erf
    outputs, gradients, squares = moments(covariance, units, coefficients, committee.noise, K)
    weighted = slope * readout[:, None] * gradients
    result = Moments(
        readout=slope * outputs,
        anchors=weighted[:, K:m],
        orthogonal=weighted[:, :K],
        square=slope**2 * jnp.outer(readout, readout) * squares,
    )
    return result, weighted[:, m:]


def committee_risk(
    task: MultiIndexFamily, state: dict[str, Float[Array, "..."]]
) -> Float[Array, ""]:
    """Half the mean square of the residual of a task whose risk is that of a ``Committee``."""
    committee = task.squared
    assert committee is not None
    _, covariance, units, coefficients = _residual(task, committee, state)
    if committee.activation == "square":
        square = quadratic_square_mean(units.T @ (coefficients[:, None] * units), covariance)
    else:
        C = units @ covariance @ units.T
        variance = jnp.diag(C)
        product = _PRODUCTS[committee.activation]
        square = coefficients @ product(variance[:, None], C, variance[None, :]) @ coefficients
    return committee.loss_weight / 2 * (jnp.maximum(square, 0.0) + committee.noise)


def committee_diffusion(
    task: MultiIndexFamily,
    committee: Committee,
    state: dict[str, Float[Array, "..."]],
    step: Real,
) -> Float[Array, "n n"]:
    """c·Cov of one sample's motion for square units, at any width.

    The gradient in the fields is g = e·2σv∘s with the residual e: every statistic moves by e·zᵀXz +
    e²·zᵀYz, X from g s⊥ᵀ and g aᵀ, Y from the second-order part (c/λ) g gᵀ, whose norm fluctuates.
    """
    K = task.width
    readout, covariance, units, coefficients = _residual(task, committee, state)
    slope = -committee.loss_weight * committee.student_scale
    form = units.T @ (coefficients[:, None] * units)
    fields, mix = jnp.eye(len(covariance)), units[:K]
    gradients = 2 * slope * readout[:, None] * mix
    nothing = Moments(jnp.zeros(K), jnp.zeros((K, len(task.anchors))), *jnp.zeros((2, K, K)))
    ridge = task.layout.ravel(motion(task, state, nothing, step))

    def both(i: Index, j: Index) -> Array:
        """What the products of two fields with e and with e² add to the motion."""
        of_residual = Moments(
            readout=slope * mix[:, i] * mix[:, j],
            anchors=jnp.outer(gradients[:, i], fields[K:, j]),
            orthogonal=jnp.outer(gradients[:, i], fields[:K, j]),
            square=nothing.square,
        )
        of_its_square = nothing._replace(square=jnp.outer(gradients[:, i], gradients[:, j]))
        parts = (motion(task, state, moments, step) for moments in (of_residual, of_its_square))
        return jnp.stack([task.layout.ravel(part) - ridge for part in parts])

    # one column for each pair of fields, with e and then with e²
    i, j = np.triu_indices(len(covariance))
    rows, columns = jnp.asarray(i), jnp.asarray(j)
    every = jax.vmap(both, out_axes=-1)
    forms = every(rows, columns) + every(columns, rows)
    forms = jnp.concatenate(list(forms * np.where(i == j, 0.5, 1.0)), axis=1)
    series = tilted(form, covariance, committee.noise, 4)
    mean = forms @ jnp.concatenate([tilted_second(series, n)[i, j] for n in (1, 2)])
    pairs = i[:, None], j[:, None], i, j
    two, three, four = (tilted_fourth(series, n)[pairs] for n in (2, 3, 4))
    second = forms @ jnp.block([[two, three], [three, four]]) @ forms.T
    return step * (second - jnp.outer(mean, mean))


def _residual(
    task: MultiIndexFamily, committee: Committee, state: dict[str, Float[Array, "..."]]
) -> tuple[Float[Array, " K"], Float[Array, "m m"], Float[Array, "u m"], Float[Array, " u"]]:
    """Readout, covariance of (s⊥, a), and y − f = Σ c_u σ(unit u · (s⊥, a)): units and c."""
    K, r = task.width, len(task.anchors)
    readout = state["v"] if task.trained else jnp.ones(K)
    covariance = jax.scipy.linalg.block_diag(state["R"], task.gram) / task.precision
    mix = jnp.concatenate([jnp.eye(K), inward_of(task, state["M"])], axis=1)
    units = jnp.concatenate([mix, jnp.eye(K + r)[K:]])
    teacher = jnp.broadcast_to(jnp.asarray(committee.teacher_scale, float), (r,))
    coefficients = jnp.concatenate([-committee.student_scale * readout, teacher])
    return readout, covariance, units, coefficients


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

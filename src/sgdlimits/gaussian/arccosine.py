"""Gaussian averages of the ReLU and its derivative: arc-cosine kernels of order 0 and 1.

The fields (x, y) are centred and Gaussian, with variances c₁₁, c₂₂ and covariance
c₁₂ = √(c₁₁c₂₂) cos θ. At the kink step(0) = ½, so that a field of variance 0 is the limit of small
variances.

Derivatives of F = E f(x, y) are not taken through the square roots in the formulas, which would
give infinities where x and y are parallel. They come from ∂F/∂c₁₂ = E[∂²f/∂x∂y] and
∂F/∂c₁₁ = ½E[∂²f/∂x²], which are finite there. Two kinds of derivatives do not exist and are set to
0: that of ``step_product`` for parallel fields, and those with respect to a variance that is 0.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits.gaussian._shapes import square


def step_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Probability that two Gaussian fields are both positive, the kernel of order 0.

        E[1(x > 0) 1(y > 0)] = (π − θ)/(2π)

    Source: Cho and Saul (CS09); J24 Thm 8.6.

    >>> round(float(step_product(1.0, 0.5, 1.0)), 4)  # θ = π/3
    0.3333
    """
    return _step_product(*_floats(c11, c12, c22))


def relu_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of two ReLUs, the kernel of order 1.

        E[relu(x) relu(y)] = √(c₁₁c₂₂) (sin θ + (π − θ) cos θ)/(2π)

    Source: Cho and Saul (CS09); J24 Thm 8.6.

    >>> round(float(relu_product(2.0, 2.0, 2.0)), 4)  # x = y: c₁₁/2
    1.0
    """
    return _relu_product(*_floats(c11, c12, c22))


def step_relu(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of a step of the first field and a ReLU of the second.

        E[1(x > 0) relu(y)] = √c₂₂ (1 + cos θ)/(2√(2π))

    Source: integration by parts in y.

    >>> round(float(step_relu(1.0, 1.0, 1.0)), 4)  # x = y: 1/√(2π)
    0.3989
    """
    c11, c12, c22 = _floats(c11, c12, c22)
    return (_root(c22) + _over(c12, _root(c11))) / (2 * jnp.sqrt(2 * jnp.pi))


def relu_gradient(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of a step, a field and a ReLU, which the gradient of a ReLU committee needs.

        E[1(x > 0) y relu(z)] = c_xy √D/(2π c_xx) + c_yz E[1(x > 0) 1(z > 0)],
        D = c_xx c_zz − c_xz²,

    for a covariance of (x, y, z) of shape (..., 3, 3).

    Source: integration by parts in y.

    >>> import jax.numpy as jnp
    >>> round(float(relu_gradient(jnp.ones((3, 3)))), 4)  # x = y = z: ½
    0.5
    """
    c = square("covariance", covariance, 3)
    xx, xz, zz = c[..., 0, 0], c[..., 0, 2], c[..., 2, 2]
    edge = _over(c[..., 0, 1] * _root(xx * zz - xz**2), 2 * jnp.pi * xx)
    return edge + c[..., 1, 2] * step_product(xx, xz, zz)


@jax.custom_jvp
def _step_product(c11: Array, c12: Array, c22: Array) -> Array:
    # θ = arctan2(√D, c₁₂); the form below gives θ = π/2 at (0, 0), hence ¼.
    return (jnp.pi / 2 + jnp.arctan2(c12, _root(c11 * c22 - c12**2))) / (2 * jnp.pi)


@_step_product.defjvp
def _step_product_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    c11, c12, c22 = primals
    d11, d12, d22 = tangents
    at_origin = _over(jnp.ones_like(c12), 2 * jnp.pi * _root(c11 * c22 - c12**2))
    slope = d12 - _over(c12, 2 * c11) * d11 - _over(c12, 2 * c22) * d22
    return _step_product(c11, c12, c22), at_origin * slope


@jax.custom_jvp
def _relu_product(c11: Array, c12: Array, c22: Array) -> Array:
    return _root(c11 * c22 - c12**2) / (2 * jnp.pi) + c12 * _step_product(c11, c12, c22)


@_relu_product.defjvp
def _relu_product_jvp(
    primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    c11, c12, c22 = primals
    d11, d12, d22 = tangents
    edge = _root(c11 * c22 - c12**2) / (4 * jnp.pi)
    slope = _step_product(c11, c12, c22) * d12 + _over(edge, c11) * d11 + _over(edge, c22) * d22
    return _relu_product(c11, c12, c22), slope


def _root(value: Array) -> Array:
    """Square root that is 0 with derivative 0 where the argument is not positive."""
    positive = value > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, value, 1.0)), 0.0)


def _over(numerator: Array, denominator: Array) -> Array:
    """Quotient that is 0 with derivative 0 where the denominator is not positive."""
    positive = denominator > 0
    return jnp.where(positive, numerator / jnp.where(positive, denominator, 1.0), 0.0)


def _floats(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> tuple[Array, Array, Array]:
    """Broadcast to arrays of one floating dtype: custom derivatives need tangents that match."""
    dtype = jnp.result_type(c11, c12, c22, float)
    first, cross, second = jnp.broadcast_arrays(*(jnp.asarray(c, dtype) for c in (c11, c12, c22)))
    return first, cross, second

"""Gaussian averages of the ReLU and its derivative: arc-cosine kernels of order 0 and 1.

For centred Gaussian (x, y) with variances c11, c22 and covariance c12 = sqrt(c11 c22) cos(theta).
Conventions at the kink: step(0) = 1/2, so a field of variance 0 behaves as the symmetric limit.

Derivatives come from E[d f / d c12] = E[f_xy], E[d f / d c11] = E[f_xx] / 2, not from the square
root, and are therefore finite when x and y are parallel. Two derivatives do not exist there (that
of ``step_product``, and those in the direction of a variance that is exactly 0); they are set to 0.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits.gaussian._shapes import square


def step_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Probability that two Gaussian fields are both positive, the kernel of order 0.

        E[1(x > 0) 1(y > 0)] = (pi - theta) / (2 pi)

    Source: Cho and Saul (2009); 004 Thm 8.6.

    >>> round(float(step_product(1.0, 0.5, 1.0)), 4)  # theta = pi / 3
    0.3333
    """
    return _step_product(*_floats(c11, c12, c22))


def relu_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of two ReLUs, the kernel of order 1.

        E[relu(x) relu(y)] = sqrt(c11 c22) (sin theta + (pi - theta) cos theta) / (2 pi)

    Source: Cho and Saul (2009); 004 Thm 8.6.

    >>> round(float(relu_product(2.0, 2.0, 2.0)), 4)  # x = y: c / 2
    1.0
    """
    return _relu_product(*_floats(c11, c12, c22))


def step_relu(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of a step of the first field and a ReLU of the second.

        E[1(x > 0) relu(y)] = sqrt(c22) (1 + cos theta) / (2 sqrt(2 pi))

    Source: integration by parts in y.

    >>> round(float(step_relu(1.0, 1.0, 1.0)), 4)  # x = y: 1 / sqrt(2 pi)
    0.3989
    """
    c11, c12, c22 = _floats(c11, c12, c22)
    return (_root(c22) + _over(c12, _root(c11))) / (2 * jnp.sqrt(2 * jnp.pi))


def relu_gradient(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of a step, a field and a ReLU, what the gradient of a ReLU committee needs.

        E[1(x > 0) y relu(z)] = c_xy sqrt(det) / (2 pi c_xx) + c_yz E[1(x > 0) 1(z > 0)],
        det = c_xx c_zz - c_xz^2,

    for a covariance of shape (..., 3, 3).

    Source: integration by parts in y.

    >>> import jax.numpy as jnp
    >>> round(float(relu_gradient(jnp.ones((3, 3)))), 4)  # x = y = z: 1 / 2
    0.5
    """
    c = square("covariance", covariance, 3)
    xx, xz, zz = c[..., 0, 0], c[..., 0, 2], c[..., 2, 2]
    edge = _over(c[..., 0, 1] * _root(xx * zz - xz**2), 2 * jnp.pi * xx)
    return edge + c[..., 1, 2] * step_product(xx, xz, zz)


@jax.custom_jvp
def _step_product(c11: Array, c12: Array, c22: Array) -> Array:
    # theta = arctan2(sqrt(det), c12); at 0, 0 the form below gives theta = pi / 2, hence 1 / 4.
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

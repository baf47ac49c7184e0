"""Gaussian averages of the error function g(x) = erf(x / sqrt 2), in closed form.

All of them rest on one remark: g'(x) = sqrt(2/pi) exp(-x^2 / 2) is itself a Gaussian weight, so
each factor g' tilts the law of the other fields into another centred Gaussian,

    E[g'(w) F(y)] = sqrt(2/pi) (1 + C_ww)^(-1/2) E'[F(y)],
    C'_yz = C_yz - C_yw (1 + C_ww)^(-1) C_wz.

The tilted denominators are at least 1, so values and derivatives of any order are finite for
singular covariances too: repeated fields and vanishing fields are allowed.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits.gaussian._shapes import square


def erf_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of two error functions.

        E[g(x) g(y)] = (2/pi) arcsin(c12 / sqrt((1 + c11)(1 + c22)))

    for centred Gaussian (x, y) with variances c11, c22 and covariance c12; arguments broadcast.
    The arcsine is written as an arctangent, which stays accurate for large variances.

    Source: Saad and Solla (1995), I2; 003.

    >>> round(float(erf_product(1.0, 1.0, 1.0)), 4)  # (2/pi) arcsin(1/2)
    0.3333
    """
    c11, c12, c22 = jnp.asarray(c11), jnp.asarray(c12), jnp.asarray(c22)
    rest = 1 + c11 + c22 + (c11 * c22 - c12**2)  # (1 + c11)(1 + c22) - c12^2
    return (2 / jnp.pi) * jnp.arctan2(c12, jnp.sqrt(rest))


def erf_gradient(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of a derivative, a field and an error function.

        E[g'(x) y g(z)] = (2/pi) (c_yz (1 + c_xx) - c_xy c_xz) / ((1 + c_xx) sqrt(L)),
        L = (1 + c_xx)(1 + c_zz) - c_xz^2,

    for centred Gaussian (x, y, z) with a covariance of shape (..., 3, 3).

    Source: Saad and Solla (1995), I3; 003.

    >>> import jax.numpy as jnp
    >>> round(float(erf_gradient(jnp.ones((3, 3)))), 4)  # x = y = z: 1 / (pi sqrt 3)
    0.1838
    """
    c = square("covariance", covariance, 3)
    xx = 1 + c[..., 0, 0]
    yz = c[..., 1, 2] - c[..., 1, 0] * c[..., 0, 2] / xx
    zz = c[..., 2, 2] - c[..., 2, 0] ** 2 / xx
    return (2 / jnp.pi) * yz / jnp.sqrt(xx * (1 + zz))


def erf_curvature(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of two derivatives and two error functions.

        E[g'(w) g'(x) g(y) g(z)] = (4/pi^2) L4^(-1/2) arcsin(L0 / sqrt(L1 L2)),

    where L4, L1, L2, L0 are the minors of 1 + C on (w, x), (w, x, y), (w, x, z) and on rows
    (w, x, y) with columns (w, x, z); the covariance has shape (..., 4, 4).

    Source: Saad and Solla (1995), I4; 003.

    >>> import jax.numpy as jnp
    >>> round(float(erf_curvature(jnp.zeros((4, 4)).at[2:, 2:].set(1.0))), 4)  # (2/pi) / 3
    0.2122
    """
    c = square("covariance", covariance, 4)
    ww, wx, xx = 1 + c[..., 0, 0], c[..., 0, 1], 1 + c[..., 1, 1]
    minor = ww * xx - wx**2

    def tilted(i: int, j: int) -> Float[Array, "..."]:
        cross = xx * c[..., 0, i] * c[..., 0, j] + ww * c[..., 1, i] * c[..., 1, j]
        cross -= wx * (c[..., 0, i] * c[..., 1, j] + c[..., 1, i] * c[..., 0, j])
        return c[..., i, j] - cross / minor

    product = erf_product(tilted(2, 2), tilted(2, 3), tilted(3, 3))
    return (2 / jnp.pi) * product / jnp.sqrt(minor)


def erf_slopes(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of two derivatives, the weight of label noise in the corrector.

        E[g'(x) g'(y)] = (2/pi) / sqrt((1 + c11)(1 + c22) - c12^2)

    Source: Saad and Solla (1995); 003.

    >>> round(float(erf_slopes(0.0, 0.0, 0.0)), 4)  # g'(0)^2 = 2/pi
    0.6366
    """
    c11, c12, c22 = jnp.asarray(c11), jnp.asarray(c12), jnp.asarray(c22)
    return (2 / jnp.pi) / jnp.sqrt(1 + c11 + c22 + (c11 * c22 - c12**2))

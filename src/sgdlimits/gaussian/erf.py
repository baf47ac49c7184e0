"""Gaussian averages of the error function g(x) = erf(x/√2), in closed form.

All of them rest on one remark: g'(x) = √(2/π) e^(−x²/2) is itself a Gaussian weight, so that each
factor g' turns the law of the other fields into another centred Gaussian,

    E[g'(w) F(y)] = √(2/π) (1 + C_ww)^(−½) E'[F(y)],   C'_yz = C_yz − C_yw C_wz/(1 + C_ww),

E' being the average with the covariance C'. The denominators are at least 1, so that values and
derivatives of any order are finite for singular covariances too: fields may be equal or vanish.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits.gaussian._shapes import square


def erf_product(c11: ArrayLike, c12: ArrayLike, c22: ArrayLike) -> Float[Array, "..."]:
    """Average of two error functions.

        E[g(x) g(y)] = (2/π) arcsin(c₁₂/√((1 + c₁₁)(1 + c₂₂)))

    for centred Gaussian (x, y) with variances c₁₁, c₂₂ and covariance c₁₂; arguments broadcast.
    The code has an arctangent in place of the arcsine: it stays accurate for large variances.

    Source: Saad and Solla (SS95), I₂; L23.

    >>> round(float(erf_product(1.0, 1.0, 1.0)), 4)  # (2/π) arcsin ½
    0.3333
    """
    c11, c12, c22 = jnp.asarray(c11), jnp.asarray(c12), jnp.asarray(c22)
    rest = 1 + c11 + c22 + (c11 * c22 - c12**2)  # (1 + c₁₁)(1 + c₂₂) − c₁₂²
    return (2 / jnp.pi) * jnp.arctan2(c12, jnp.sqrt(rest))


def erf_gradient(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of a derivative, a field and an error function.

        E[g'(x) y g(z)] = (2/π)(c_yz(1 + c_xx) − c_xy c_xz)/((1 + c_xx)√Λ₃),
        Λ₃ = (1 + c_xx)(1 + c_zz) − c_xz²,

    for centred Gaussian (x, y, z) with a covariance of shape (..., 3, 3).

    Source: Saad and Solla (SS95), I₃; L23.

    >>> import jax.numpy as jnp
    >>> round(float(erf_gradient(jnp.ones((3, 3)))), 4)  # x = y = z: 1/(π√3)
    0.1838
    """
    c = square("covariance", covariance, 3)
    xx = 1 + c[..., 0, 0]
    yz = c[..., 1, 2] - c[..., 1, 0] * c[..., 0, 2] / xx
    zz = c[..., 2, 2] - c[..., 2, 0] ** 2 / xx
    return (2 / jnp.pi) * yz / jnp.sqrt(xx * (1 + zz))


def erf_curvature(covariance: ArrayLike) -> Float[Array, "..."]:
    """Average of two derivatives and two error functions.

        E[g'(w) g'(x) g(y) g(z)] = (4/π²) arcsin(Λ₀/√(Λ₁Λ₂))/√Λ₄,

    where Λ₄, Λ₁, Λ₂ are the minors of I + C on (w, x), (w, x, y) and (w, x, z), and Λ₀ is the minor
    of rows (w, x, y) and columns (w, x, z); the covariance C of (w, x, y, z) has shape (..., 4, 4).

    Source: Saad and Solla (SS95), I₄; L23.

    >>> import jax.numpy as jnp
    >>> round(float(erf_curvature(jnp.zeros((4, 4)).at[2:, 2:].set(1.0))), 4)  # (2/π)/3
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

        E[g'(x) g'(y)] = (2/π)/√((1 + c₁₁)(1 + c₂₂) − c₁₂²)

    Source: Saad and Solla (SS95); L23.

    >>> round(float(erf_slopes(0.0, 0.0, 0.0)), 4)  # g'(0)² = 2/π
    0.6366
    """
    c11, c12, c22 = jnp.asarray(c11), jnp.asarray(c12), jnp.asarray(c22)
    return (2 / jnp.pi) / jnp.sqrt(1 + c11 + c22 + (c11 * c22 - c12**2))

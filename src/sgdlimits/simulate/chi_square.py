"""Chi-square random numbers from a fixed number of normal or uniform ones, without rejection."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

FEW = 100  # below this many degrees of freedom, add up exponentials; from here on, the series

# x/n = 1 + Σ_j ε^j P_j(z) with ε = √(2/n) maps a standard normal z to a chi-square x with n degrees
# of freedom. Row j holds the coefficients of P_j, highest power first. They follow order by order
# from dx/dz = φ(z)/p_n(x), i.e. y y'' ε² = y'(−z ε² y + y'(y − 1 + ε²)) for y = x/n.
_SERIES: tuple[tuple[float, ...], ...] = (
    (1.0, 0.0),
    (1 / 3, 0.0, -1 / 3),
    (1 / 36, 0.0, -7 / 36, 0.0),
    (-1 / 270, 0.0, -7 / 810, 0.0, 8 / 405),
    (1 / 4320, 0.0, 8 / 1215, 0.0, -433 / 38880, 0.0),
    (1 / 17010, 0.0, -1 / 840, 0.0, -923 / 204120, 0.0, 184 / 25515),
    (
        *(-139 / 5443200, 0.0, -1451 / 48988800, 0.0),
        *(289517 / 146966400, 0.0, 289717 / 146966400, 0.0),
    ),
    (
        *(1 / 204120, 0.0, 769 / 9185400, 0.0, -151 / 874800, 0.0),
        *(-104989 / 55112400, 0.0, 2248 / 3444525),
    ),
)


def from_normal(z: Float[Array, "..."], dof: Float[Array, ""]) -> Float[Array, "..."]:
    """A chi-square number with ``dof`` ≥ 100 degrees of freedom from a standard normal one.

    The Cornish–Fisher series to eighth order: its distribution function is within 1e-10 of the
    exact one at dof = 100 and within 2e-13 at dof = 500, far below what 10¹⁸ draws resolve.
    """
    epsilon = jnp.sqrt(2 / dof)
    total = jnp.zeros_like(z)
    for coefficients in reversed(_SERIES):
        total = epsilon * (jnp.polyval(jnp.asarray(coefficients), z) + total)
    return dof * (1 + total)


def from_uniforms(key: Array, dof: int, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Chi-square numbers with few degrees of freedom: exactly, two degrees per exponential."""
    pairs, odd = divmod(dof, 2)
    exponentials = jax.random.exponential(key, (pairs, *shape))
    total = 2 * jnp.sum(exponentials, axis=0)
    if odd:
        total = total + jax.random.normal(jax.random.fold_in(key, 1), shape) ** 2
    return total

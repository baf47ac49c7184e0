r"""Moments weighted with powers of a residual e = zᵀBz + √Δ ε, z ~ N(0, C) and ε ~ N(0, 1).

Weighted with exp(te) the fields stay Gaussian: the weight integrates to

    D(t) = det(I − 2tCB)^(−½) exp(t²Δ/2) = exp(t²Δ/2 + Σ_j (2t)ʲ tr((BC)ʲ)/(2j)),

and their covariance becomes C(t) = (C⁻¹ − 2tB)⁻¹ = Σ_j (2t)ʲ C(BC)ʲ. The coefficients of both
series give every moment with a power of e, at a cost that is polynomial in the number of fields:
those of one step of SGD on a squared loss with square activation have degree up to twelve.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits.gaussian._shapes import square


class Tilted(NamedTuple):
    """Coefficients of D(t) and of C(t), up to some power of t."""

    weights: Float[Array, " n"]
    covariances: Float[Array, "n m m"]


def tilted(form: ArrayLike, covariance: ArrayLike, noise: ArrayLike, power: int) -> Tilted:
    """The series up to this power of t.

    >>> import jax.numpy as jnp
    >>> tilted(jnp.eye(1), jnp.eye(1), 0.0, 2).weights.tolist()  # 1/√(1 − 2t)
    [1.0, 1.0, 1.5]
    """
    c = square("covariance", covariance)
    b = square("form", form, c.shape[-1])
    covariances, powers = [c], [jnp.zeros((), c.dtype)]
    turn = 2 * b @ c
    product = jnp.eye(c.shape[-1], dtype=c.dtype)
    for j in range(1, power + 1):
        covariances.append(covariances[-1] @ turn)
        product = product @ turn
        powers.append(jnp.trace(product) / 2 + (jnp.asarray(noise) if j == 2 else 0))
    weights = [jnp.ones((), c.dtype)]
    for n in range(1, power + 1):  # D′ = D · (log D)′
        terms = [powers[j] * weights[n - j] for j in range(1, n + 1)]
        weights.append(jnp.sum(jnp.stack(terms)) / n)
    return Tilted(jnp.stack(weights), jnp.stack(covariances))


def tilted_second(series: Tilted, power: int) -> Float[Array, "m m"]:
    """E[eⁿ zzᵀ] = n! Σ_{a+b=n} D_a C_b for n = ``power``.

    >>> import jax.numpy as jnp
    >>> tilted_second(tilted(jnp.eye(1), jnp.eye(1), 0.0, 2), 2).tolist()  # E z⁶
    [[15.0]]
    """
    weights = math.factorial(power) * series.weights[: power + 1][::-1]
    return jnp.tensordot(weights, series.covariances[: power + 1], 1)


def tilted_fourth(series: Tilted, power: int) -> Float[Array, "m m m m"]:
    """E[eⁿ z_i z_j z_k z_l] for n = ``power``.

        n! Σ_{a+b+c=n} D_a (C_b,ij C_c,kl + C_b,ik C_c,jl + C_b,il C_c,jk)

    Source: the n-th derivative at t = 0 of D(t) times the fourth moment under C(t).

    >>> import jax.numpy as jnp
    >>> tilted_fourth(tilted(jnp.eye(1), jnp.eye(1), 0.0, 4), 4).tolist()  # E z¹²
    [[[[10395.0]]]]
    """
    size = power + 1
    falling = jnp.concatenate([series.weights[:size][::-1], jnp.zeros_like(series.weights[:size])])
    # row b, column c: the weight D_{n−b−c}, or zero
    table = math.factorial(power) * jnp.stack([falling[b : b + size] for b in range(size)])
    covariances = series.covariances[:size]
    pairs = jnp.einsum("bij,bkl->ijkl", covariances, jnp.tensordot(table, covariances, 1))
    return pairs + jnp.swapaxes(pairs, 1, 2) + jnp.swapaxes(pairs, 1, 3)

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
        powers.append(jnp.trace(product) / 2 + (jnp.asarray(noise) if j == 2 else 0.0))
    weights = [jnp.ones((), c.dtype)]
    for n in range(1, power + 1):  # D′ = D · (log D)′
        weights.append(sum(powers[j] * weights[n - j] for j in range(1, n + 1)) / n)
    return Tilted(jnp.stack(weights), jnp.stack(covariances))


def tilted_mean(series: Tilted, forms: Float[Array, "k m m"], power: int) -> Float[Array, " k"]:
    """E[eⁿ zᵀXz] = n! Σ_{a+b=n} D_a tr(XC_b) for symmetric forms X and n = ``power``.

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1, 1))
    >>> tilted_mean(tilted(one[0], one[0], 0.0, 2), one, 2).tolist()  # E z⁶
    [15.0]
    """
    weights = math.factorial(power) * series.weights[: power + 1][::-1]
    return _traces(series, forms, power).T @ weights


def tilted_product(
    series: Tilted, first: Float[Array, "k m m"], second: Float[Array, "l m m"], power: int
) -> Float[Array, "k l"]:
    """E[eⁿ (zᵀXz)(zᵀYz)] for all pairs of symmetric forms X and Y and n = ``power``.

        n! Σ_{a+b+c=n} D_a (tr(XC_b) tr(YC_c) + 2 tr(XC_bYC_c))

    Source: the n-th derivative at t = 0 of D(t) times the product's mean under C(t).

    >>> import jax.numpy as jnp
    >>> one = jnp.ones((1, 1, 1))
    >>> tilted_product(tilted(one[0], one[0], 0.0, 4), one, one, 4).tolist()  # E z¹²
    [[10395.0]]
    """
    size = power + 1
    zeros = jnp.zeros(size, series.weights.dtype)
    falling = jnp.concatenate([series.weights[:size][::-1], zeros])
    # row b, column c: the weight D_{n−b−c}, or zero
    table = math.factorial(power) * jnp.stack([falling[b : b + size] for b in range(size)])
    left, right = (
        jnp.einsum("kij,bjl->bkil", forms, series.covariances[:size]) for forms in (first, second)
    )
    weighted = jnp.tensordot(table, right, 1)
    means = _traces(series, first, power).T @ table @ _traces(series, second, power)
    return means + 2 * jnp.einsum("bkij,blji->kl", left, weighted)


def _traces(series: Tilted, forms: Float[Array, "k m m"], power: int) -> Float[Array, "n k"]:
    return jnp.einsum("kij,bji->bk", forms, series.covariances[: power + 1])

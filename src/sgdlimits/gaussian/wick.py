"""Exact Gaussian moments: Wick's pairing formula, and moments of a quadratic form for any width.

Networks with square activation need the latter: with fields z the error is a quadratic form zᵀBz,
the drift is made of E[(zᵀBz) zzᵀ] and the corrector of E[(zᵀBz)² zzᵀ].
"""

import functools
from collections.abc import Sequence

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits.gaussian._shapes import square


def moment(covariance: ArrayLike, indices: Sequence[int]) -> Float[Array, "..."]:
    """Moment of coordinates of a centred Gaussian vector.

        E[x_a x_b x_c …] = c_ab E[x_c …] + c_ac E[x_b …] + …,

    the sum over all partners of x_a, and so on until every coordinate is paired. Covariances of
    shape (..., n, n) are allowed. Equal terms are computed once, so that long products of few
    different coordinates are cheap.

    Source: Isserlis (I18), Wick's theorem.

    >>> import jax.numpy as jnp
    >>> float(moment(jnp.eye(1), [0] * 6))  # 5 · 3 · 1
    15.0
    """
    c = square("covariance", covariance)
    size = c.shape[-1]
    if any(not -size <= i < size for i in indices):
        raise _checks.InputError(
            f"indices={list(indices)!r} is not allowed: indices must lie in 0..{size - 1}"
        )
    if len(indices) % 2:
        return jnp.zeros(c.shape[:-2], c.dtype)

    @functools.cache
    def pairings(remaining: tuple[int, ...]) -> Float[Array, "..."]:
        if not remaining:
            return jnp.ones(c.shape[:-2], c.dtype)
        first, rest = remaining[0], remaining[1:]
        total = jnp.zeros(c.shape[:-2], c.dtype)
        for position in dict.fromkeys(rest):  # equal partners give equal terms: count them once
            where = rest.index(position)
            shorter = rest[:where] + rest[where + 1 :]
            total += rest.count(position) * c[..., first, position] * pairings(shorter)
        return total

    return pairings(tuple(sorted(int(i) % size for i in indices)))


def quadratic_mean(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "..."]:
    """Mean of a quadratic form.

        E[zᵀBz] = tr(BC)

    for z ~ N(0, C) and symmetric B, both of shape (..., n, n).

    Source: Wick's theorem.

    >>> import jax.numpy as jnp
    >>> float(quadratic_mean(jnp.eye(3), jnp.eye(3)))
    3.0
    """
    b, c = _pair(form, covariance)
    return _trace(b @ c)


def quadratic_square_mean(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "..."]:
    """Second moment of a quadratic form.

        E[(zᵀBz)²] = tr(BC)² + 2 tr(BCBC)

    Source: Wick's theorem; AKLS23 (27) is an instance.

    >>> import jax.numpy as jnp
    >>> float(quadratic_square_mean(jnp.eye(1), jnp.eye(1)))  # E z⁴
    3.0
    """
    b, c = _pair(form, covariance)
    bc = b @ c
    return _trace(bc) ** 2 + 2 * _trace(bc @ bc)


def quadratic_second(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "... n n"]:
    """Second moments of the fields weighted with a quadratic form.

        E[(zᵀBz) zzᵀ] = tr(BC) C + 2CBC

    Source: Wick's theorem; AKLS23 (26a) is an instance.

    >>> import jax.numpy as jnp
    >>> quadratic_second(jnp.eye(1), jnp.eye(1)).tolist()  # E z⁴
    [[3.0]]
    """
    b, c = _pair(form, covariance)
    bc = b @ c
    return _trace(bc)[..., None, None] * c + 2 * c @ bc


def quadratic_square_second(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "... n n"]:
    """Second moments of the fields weighted with the square of a quadratic form.

        E[(zᵀBz)² zzᵀ] = (t² + 2 tr(BCBC)) C + 4t CBC + 8CBCBC,   t = tr(BC)

    Source: the second derivative at s = 0 of
    E[exp(s zᵀBz) zzᵀ] = det(I − 2sCB)^(−½) (C⁻¹ − 2sB)⁻¹; AKLS23 (26b) is an instance.

    >>> import jax.numpy as jnp
    >>> quadratic_square_second(jnp.eye(1), jnp.eye(1)).tolist()  # E z⁶
    [[15.0]]
    """
    b, c = _pair(form, covariance)
    bc = b @ c
    mean = _trace(bc)[..., None, None]
    square_mean = mean**2 + 2 * _trace(bc @ bc)[..., None, None]
    return square_mean * c + 4 * mean * c @ bc + 8 * c @ bc @ bc


def _pair(form: ArrayLike, covariance: ArrayLike) -> tuple[Array, Array]:
    c = square("covariance", covariance)
    return square("form", form, c.shape[-1]), c


def _trace(matrix: Array) -> Array:
    return jnp.trace(matrix, axis1=-2, axis2=-1)

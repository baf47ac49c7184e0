"""Exact Gaussian moments: Wick's pairing formula, and moments of a quadratic form for any width.

The quadratic forms are what networks with square activation need: with fields z and error
z' B z, the drift takes E[(z' B z) z z'] and the corrector E[(z' B z)^2 z z'].
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

        E[x_i1 ... x_in] = sum over pairings of products of c_ij = sum_j c_{i1 ij} E[rest]

    Covariances of shape (..., n, n) are allowed. The cost grows with the number of *distinct*
    subsets met, so long products of few coordinates are cheap.

    Source: Isserlis (1918), Wick's theorem.

    >>> import jax.numpy as jnp
    >>> float(moment(jnp.eye(1), [0] * 6))  # 5 * 3 * 1
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

        E[z' B z] = tr(B C)

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

        E[(z' B z)^2] = tr(B C)^2 + 2 tr(B C B C)

    Source: Wick's theorem; 002 (27) is an instance.

    >>> import jax.numpy as jnp
    >>> float(quadratic_square_mean(jnp.eye(1), jnp.eye(1)))  # E z^4
    3.0
    """
    b, c = _pair(form, covariance)
    bc = b @ c
    return _trace(bc) ** 2 + 2 * _trace(bc @ bc)


def quadratic_second(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "... n n"]:
    """Second moments of the fields weighted with a quadratic form.

        E[(z' B z) z z'] = tr(B C) C + 2 C B C

    Source: Wick's theorem; 002 (26a) is an instance.

    >>> import jax.numpy as jnp
    >>> quadratic_second(jnp.eye(1), jnp.eye(1)).tolist()  # E z^4
    [[3.0]]
    """
    b, c = _pair(form, covariance)
    bc = b @ c
    return _trace(bc)[..., None, None] * c + 2 * c @ bc


def quadratic_square_second(form: ArrayLike, covariance: ArrayLike) -> Float[Array, "... n n"]:
    """Second moments of the fields weighted with the square of a quadratic form.

        E[(z' B z)^2 z z'] = (t^2 + 2 tr(B C B C)) C + 4 t C B C + 8 C B C B C,   t = tr(B C)

    Source: second derivative at s = 0 of E[exp(s z' B z) z z'] =
    det(1 - 2 s C B)^(-1/2) (C^(-1) - 2 s B)^(-1); 002 (26b) is an instance.

    >>> import jax.numpy as jnp
    >>> quadratic_square_second(jnp.eye(1), jnp.eye(1)).tolist()  # E z^6
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

"""How far vectors and matrices live in a subspace (BGHJ23, Definitions 2.1 and 2.2)."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Numeric, WholeNumber

_TINY = 1e-12  # directions of a basis below this, relative to the largest, do not count


def alignment(vector: Numeric, basis: Numeric) -> float:
    """The part of a vector in a subspace, ρ(v, B) = |P_B v| / |v|.

    B is the span of the columns of ``basis``, P_B the projector on it.


    >>> float(round(alignment([3.0, 4.0, 0.0], [[1.0], [0.0], [0.0]]), 12))
    0.6
    """
    v = _checks.array("vector", vector, None)
    if v.ndim != 1 or not np.any(v):
        raise _checks.InputError(
            f"vector has shape {v.shape}: it must be one vector that is not zero"
        )
    Q = orthonormal(basis, len(v))
    return float(np.minimum(1.0, np.linalg.norm(Q.T @ v) / np.linalg.norm(v)))


def escape(matrix: Numeric, basis: Numeric) -> float:
    """The least ε such that a matrix lives in a subspace B up to ε: ‖(1 − P_B) A‖ / ‖A‖.

    A lives in B up to ε if the image of A − M is in B for some M with ‖M‖ ≤ ε ‖A‖, in operator
    norms; the best M is (1 − P_B) A. For a matrix of one column it is √(1 − ρ²). B is the span of
    the columns of ``basis``.

    >>> escape([[2.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]])
    0.5
    """
    A = _checks.array("matrix", matrix, None)
    if A.ndim != 2 or not np.any(A):
        raise _checks.InputError(
            f"matrix has shape {A.shape}: it must be a matrix that is not zero"
        )
    Q = orthonormal(basis, len(A))
    return float(np.linalg.norm(A - Q @ (Q.T @ A), 2) / np.linalg.norm(A, 2))


def lives_in(what: Numeric, basis: Numeric, error: float) -> bool:
    """Whether a vector or a matrix lives in the span of the columns of ``basis``, up to ``error``.

    A vector does if ρ ≥ 1 − error (:func:`alignment`), a matrix if ε ≤ error (:func:`escape`).

    >>> lives_in([1.0, 0.1], [[1.0], [0.0]], error=0.01)
    True
    """
    allowed = _checks.nonnegative("error", error)
    if np.ndim(what) == 1:
        return alignment(what, basis) >= 1 - allowed - _TINY
    return escape(what, basis) <= allowed + _TINY


def principal_angles(first: Numeric, second: Numeric) -> np.ndarray:
    """Angles between the spans of the columns of two bases, in radians, increasing.

    >>> principal_angles(np.eye(3)[:, :2], np.eye(3)[:, 1:]).round(6).tolist()
    [0.0, 1.570796]
    """
    A = orthonormal(first, len(np.asarray(first)))
    B = orthonormal(second, len(A))
    cosines = np.clip(np.linalg.svd(A.T @ B, compute_uv=False), 0, 1)
    return np.arccos(cosines)


def leading_space(matrix: Numeric, rank: WholeNumber) -> np.ndarray:
    """E_k(A): orthonormal eigenvectors, in columns, of the k leading eigenvalues of a matrix.

    Leading are those of largest absolute value; k is ``rank``, and the matrix symmetric.

    >>> np.abs(leading_space(np.diag([1.0, -3.0, 2.0]), 2)).round(6).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    size = len(np.asarray(matrix))
    A = _checks.array("matrix", matrix, (size, size))
    k = _checks.integer("rank", rank, least=1)
    values, vectors = np.linalg.eigh(A)
    return vectors[:, np.argsort(-np.abs(values))[:k]]


def orthonormal(basis: Numeric, size: int) -> np.ndarray:
    """An orthonormal basis of the span of the columns; dependent columns count once."""
    B = _checks.array("basis", basis, None)
    if B.ndim != 2 or len(B) != size or not np.any(B):
        raise _checks.InputError(
            f"basis has shape {B.shape}, which is not allowed: basis must have {size} rows, and "
            "columns that are not all zero"
        )
    U, sizes, _ = np.linalg.svd(B, full_matrices=False)
    return U[:, sizes > _TINY * sizes[0]]

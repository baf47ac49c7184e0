"""Square roots of positive semidefinite matrices, singular ones included."""

import numpy as np
from jaxtyping import Float

from sgdlimits import _checks

_ROUNDING = 1e-6  # of a square root, relative to its size


def square_roots(
    R: Float[np.ndarray, "runs K K"], columns: int
) -> Float[np.ndarray, "runs K columns"]:
    """C with CCᵀ = R and so many columns; lower triangular where that are K or more of them.

    With fewer, raises InputError if R has a higher rank.
    """
    if np.array_equal(R, np.broadcast_to(R[:1], R.shape)):  # as most often where a start is given
        return np.repeat(_square_root(R[0], columns)[None], len(R), axis=0)
    return np.stack([_square_root(matrix, columns) for matrix in R])


def _square_root(R: np.ndarray, columns: int) -> np.ndarray:
    K = len(R)
    if columns < K:
        root = _symmetric_root(R)  # eigenvalues ascend
        left = np.linalg.norm(root[:, : K - columns])
        if left > _ROUNDING * np.linalg.norm(root):
            raise _checks.InputError(
                f"init['R']={_checks.shown(R)} is not allowed: in this dim only {columns} "
                f"directions are orthogonal to the anchors, so its rank must be at most {columns}"
            )
        return root[:, K - columns :]
    try:
        C = np.linalg.cholesky(R)
    except np.linalg.LinAlgError:  # singular
        C = np.swapaxes(np.linalg.qr(_symmetric_root(R).T, mode="r"), 0, 1)
    return np.pad(C, [(0, 0), (0, columns - K)])


def _symmetric_root(R: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(R)
    return vectors * np.sqrt(np.maximum(values, 0))

"""Tokens as points on the sphere: random ones, random matrices for them, and their clusters."""

import numpy as np
from scipy import sparse

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.lectures._sizes import affordable

ENSEMBLES = {
    "identity": "$Q, K, V = I$",
    "ginibre": "$Q, K, V$ Ginibre",
    "wigner": r"$Q^{\!\top}\!K$ Wigner, $V\succeq 0$",
    "value": r"$Q, K$ Ginibre, $V=Q^{\!\top}\!K$",
    "symmetric": r"$Q^{\!\top}\!K$ Wigner, $V=Q^{\!\top}\!K$",
}
"""Laws of (Q, K, V), with their titles: the identity and those of J24 Fig. 2.2, in its order."""

NORM = 1e-300  # a vector shorter than that has no direction


def uniform(
    particles: WholeNumber, dim: WholeNumber, *, runs: WholeNumber = 1, seed: WholeNumber = 0
) -> np.ndarray:
    """Independent points, uniform on the unit sphere of ℝᵈ, over run, particle and coordinate.

    >>> points = uniform(5, 3)
    >>> points.shape, bool(abs((points**2).sum(axis=-1) - 1).max() < 1e-12)
    ((1, 5, 3), True)
    """
    n, d = _checks.integer("particles", particles, least=2), _checks.integer("dim", dim, least=2)
    count, first = _checks.integer("runs", runs, least=1), _checks.integer("seed", seed, least=0)
    affordable(runs=count, particles=n, dim=d)
    draws = [np.random.default_rng([first, run]).standard_normal((n, d)) for run in range(count)]
    return on_sphere(np.stack(draws))


def on_sphere(points: object) -> np.ndarray:
    """Points divided by their norms; a point at zero has no direction, and is an error.

    >>> on_sphere([[3.0, 4.0], [0.0, 2.0]])
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    X = _checks.array("points", points, None)
    if X.ndim < 2 or X.shape[-2] < 2 or X.shape[-1] < 2:
        raise _checks.InputError(
            f"points has shape {X.shape}, which is not allowed: points must be a matrix with a row "
            "for each of at least two particles, in at least two dimensions"
        )
    largest = np.max(np.abs(X), axis=-1, keepdims=True)
    if np.any(largest < NORM):
        raise _checks.InputError(
            f"points={_checks.shown(X)} is not allowed: points must not be zero, which has no "
            "direction on the sphere"
        )
    X = X / largest  # squares of entries do not overflow
    return np.asarray(X / np.linalg.norm(X, axis=-1, keepdims=True))


def matrices(
    ensemble: Word, dim: WholeNumber, *, seed: WholeNumber = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, key and value matrices of one of the :data:`ENSEMBLES`.

    Entries of Ginibre matrices are N(0, 1/d); Wigner ones are (G + Gᵀ)/√2, and where that alone is
    QᵀK, K = I. V ⪰ 0 is |W| = (W²)^{1/2} of another Wigner matrix W. Other scales of QᵀK are
    scales of β, and other scales of V those of time.

    >>> query, key, value = matrices("value", 3)
    >>> bool(np.allclose(query.T @ key, value))
    True
    """
    _checks.choice("ensemble", ensemble, tuple(ENSEMBLES))
    d = _checks.integer("dim", dim, least=2)
    affordable(**{"dim²": d**2})
    rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
    first, second, third = rng.standard_normal((3, d, d)) / np.sqrt(d)
    wigner, identity = (first + first.T) / np.sqrt(2), np.eye(d)
    if ensemble == "identity":
        return identity, identity, identity
    if ensemble == "ginibre":
        return first, second, third
    if ensemble == "value":
        return first, second, first.T @ second
    if ensemble == "symmetric":
        return wigner, identity, wigner
    values, vectors = np.linalg.eigh((third + third.T) / np.sqrt(2))
    return wigner, identity, (vectors * np.abs(values)) @ vectors.T


def products(points: object) -> np.ndarray:
    """Inner products ⟨x_i, x_j⟩ of all pairs i < j, over the leading axes of the points and pair.

    >>> products([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).tolist()
    [0.0, -1.0, 0.0]
    """
    X = on_sphere(points)
    gram = X @ np.swapaxes(X, -1, -2)
    return np.asarray(gram[..., *np.triu_indices(X.shape[-2], 1)])


def clusters(points: object, threshold: Number = 0.99) -> np.ndarray:
    """How many clusters there are, over the leading axes of the points.

    Two particles are joined if ⟨x_i, x_j⟩ ≥ ``threshold``; a cluster is all that a chain of joined
    ones connects.

    >>> int(clusters([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0]], threshold=0.9))
    2
    """
    X = on_sphere(points)
    bound = float(_checks.array("threshold", threshold, ()))
    if not -1 < bound < 1:
        raise _checks.InputError(
            f"threshold={threshold!r} is not allowed: threshold must lie in (-1, 1)"
        )
    joined = X @ np.swapaxes(X, -1, -2) >= bound
    *leading, n, _ = joined.shape
    counts = [_components(graph) for graph in joined.reshape(-1, n, n)]
    return np.reshape(counts, leading)


def _components(graph: np.ndarray) -> int:
    count, _ = sparse.csgraph.connected_components(sparse.csr_array(graph), directed=False)
    return int(count)

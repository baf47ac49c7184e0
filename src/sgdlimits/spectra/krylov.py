"""Leading eigenpairs of several symmetric operators at once, and densities of large ones."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

Apply = Callable[[np.ndarray], np.ndarray]
"""Takes vectors (operators, size, columns), and applies each operator to its own."""

EXTRA = 4  # columns more than eigenpairs wanted: they speed up the last of these
BLOCKS = 6  # blocks of columns before a restart
ROUNDS = 40
EXHAUSTED = (
    1e-12  # relative size of a new direction that is none: all eigenvectors are in the basis
)
# Added to a start that is given, relative to its norm. Without it a start of exact eigenvectors
# would count as converged at once, although other eigenvalues have become larger than theirs.
NOISE = 0.01


class Pairs(NamedTuple):
    """Eigenvalues (operators, rank), largest absolute value first, and eigenvectors in columns."""

    values: np.ndarray
    vectors: np.ndarray


def leading_pairs(
    apply: Apply,
    count: int,
    size: int,
    rank: int,
    *,
    start: np.ndarray | None = None,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> Pairs:
    """The eigenpairs of largest absolute value, of several symmetric operators S of the same size.

    Block Lanczos with restarts, with a Rayleigh–Ritz step on the whole basis in every round. All
    operators advance together, so that products are large; bases are orthogonalised twice.

    Args:
        apply: all operators at once.
        count: number of operators.
        size: of each.
        rank: number of eigenpairs of each.
        start: approximate eigenvectors (count, size, columns), random ones by default.
        tolerance: every residual |S u − x u| must be below it, relative to the largest eigenvalue
            of the operator; a warning says where that is not reached.
        seed: of the random start.
    """
    width = min(rank + EXTRA, size)
    if size <= BLOCKS * width:  # no smaller than its Krylov basis
        dense = [top_pairs(A, rank) for A in apply(np.tile(np.eye(size), (count, 1, 1)))]
        return Pairs(np.stack([p.values for p in dense]), np.stack([p.vectors for p in dense]))
    rng = np.random.default_rng(seed)
    block = rng.standard_normal((count, size, width))
    if start is not None:
        noise = NOISE * block[:, :, : start.shape[2]] / np.sqrt(size)
        block[:, :, : start.shape[2]] = start[:, :, :width] + noise
    basis = np.linalg.qr(block)[0]
    image = apply(basis)
    most = BLOCKS * width
    for _ in range(ROUNDS):
        small = np.swapaxes(basis, 1, 2) @ image
        values, mixing = np.linalg.eigh((small + np.swapaxes(small, 1, 2)) / 2)
        order = np.argsort(-np.abs(values), axis=1)
        values = np.take_along_axis(values, order, 1)
        mixing = np.take_along_axis(mixing, order[:, None, :], 2)
        lead = mixing[:, :, :width]
        vectors, images = basis @ lead, image @ lead
        residuals = images - vectors * values[:, None, :width]
        sizes = np.linalg.norm(residuals[:, :, :rank], axis=1)
        if np.all(sizes <= tolerance * np.abs(values[:, :1])):
            return Pairs(values[:, :rank], vectors[:, :, :rank])
        if basis.shape[2] + width > most:  # restart from the leading vectors, twice the width
            keep = mixing[:, :, : 2 * width]
            basis, image = basis @ keep, image @ keep
        new = residuals
        for _ in range(2):
            new = new - basis @ (np.swapaxes(basis, 1, 2) @ new)
        new = np.linalg.qr(new)[0]
        new = new - basis @ (np.swapaxes(basis, 1, 2) @ new)
        new /= np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-300)
        basis = np.concatenate([basis, new], axis=2)
        image = np.concatenate([image, apply(new)], axis=2)
    worst = float(np.max(sizes / np.abs(values[:, :1])))
    warnings.warn(
        f"eigenpairs found up to residuals of {worst:.1g} of the largest eigenvalue, not "
        f"tolerance={tolerance:g}: some lie closely together, ask for fewer or for less accuracy",
        stacklevel=2,
    )
    return Pairs(values[:, :rank], vectors[:, :, :rank])


def top_pairs(matrix: np.ndarray, rank: int, *, positive: bool = False) -> Pairs:
    """Eigenpairs of the largest absolute values of a symmetric matrix, by a dense method.

    Of a matrix that is known to have no negative eigenvalues only the largest are computed.
    """
    size = len(matrix)
    subset = (max(0, size - rank), size - 1) if positive else None
    values, vectors = eigh(matrix, subset_by_index=subset)
    order = np.argsort(-np.abs(values))[:rank]
    return Pairs(values[order], vectors[:, order])


def quadrature(
    apply: Callable[[np.ndarray], np.ndarray], size: int, *, probes: int, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Stochastic Lanczos quadrature: nodes and weights (probes, steps) of the spectral measure.

    Each probe, a random unit vector, gives a Gauss rule of the measure that it sees; their mean is
    an unbiased estimate of tr f(S) / size for polynomials f of degree below 2·steps. Where S has
    fewer different eigenvalues than steps, the nodes that are left over have weight zero.
    """
    rng = np.random.default_rng(seed)
    steps = min(steps, size)
    nodes, weights = np.zeros((probes, steps)), np.zeros((probes, steps))
    for probe in range(probes):
        v = rng.standard_normal(size)
        basis = np.zeros((size, steps))
        diagonal, off, scale = np.zeros(steps), np.zeros(steps), 0.0
        basis[:, 0] = v / np.linalg.norm(v)
        for k in range(steps):
            image = apply(basis[:, k])
            scale = max(scale, float(np.linalg.norm(image)))
            diagonal[k] = basis[:, k] @ image
            if k + 1 == steps:
                break
            w = _orthogonal(image, basis[:, : k + 1])
            off[k] = np.linalg.norm(w)
            if off[k] <= EXHAUSTED * scale:  # what is left of w is rounding: take another vector
                off[k], w = 0.0, _orthogonal(rng.standard_normal(size), basis[:, : k + 1])
            basis[:, k + 1] = w / np.linalg.norm(w)
        triangle = np.diag(diagonal) + np.diag(off[:-1], 1) + np.diag(off[:-1], -1)
        nodes[probe], vectors = np.linalg.eigh(triangle)
        weights[probe] = vectors[0] ** 2 / probes
    return nodes, weights


def _orthogonal(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The part of a vector that is orthogonal to the columns of a basis; twice, for rounding."""
    for _ in range(2):
        vector = vector - basis @ (basis.T @ vector)
    return vector

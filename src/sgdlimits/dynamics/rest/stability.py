"""The linearised drift at a rest point: eigenvalues, what grows, and what only seems to be flat."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._compiled import compiled
from sgdlimits.dynamics.model import Model, Table, Vector

FLAT = 1e-6  # eigenvalues and singular values below this, relative to the largest, count as zero
BESIDE = 1e-6  # how far to step to one side of a jump
STRICT = 1e-7  # a velocity towards a jump that is larger than this holds the state there


class Spectrum(NamedTuple):
    """Eigenvalues of the Jacobian by falling real part (on the sphere, along it)."""

    residual: float  # largest component of the drift
    values: np.ndarray
    growing: np.ndarray  # real parts of the eigenvectors that grow, as columns
    stability: str  # "stable", "unstable" or "marginal"


def spectrum_at(model: Model, vector: np.ndarray) -> Spectrum:
    """The linearisation at a rest point; where the drift jumps, the one that grows fastest."""
    size, jacobian, constraint = linearisation(model, vector)
    tangent = null_space(constraint)
    sides = [jacobian, *_beside_jumps(model, vector)]
    parting = model.parting(vector) @ tangent
    values, vectors = max(
        (_eigen(tangent.T @ side @ tangent, parting) for side in sides),
        key=lambda pair: pair[0][0].real,
    )
    scale = flat_below(values)
    growing = values.real > scale
    decaying = np.all(values.real < -scale)
    return Spectrum(
        residual=float(np.max(np.abs(size))),
        values=values,
        growing=(tangent @ vectors[:, growing]).real,
        stability="unstable" if np.any(growing) else "stable" if decaying else "marginal",
    )


def flat_below(values: np.ndarray) -> float:
    """Eigenvalues smaller than this count as zero beside these, of which some may be infinite."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return FLAT * max(1.0, float(np.max(np.abs(finite), initial=0.0)))


def residual(model: Model, vector: Vector) -> Float[Array, " m"]:
    """The drift, and how far the state is from the constraint."""
    return jnp.concatenate([model.drift(vector), model.constraint(vector)])


def linearisation(model: Model, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residual, Jacobian of the drift and Jacobian of the constraint."""
    table, row = Table(model), np.asarray(vector)[None]
    size = np.concatenate([table.drift(row)[0], table.constraint(row)[0]])
    return size, table.jacobian(row)[0], table.constraint_jacobian(row)[0]


def _eigen(matrix: np.ndarray, parting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues by falling real part, and eigenvectors; infinite where what parts does grow.

    Where a linear function of the statistics stays zero, all eigenvectors but one are in its
    kernel, and the rate of that one is how fast it grows.
    """
    values, vectors = np.linalg.eig(matrix)
    for row in parting:
        which = np.argmax(np.abs(row @ vectors))
        values[which] = np.copysign(np.inf, values[which].real)
    order = np.argsort(-values.real)
    return values[order], vectors[:, order]


def _beside_jumps(model: Model, vector: np.ndarray) -> list[np.ndarray]:
    """Jacobians on those sides of the jumps at ``vector`` that do not push back."""
    jacobians = []
    for shift in model.jump_directions(vector):
        for side in (shift, -shift):
            sided = _one_sided(model, jnp.asarray(vector), jnp.asarray(side))
            velocity, jacobian = map(np.asarray, sided)
            if velocity @ side > -STRICT * side @ side:
                jacobians.append(jacobian)
    return jacobians


@compiled
def _one_sided(model: Model, vector: Vector, side: Vector) -> tuple[Vector, Float[Array, "n n"]]:
    drift, _ = model.branch(vector + BESIDE * side)
    return drift(vector), jax.jacfwd(drift)(vector)


def null_space(matrix: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
    """An orthonormal basis of what the matrix maps to (nearly) zero, as columns."""
    if len(matrix) == 0:
        return np.eye(matrix.shape[1])
    _, singular, right = np.linalg.svd(matrix)
    return right[int(np.sum(singular > tolerance)) :].T

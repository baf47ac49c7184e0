"""What grows at a rest point to first order: rates, directions, and how to read a state along them.

Near a rest point u*, z = L(u − u*) obeys dz = Ωz dt + √(S/dim) dB, where the rows of L span the
invariant subspace of the transposed Jacobian that belongs to the growing eigenvalues, and
S = LΣLᵀ. Everything else decays, so that u − u* ≈ Xz with LX = I.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg

GROWS = 1e-6  # rates above this, relative to the largest eigenvalue, are no rounding
EQUAL = 1e-5  # rates closer than this, relative to the largest of them, are equal


class Growth(NamedTuple):
    """The growing part of a linearisation.

    Attributes:
        rates: eigenvalues that grow, by falling real part; none where nothing does.
        fastest: the largest real part of all, growing or not.
        matrix: Ω, (q, q).
        directions: X, orthonormal columns, (n, q).
        readings: L, (q, n).
    """

    rates: np.ndarray
    fastest: float
    matrix: np.ndarray
    directions: np.ndarray
    readings: np.ndarray

    @property
    def equal(self) -> bool:
        """Whether all directions grow at one rate: Ω is a multiple of the identity."""
        size = len(self.matrix)
        return bool(
            np.allclose(self.matrix, self.fastest * np.eye(size), atol=EQUAL * abs(self.fastest))
        )


def growth(jacobian: np.ndarray, tangent: np.ndarray) -> Growth:
    """The growing part of a Jacobian on the states, whose directions are the columns of tangent.

    >>> found = growth(np.array([[2.0, 1.0], [0.0, -3.0]]), np.eye(2))
    >>> found.rates.real, abs(found.directions.T), found.readings / found.readings[0, 0]
    (array([2.]), array([[1., 0.]]), array([[1. , 0.2]]))
    """
    inside = tangent.T @ jacobian @ tangent
    values = np.linalg.eigvals(inside)
    least = GROWS * max(1.0, float(np.max(np.abs(values), initial=0.0)))
    triangle, basis, count = scipy.linalg.schur(
        inside, output="real", sort=lambda real, _=0.0: np.real(real) > least
    )
    # rows [I, Y]·basisᵀ are a left invariant subspace if T₁Y − YT₂ = T₁₂
    grows, mixes, rest = (
        triangle[:count, :count],
        triangle[:count, count:],
        triangle[count:, count:],
    )
    across = scipy.linalg.solve_sylvester(grows, -rest, mixes) if 0 < count < len(values) else mixes
    left = np.concatenate([np.eye(count), across], axis=1) @ basis.T
    order = np.argsort(-values.real)
    return Growth(
        rates=values[order][:count],
        fastest=float(values.real.max()),
        matrix=grows,
        directions=tangent @ basis[:, :count],
        readings=left @ tangent.T,
    )

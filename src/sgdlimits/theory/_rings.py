"""What the rings of rest points of the two mixtures have in common."""

import numpy as np


def fluctuation_matrix(restoring: np.ndarray, ridge: float) -> np.ndarray:
    """Drift matrix of the fluctuations (ṽ, m̃) about a rest point at which |vᵢ| = |mᵢ|.

        dṽ = α(m̃ − ṽ) − S(ṽ + m̃),   dm̃ = α(ṽ − m̃) − S(ṽ + m̃)

    with S = ``restoring`` and α = ``ridge``.
    """
    pull = ridge * np.eye(len(restoring))
    same, other = -pull - restoring, pull - restoring
    return np.block([[same, other], [other, same]])

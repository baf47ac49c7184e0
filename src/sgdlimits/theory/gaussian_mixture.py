"""Softmax regression on a mixture of k Gaussians at infinite precision (BGHJ23 sec. 5).

Class a has probability p_a and mean μ_a; its score is ⟨xᵃ, Y⟩, and the loss is the cross-entropy
with ridge (β/2)‖x‖², β = ``ridge``. States are the overlaps M_ab = ⟨xᵃ, μ_b⟩ and the Gram matrix R
of the parts of x¹ … xᵏ that are orthogonal to the means. Time t = δ·steps.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, WholeNumber
from sgdlimits.theory._inputs import gram_of_means, square, symmetric


class Velocity(NamedTuple):
    """Time derivatives of the overlaps and of the orthogonal Gram matrix."""

    overlaps: np.ndarray
    orthogonal: np.ndarray


def noiseless_drift(
    overlaps: Numeric,
    orthogonal: Numeric,
    *,
    weights: Numeric,
    ridge: Number,
    means_gram: Numeric | None = None,
) -> Velocity:
    """Effective drift of (M, R) at infinite precision.

        dM_ab/dt = p_a G_ab − Σ_c p_c π_c(a) G_cb − βM_ab,   π_c(a) = e^(M_ac) / Σ_b e^(M_bc)
        dR/dt    = −2βR

    with p = ``weights``, β = ``ridge`` and G = ``means_gram`` the Gram matrix of the means
    (orthonormal by default).

    Source: BGHJ23 (5.17), (5.18); the rate of R corrected.

    >>> velocity = noiseless_drift(np.zeros((2, 2)), np.eye(2), weights=[0.5, 0.5], ridge=0.1)
    >>> velocity.overlaps.tolist(), velocity.orthogonal[0, 0].tolist()
    ([[0.25, -0.25], [-0.25, 0.25]], -0.2)
    """
    m, p = _state(overlaps, weights)
    k, beta = len(p), _checks.nonnegative("ridge", ridge)
    pi = softmax(m, axis=0)
    dm = (np.diag(p) - pi * p) @ gram_of_means(means_gram, k) - beta * m
    return Velocity(dm, -2 * beta * symmetric("orthogonal", orthogonal, k))


def energy(overlaps: Numeric, orthogonal: Numeric, *, weights: Numeric, ridge: Number) -> float:
    """Population loss at infinite precision for orthonormal means; M follows its gradient flow.

        𝓗 = −Σ_a p_a M_aa + Σ_a p_a log Σ_b e^(M_ba) + (β/2)(‖M‖² + tr R)

    with p = ``weights`` and β = ``ridge``.

    Source: BGHJ23, proof of Lemma 5.13; the index inside the logarithm and the norm of R corrected.

    >>> round(energy(np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], ridge=0.1), 6)  # log 2
    0.693147
    """
    m, p = _state(overlaps, weights)
    beta = _checks.nonnegative("ridge", ridge)
    r = symmetric("orthogonal", orthogonal, len(p))
    fit = p @ (logsumexp(m, axis=0) - np.diag(m))
    return float(fit + beta / 2 * (np.sum(m**2) + np.trace(r)))


def orthonormal_overlap(classes: WholeNumber, weight: Number, ridge: Number) -> float:
    """Overlap of the weights of a class with its own mean, at the unique fixed point.

        m_bb = (p_b/β)(1 − e^(m_bb) / ((k − 1) e^(−m_bb/(k−1)) + e^(m_bb)))

    for orthonormal means, with k = ``classes``, p_b = ``weight`` the probability of class b and
    β = ``ridge``. The overlaps of the other classes' weights with that mean are −m_bb/(k − 1).

    Source: BGHJ23 sec. 5.3.1.

    >>> round(orthonormal_overlap(3, 1 / 3, 0.1), 6)
    1.013837
    """
    k, beta = _checks.integer("classes", classes, least=2), _checks.positive("ridge", ridge)
    p = _checks.fraction("weight", weight)

    def excess(m: float) -> float:
        return m - p / beta * float(expit(np.log(k - 1) - m * k / (k - 1)))

    return float(brentq(excess, 0.0, p / beta, xtol=1e-15, rtol=1e-14))


def _state(overlaps: Numeric, weights: Numeric) -> tuple[np.ndarray, np.ndarray]:
    m = square("overlaps", overlaps)
    return m, _checks.probabilities("weights", weights, len(m))

"""Softmax regression on a mixture of k Gaussians at infinite precision (001 sec. 5).

Class a with probability p_a at its mean mu_a; linear scores x^a . Y, cross-entropy loss with
ridge (ridge / 2)|x|^2. States are the overlaps M[a, b] = x^a . mu_b and the orthogonal Gram
matrix R. Time t = delta * steps.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory._inputs import numbers, symmetric


class Velocity(NamedTuple):
    """Time derivatives of the overlaps and of the orthogonal Gram matrix."""

    overlaps: np.ndarray
    orthogonal: np.ndarray


def noiseless_drift(
    overlaps: Any, orthogonal: Any, *, weights: Any, ridge: Number, means_gram: Any = None
) -> Velocity:
    """Effective drift of (M, R) at infinite precision.

        dM_ab = p_a G_ab - sum_c p_c pi_c(a) G_cb - ridge M_ab,   pi_c(a) = softmax_a(M_ac)
        dR    = -2 ridge R

    with G = ``means_gram`` the Gram matrix of the means (orthonormal by default).

    Source: 001 (5.17), (5.18); the rate of R corrected.

    >>> velocity = noiseless_drift(np.zeros((2, 2)), np.eye(2), weights=[0.5, 0.5], ridge=0.1)
    >>> velocity.overlaps.tolist(), velocity.orthogonal[0, 0].tolist()
    ([[0.25, -0.25], [-0.25, 0.25]], -0.2)
    """
    m, p = _state(overlaps, weights)
    k, beta = len(p), _checks.nonnegative("ridge", ridge)
    g = np.eye(k) if means_gram is None else _checks.gram("means_gram", means_gram, k)
    pi = softmax(m, axis=0)
    dm = (np.diag(p) - pi * p) @ g - beta * m
    return Velocity(dm, -2 * beta * symmetric("orthogonal", orthogonal, k))


def energy(overlaps: Any, orthogonal: Any, *, weights: Any, ridge: Number) -> float:
    """Population loss at infinite precision and orthonormal means, of which M is the gradient flow.

        H = -sum_a p_a M_aa + sum_a p_a log sum_b e^(M_ba) + (ridge / 2) (|M|^2 + tr R)

    Source: 001, proof of Lemma 5.13; the index inside the logarithm and the norm of R corrected.

    >>> round(energy(np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], ridge=0.1), 6)  # log 2
    0.693147
    """
    m, p = _state(overlaps, weights)
    beta = _checks.nonnegative("ridge", ridge)
    r = symmetric("orthogonal", orthogonal, len(p))
    fit = p @ (logsumexp(m, axis=0) - np.diag(m))
    return float(fit + beta / 2 * (np.sum(m**2) + np.trace(r)))


def orthonormal_overlap(classes: WholeNumber, weight: Number, ridge: Number) -> float:
    """Overlap m_bb at the unique fixed point for orthonormal means; m_ab = -m_bb / (k - 1).

        m_bb = (p_b / ridge) (1 - e^m_bb / ((k - 1) e^(-m_bb / (k-1)) + e^m_bb))

    with p_b = ``weight`` the probability of class b.

    Source: 001 sec. 5.3.1.

    >>> round(orthonormal_overlap(3, 1 / 3, 0.1), 6)
    1.013837
    """
    k, beta = _checks.integer("classes", classes, least=2), _checks.positive("ridge", ridge)
    p = _checks.fraction("weight", weight)

    def excess(m: float) -> float:
        return m - p / beta * float(expit(np.log(k - 1) - m * k / (k - 1)))

    return float(brentq(excess, 0.0, p / beta, xtol=1e-15, rtol=1e-14))


def _state(overlaps: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    m = numbers("overlaps", overlaps)
    k = len(m) if m.ndim else 0
    if k < 2 or m.shape != (k, k):
        raise _checks.InputError(
            f"overlaps has shape {m.shape}, which is not allowed: "
            "overlaps must have shape (k, k) with k >= 2"
        )
    return m, _checks.probabilities("weights", weights, k)

"""Exact moments of increments of phase retrieval, for any width, by derivatives on a circle.

Fields f = (s₁ … s_p, s⋆) have covariance C, and the error is ℰ = fᵀFf + √Δ z. Then

    E[e^(θℰ) f_a f_b f_c f_d] = e^(θ²Δ/2) det(I − 2θFC)^(−½) (T_ab T_cd + T_ac T_bd + T_ad T_bc),
    T = C(I − 2θFC)⁻¹,

and E[ℰⁿ f_a f_b f_c f_d] is its n-th derivative at θ = 0: n!/ρⁿ times the mean over a circle of
radius ρ of e^(−inφ) times it, which is exact to rounding.
"""

import math
from typing import NamedTuple

import numpy as np

POINTS = 32  # on the circle, a quarter of the way to the nearest singularity: an error of 4^(−32)


class Increments(NamedTuple):
    """Mean, second moments and E[gⱼg_l(‖x_F‖² − p − 1)] of one free step, in units of δ.

    Increments are those of m₁ … m_p and then of Q_jl for j ≤ l, row by row.
    """

    mean: np.ndarray
    second: np.ndarray
    excess: np.ndarray


def free_increments(
    overlaps: np.ndarray, gram: np.ndarray, step: float, noise: float
) -> Increments:
    """Moments of Mⱼ = gⱼs⋆ and Q_jl = gⱼs_l + g_ls_j + γgⱼg_l with gⱼ = (2/p)ℰsⱼ.

    x_F is the part of the sample in the span of neurons and teacher, ‖x_F‖² = fᵀC⁻¹f. By Stein's
    lemma E[h(f)(fᵀC⁻¹f − p − 1)] is the degree of h times its mean, for homogeneous h.
    """
    p = len(overlaps)
    C = np.block([[gram, overlaps[:, None]], [overlaps[None, :], np.ones((1, 1))]])
    F = np.diag([-1.0 / p] * p + [1.0])
    theta = _circle(F @ C, noise)
    T = C @ np.linalg.inv(np.eye(p + 1) - 2 * theta[:, None, None] * (F @ C))
    weight = np.exp(theta**2 * noise / 2 - _log_determinants(theta, F @ C) / 2)
    pure = np.exp(-_log_determinants(theta, F @ C) / 2)

    # which product of two fields each increment has, as a row of `pairs`, and with what factors
    teacher = np.arange(p), np.full(p, p)
    upper = np.triu_indices(p)
    i, j = (np.concatenate(both) for both in zip(teacher, upper, strict=True))
    first = np.where(j == p, 2 / p, 4 / p)  # of ℰ
    square = np.where(j == p, 0.0, 4 * step / p**2)  # of ℰ²

    def derivative(n: int, values: np.ndarray) -> np.ndarray:
        phases = (theta / abs(theta[0])) ** -n
        scale = math.factorial(n) / abs(theta[0]) ** n
        return np.asarray(np.tensordot(phases, values, 1).real * scale / POINTS)

    seconds = weight[:, None] * T[:, i, j]
    mean = first * derivative(1, seconds) + square * derivative(2, seconds)
    a, b, c, d = i[:, None], j[:, None], i[None, :], j[None, :]
    fourths = T[:, a, b] * T[:, c, d] + T[:, a, c] * T[:, b, d] + T[:, a, d] * T[:, b, c]
    fourths *= weight[:, None, None]
    both = np.multiply.outer
    second = both(first, first) * derivative(2, fourths)
    second += (both(first, square) + both(square, first)) * derivative(3, fourths)
    second += both(square, square) * derivative(4, fourths)
    form_square = derivative(2, pure[:, None, None] * T[:, :p, :p])
    excess = 4 / p**2 * (6 * form_square + 2 * noise * gram)
    return Increments(mean, second, excess)


def _circle(form: np.ndarray, noise: float) -> np.ndarray:
    largest = max(float(np.max(np.abs(np.linalg.eigvals(form)))), 1e-300)
    radius = min(1 / (8 * largest), 1 / math.sqrt(1 + noise))
    return np.asarray(radius * np.exp(2j * np.pi * np.arange(POINTS) / POINTS))


def _log_determinants(theta: np.ndarray, form: np.ndarray) -> np.ndarray:
    # eigenvalue by eigenvalue: the logarithm of the whole determinant may change its branch
    eigenvalues = np.linalg.eigvals(form).real
    return np.asarray(np.sum(np.log(1 - 2 * np.multiply.outer(theta, eigenvalues)), axis=1))

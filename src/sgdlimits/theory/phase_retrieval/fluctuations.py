"""Mean and covariance of one step of phase retrieval: the noise behind its SDE, terms in 1/dim."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, Numeric, WholeNumber
from sgdlimits.theory._inputs import symmetric, vector
from sgdlimits.theory.phase_retrieval._moments import free_increments
from sgdlimits.theory.phase_retrieval.flow import Velocity, positive_diagonal


def increment_covariance(
    overlaps: Numeric,
    gram: Numeric,
    *,
    step: Number,
    noise: Number = 0.0,
    spherical: Flag = True,
) -> np.ndarray:
    """Covariance of the increments of m and Q in one step, for any width, as dim → ∞.

    In units of δ = γ/dim, γ = ``step``, one free step changes (m, Q) by

        Mⱼ = (2/p)ℰsⱼs⋆,   Q_jl = (4/p)ℰsⱼs_l + (4γ/p²)ℰ²sⱼs_l,   ℰ = s⋆² − Σ s²/p + √Δ z,

    and one on the sphere by Mⱼ − mⱼQ_jj/(2q_j) and Q_jl − (q_jl/2)(Q_jj/q_j + Q_ll/q_l), q the Gram
    matrix. Per unit of our time, (m, Q) fluctuate with covariance γ/dim times this. Rows are
    m₁ … m_p and then Q_jl for j ≤ l, row by row. Twelfth moments of Gaussian fields, exact to
    rounding.

    Source: AKLS23 (54), (34) and sec. G.2.

    >>> covariance = increment_covariance([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], step=0.1)
    >>> covariance[:2, :2].round(12).tolist()
    [[9.0, 0.0], [0.0, 9.0]]
    """
    m, q, gamma, delta = _checked(overlaps, gram, step, noise)
    mean, second, _ = free_increments(m, q, gamma, delta)
    covariance = second - np.outer(mean, mean)
    if not _checks.flag("spherical", spherical):
        return covariance
    positive_diagonal(q)
    radial = _radial(m, q)
    return np.asarray(radial @ covariance @ radial.T)


def one_step_drift(
    overlaps: Numeric,
    gram: Numeric,
    *,
    dim: WholeNumber,
    step: Number,
    noise: Number = 0.0,
    spherical: Flag = True,
) -> Velocity:
    """Mean change of (m, Q) in one step of SGD over δ = γ/dim, with its terms of order 1/dim.

    With the free increments Mⱼ and Q_jl of ``increment_covariance`` at norms Q_jj = 1,

        E Mⱼ − (mⱼ/2) E Q_jj
            + (γ/d) {−½ E Mⱼ Q_jj + (3/8) mⱼ E Q_jj² − (mⱼ/2) e_jj}
        E Q_jl − (q_jl/2) E(Q_jj + Q_ll)
            + (γ/d) {−½ E Q_jl(Q_jj + Q_ll) + (q_jl/8) E(3Q_jj² + 3Q_ll² + 2Q_jj Q_ll)
                     + e_jl − (q_jl/2)(e_jj + e_ll)}

    up to O(1/d²). Here e_jl = E[gⱼg_l(‖x_F‖² − p − 1)], gⱼ = (2/p)ℰsⱼ, is what the squared norm of
    a sample has to do with its fields, x_F its part in the span of neurons and teacher: Gaussian
    samples of finite dimension with ‖x‖²/d = 1 on average only. Without a sphere only e_jl is left,
    and exact.

    Source: AKLS23 sec. D.2 and G.2, which have the other terms in braces (Itô's), but not e.

    >>> velocity = one_step_drift([0.1], [[1.0]], dim=100, step=0.05)
    >>> round(float(velocity.overlaps[0]), 6)  # 0.2772 as dim → ∞
    0.271228
    """
    m, q, gamma, delta = _checked(overlaps, gram, step, noise)
    d, p = _checks.integer("dim", dim, least=2), len(m)
    mean, second, excess = free_increments(m, q, gamma, delta)
    index = np.zeros((p, p), int)  # of Q_jl among the increments
    upper = np.triu_indices(p)
    index[upper] = index.T[upper] = p + np.arange(len(upper[0]))
    psi, phi, ratio = mean[:p], mean[index], gamma / d
    if not _checks.flag("spherical", spherical):
        return Velocity(psi, phi + ratio * excess)
    positive_diagonal(q)
    norms, own = np.diag(q), np.diag(index)
    radial, own_excess = phi[range(p), range(p)] / norms, np.diag(excess) / norms
    products = second[np.ix_(own, own)] / np.outer(norms, norms)
    squares = np.diag(products)
    across = second[range(p), own] / norms
    psi_more = -across / 2 + 3 / 8 * m * squares - m / 2 * own_excess
    mixed = second[index, own[:, None]] / norms[:, None]
    phi_more = -(mixed + mixed.T) / 2 + excess
    phi_more += q / 8 * (3 * squares[:, None] + 3 * squares[None, :] + 2 * products)
    phi_more -= q / 2 * (own_excess[:, None] + own_excess[None, :])
    return Velocity(
        psi - m * radial / 2 + ratio * psi_more,
        phi - q / 2 * (radial[:, None] + radial[None, :]) + ratio * phi_more,
    )


def single_increment_covariance(
    overlap: Number, *, step: Number, noise: Number = 0.0
) -> np.ndarray:
    """Covariance of the increments of overlap and squared norm in one free step at ‖w‖ = 1.

    It is ``increment_covariance`` of one neuron, written out.

    In units of δ = γ/dim, γ = ``step``, one step changes (m, q) by

        M = 2ℰss⋆,   Q = 4ℰs² + 4γℰ²s²,   ℰ = s⋆² − s² + √Δ z,

    where the fields s of the neuron and s⋆ of the teacher have variance 1 and covariance m =
    ``overlap``, z ~ N(0, 1) and Δ = ``noise``. Per unit of time, (m, q) fluctuate with covariance
    γ/dim times the matrix of

        Var M     = 8Δm² − 192m⁴ + 144m² + 4Δ + 48
        Cov(M, Q) = 72gΔ(m³ − m) − 1440g(m⁵ − 2m³ + m) + 24Δm − 480m³ + 480m
        Var Q     = g²(576Δm⁴ − 2496Δm² − 11520m⁶ + 54144m⁴ − 73728m² + 32Δ² + 1920Δ + 31104)
                    + g(544Δm² − 11136m⁴ + 22272m² − 544Δ − 11136)
                    + 320m⁴ − 1600m² + 48Δ + 1280

    with g = 2γ.

    Source: AKLS23 (55); corrected, its γ must be read as 2γ.

    >>> single_increment_covariance(0.0, step=0.05)[0, 0].tolist()
    48.0
    """
    m = float(_checks.array("overlap", overlap, ()))
    g, d = 2 * _checks.positive("step", step), _checks.nonnegative("noise", noise)
    along = 8 * d * m**2 - 192 * m**4 + 144 * m**2 + 4 * d + 48
    cross = 72 * g * d * (m**3 - m) - 1440 * g * (m**5 - 2 * m**3 + m)
    cross += 24 * d * m - 480 * m**3 + 480 * m
    norm = g**2 * (576 * d * m**4 - 2496 * d * m**2 - 11520 * m**6 + 54144 * m**4)
    norm += g**2 * (-73728 * m**2 + 32 * d**2 + 1920 * d + 31104)
    norm += g * (544 * d * m**2 - 11136 * m**4 + 22272 * m**2 - 544 * d - 11136)
    norm += 320 * m**4 - 1600 * m**2 + 48 * d + 1280
    return np.array([[along, cross], [cross, norm]])


def _checked(
    overlaps: Numeric, gram: Numeric, step: Number, noise: Number
) -> tuple[np.ndarray, np.ndarray, float, float]:
    m = vector("overlaps", overlaps)
    q = symmetric("gram", gram, len(m))
    return m, q, _checks.positive("step", step), _checks.nonnegative("noise", noise)


def _radial(m: np.ndarray, q: np.ndarray) -> np.ndarray:
    """What takes free increments to those on the sphere."""
    p = len(m)
    rows, columns = np.triu_indices(p)
    norms = np.diag(q)
    own = p + np.flatnonzero(rows == columns)
    result = np.eye(p + len(rows))
    result[np.arange(p), own] -= m / (2 * norms)
    along = p + np.arange(len(rows))
    np.subtract.at(result, (along, own[rows]), q[rows, columns] / (2 * norms[rows]))
    np.subtract.at(result, (along, own[columns]), q[rows, columns] / (2 * norms[columns]))
    return result

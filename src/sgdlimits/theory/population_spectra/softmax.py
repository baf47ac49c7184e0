"""Population blocks of softmax regression on k Gaussian classes, exact at any precision λ.

The data are those of ``theory.gaussian_mixture`` with noise of variance 1/λ. A block is E[D YYᵀ]
with D a polynomial in π = softmax(⟨x¹, Y⟩ … ⟨xᵏ, Y⟩) and the class of Y. Integration by parts in
the noise turns it into a matrix on the span of means and weights plus a multiple of the identity:
the outliers and the bulk of the population spectrum.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from sgdlimits import _checks, gaussian
from sgdlimits._types import Number, Numeric, WholeNumber
from sgdlimits.theory._inputs import gram_of_means, square

NODES = 2**14
"""Quadrature nodes per class: Gauss–Hermite up to four classes, Sobol beyond."""


class PopulationBlock(NamedTuple):
    """A d × d block: ``low_rank`` on the span of means and weights, plus ``identity`` times I_d.

    For means A and weights W in rows, W⊥ the parts of the weights orthogonal to the means, the
    block is

        B low_rank Bᵀ + identity I_d,   B = [AᵀL⁻ᵀ, W⊥ᵀR^(−½)],

    with L the Cholesky factor of ``means_gram`` = AAᵀ and R = ``orthogonal`` = W⊥W⊥ᵀ (a
    pseudoinverse where R is singular). So ``low_rank`` is symmetric, 2k × 2k, in orthonormal
    coordinates: k of them span the means, mean a being row a of L, and k span W⊥, whose row a is
    row a of the symmetric root of R.
    """

    low_rank: np.ndarray
    identity: float


def softmax_hessian(
    overlaps: Numeric,
    orthogonal: Numeric,
    *,
    weights: Numeric,
    precision: Number,
    block: Any,
    means_gram: Numeric | None = None,
    nodes: WholeNumber = NODES,
) -> PopulationBlock:
    """Block bc of the population Hessian of softmax regression, ``block`` = (b, c), exactly.

        H_bc = −E[π_b π_c((μ + (xᵇ + xᶜ − 2x̄)/λ)^⊗2 − 2S)] − I_d E[π_b π_c]/λ,   b ≠ c
        H_bb = E[π_b((μ + (xᵇ − x̄)/λ)^⊗2 − S)] − E[π_b²((μ + 2(xᵇ − x̄)/λ)^⊗2 − 2S)]
               + I_d E[π_b(1 − π_b)]/λ

    with μ the mean of the class of Y, u^⊗2 = uuᵀ, x̄ = Σ_a π_a xᵃ and S = (Σ_a π_a xᵃxᵃᵀ − x̄x̄ᵀ)/λ²,
    which are random through π; λ = ``precision``, any number > 0 or ``math.inf``. In class ℓ the
    scores are N(M_ℓ, Q/λ), M_ℓ being column ℓ of M = ``overlaps`` and Q = MG⁻¹Mᵀ + R with
    G = ``means_gram`` (orthonormal means by default, linearly independent ones in general) and
    R = ``orthogonal``. Averages over the scores are quadratures with ``nodes`` nodes.

    Source: BGHJ23 Lemmas 3.1 and 3.2; the sign for b ≠ c and the brackets corrected.

    >>> start = softmax_hessian(
    ...     np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], precision=2.0, block=(0, 1)
    ... )
    >>> (start.low_rank.diagonal() + 0).round(6).tolist(), round(start.identity, 6)  # π = ½
    ([-0.125, -0.125, 0.0, 0.0], -0.125)
    """
    law = _law(overlaps, orthogonal, weights, means_gram, precision, nodes)
    b, c = _classes("block", block, len(law.weights))
    terms = [(-p, _tilted(law, own, b, c)) for own, p in enumerate(law.weights)]
    if b == c:
        terms += [(p, _tilted(law, own, b)) for own, p in enumerate(law.weights)]
    return _sum(terms)


def softmax_gradient(
    overlaps: Numeric,
    orthogonal: Numeric,
    *,
    weights: Numeric,
    precision: Number,
    block: Any,
    means_gram: Numeric | None = None,
    nodes: WholeNumber = NODES,
) -> PopulationBlock:
    """Block bc of E[∇L ∇Lᵀ] of softmax regression, ``block`` = (b, c), exactly.

        1(b = c) p_b T_b − p_c T_c(b) − p_b T_b(c) + Σ_ℓ p_ℓ T_ℓ(b, c)

        T_ℓ       = μ_ℓ^⊗2 + I_d/λ
        T_ℓ(b)    = E_ℓ[π_b((μ_ℓ + (xᵇ − x̄)/λ)^⊗2 − S + I_d/λ)]
        T_ℓ(b, c) = E_ℓ[π_b π_c((μ_ℓ + (xᵇ + xᶜ − 2x̄)/λ)^⊗2 − 2S + I_d/λ)]

    with p = ``weights`` and E_ℓ the average over class ℓ, in the notation of ``softmax_hessian``.

    Source: BGHJ23 Lemma 3.3; the sign next to μ_ℓ in the sum over ℓ and those of the first two
    terms of C corrected.

    >>> start = softmax_gradient(
    ...     np.zeros((2, 2)), np.zeros((2, 2)), weights=[0.5, 0.5], precision=2.0, block=(0, 0)
    ... )
    >>> start.low_rank.diagonal().round(6).tolist(), round(start.identity, 6)  # (y − π)² = ¼
    ([0.125, 0.125, 0.0, 0.0], 0.125)
    """
    law = _law(overlaps, orthogonal, weights, means_gram, precision, nodes)
    p = law.weights
    b, c = _classes("block", block, len(p))
    terms = [(-p[c], _tilted(law, c, b)), (-p[b], _tilted(law, b, c))]
    terms += [(weight, _tilted(law, own, b, c)) for own, weight in enumerate(p)]
    if b == c:
        terms.append((p[b], _tilted(law, b)))
    return _sum(terms)


class _Law(NamedTuple):
    """The softmax at quadrature nodes of each class, and vectors in coordinates of the span."""

    softmax: np.ndarray  # (k classes of the data, q, k)
    nodes: np.ndarray  # (q,): weights of the rule
    weights: np.ndarray  # (k,): probability of each class
    means: np.ndarray  # (k, 2k)
    directions: np.ndarray  # (k, 2k): xᵃ up to a vector common to all, which no formula sees
    variance: float  # of the noise, 1/precision


def _law(
    overlaps: Numeric,
    orthogonal: Numeric,
    weights: Numeric,
    means_gram: Numeric | None,
    precision: Number,
    nodes: Any,
) -> _Law:
    m = square("overlaps", overlaps)
    k = len(m)
    r = _checks.covariance("orthogonal", orthogonal, k)
    p = _checks.probabilities("weights", weights, k)
    factor = np.linalg.cholesky(gram_of_means(means_gram, k))
    variance = 1 / _checks.positive("precision", precision, allow_infinite=True)
    count = _checks.integer("nodes", nodes, least=2)

    values, vectors = np.linalg.eigh(r)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    x = np.hstack([np.linalg.solve(factor, m.T).T, root])
    x -= x.mean(axis=0)  # one Gaussian variable less: the softmax sees differences of scores only
    left, sizes, _ = np.linalg.svd(x, full_matrices=False)
    dim = k - 1
    rule = (
        gaussian.gauss_hermite(dim, gaussian.hermite_order(dim, count))
        if dim <= 3
        else gaussian.sobol(dim, count)
    )
    noise = np.sqrt(variance) * rule.nodes @ (left * sizes)[:, :dim].T
    means = np.hstack([factor, np.zeros((k, k))])
    return _Law(softmax(m.T[:, None] + noise, axis=-1), rule.weights, p, means, x, variance)


def _tilted(law: _Law, own: int, *labels: int) -> PopulationBlock:
    """E[f YYᵀ] in the class ``own``, f the product of π over J = len(labels) labels.

    By parts, twice: ∇f = f·t with t = Σ_labels x − J x̄, and ∇t = −J(Σ_a π_a xᵃxᵃᵀ − x̄x̄ᵀ).
    """
    pi, x, count = law.softmax[own], law.directions, len(labels)
    chosen = list(labels)
    f = law.nodes * np.prod(pi[:, chosen], axis=1)
    shift = (np.eye(len(x))[chosen].sum(axis=0) - count * pi) @ x
    y = law.means[own] + law.variance * shift
    spread = x.T @ (np.diag(f @ pi) - (pi.T * f) @ pi) @ x
    return PopulationBlock(
        (y.T * f) @ y - count * law.variance**2 * spread, law.variance * float(f.sum())
    )


def _sum(terms: Iterable[tuple[float, PopulationBlock]]) -> PopulationBlock:
    listed = list(terms)
    total = np.sum([factor * block.low_rank for factor, block in listed], axis=0)
    identity = sum(float(factor) * block.identity for factor, block in listed)
    return PopulationBlock((total + total.T) / 2, identity)


def _classes(name: str, value: Any, k: int) -> tuple[int, int]:
    pair = list(value) if isinstance(value, Iterable) else []
    whole = all(isinstance(a, int | np.integer) and not isinstance(a, bool) for a in pair)
    if len(pair) != 2 or not whole or not all(0 <= a < k for a in pair):
        raise _checks.InputError(
            f"{name}={_checks.shown(value)} is not allowed: "
            f"{name} must be two classes (b, c) in 0..{k - 1}"
        )
    return int(pair[0]), int(pair[1])

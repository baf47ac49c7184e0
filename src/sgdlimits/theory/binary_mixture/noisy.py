"""The binary mixture at finite precision: the Gaussian integrals of BGJ22 (4.3) to nine digits.

At the mean +μ the two fields are s = WX = m + Tᵀt/√λ, where [m, R^½]ᵀ = QT is a QR decomposition
and t is standard normal in the plane. Given t, the noise along μ and along the orthogonal weights
has mean Qt, so every integral is two-dimensional. Integrands have kinks on the lines s₁ = 0 and
s₂ = 0: Gauss–Legendre panels end there. Those in t₁ also shrink geometrically towards the value at
which the line s₂ = 0 crosses t₂ = 0, because inner integrals change fast there if it is steep.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric
from sgdlimits.theory._inputs import symmetric
from sgdlimits.theory.binary_mixture.noiseless import noiseless_drift

REACH = 9.0  # normal tails beyond it weigh 2e-19
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


class Integrals(NamedTuple):
    """A^μ (2,), A^⊥ (2, 2) and B (2, 2) of BGJ22 (4.3), in this order."""

    along: np.ndarray
    orthogonal: np.ndarray
    square: np.ndarray


class Velocity(NamedTuple):
    """Time derivatives of readout, overlaps and orthogonal Gram matrix."""

    readout: np.ndarray
    overlaps: np.ndarray
    orthogonal: np.ndarray


def integrals(
    readout: Numeric, overlaps: Numeric, orthogonal: Numeric, *, precision: Number
) -> Integrals:
    """Gaussian integrals of the drift, for two neurons.

        A^μ_i  = E[⟨X, μ⟩ 1(sᵢ ≥ 0) (σ(v·relu(s)) − y)],   s = WX
        A^⊥_ij = E[⟨X, W⊥ⱼ⟩ 1(sᵢ ≥ 0) (σ(v·relu(s)) − y)]
        B_ij   = E[1(sᵢ ≥ 0) 1(sⱼ ≥ 0) (σ(v·relu(s)) − y)²]

    with Cov(s) = (mmᵀ + R)/λ, λ = ``precision``: both neurons see the same noise along μ.

    Source: BGJ22 (4.3); the covariance of Lemma 8.1 corrected.

    >>> v, m, R = [0.8, -0.5], [0.6, 0.3], [[0.7, 0.2], [0.2, 0.9]]
    >>> [round(float(a), 8) for a in integrals(v, m, R, precision=2.0).along]
    [-0.19604769, -0.20736252]
    """
    v, m, r = _state(readout, overlaps, orthogonal)
    scale = 1 / math.sqrt(_checks.positive("precision", precision))
    # The neuron with the larger field goes first, so that conditioning on it divides by no zero.
    order = np.argsort(-(m**2 + np.diag(r)), kind="stable")
    values, vectors = np.linalg.eigh(r)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    basis, triangle = np.linalg.qr(np.column_stack([m, root])[order].T)
    s, t, weight = _rule(m[order], scale * triangle.T, np.abs(v).max())
    s = s[np.argsort(order)]
    noise = scale * basis @ t
    along, perp = 1 + noise[0], root @ noise[1:]

    up, down = np.maximum(s, 0), np.maximum(-s, 0)
    # The class y = 0 is the mirror image X → −X of the class y = 1.
    signal, mirror = expit(v @ up) - 1, expit(v @ down)
    active, passive = s > 0, s < 0
    residual = weight / 2 * (active * signal - passive * mirror)
    square = np.einsum("iq,jq,q->ij", active, active, weight / 2 * signal**2)
    square += np.einsum("iq,jq,q->ij", passive, passive, weight / 2 * mirror**2)
    return Integrals(residual @ along, residual @ perp.T, square)


def drift(
    readout: Numeric,
    overlaps: Numeric,
    orthogonal: Numeric,
    *,
    precision: Number,
    ridge: Number,
    step: Number = 1.0,
) -> Velocity:
    """Effective drift of (v, m, R) for two neurons.

        dvᵢ/dt   = −mᵢA^μ_i − A^⊥_ii − αvᵢ
        dmᵢ/dt   = −vᵢA^μ_i − αmᵢ
        dR_ij/dt = −vᵢA^⊥_ij − vⱼA^⊥_ji − 2αR_ij + (c/λ)vᵢvⱼB_ij

    with A, B of ``integrals``, α = ``ridge``, c = ``step``, λ = ``precision``. For λ = ``math.inf``
    the limit of Prop. 4.2, ``noiseless_drift``.

    Source: BGJ22 Prop. 4.1.

    >>> v, m, R = [1.0, -1.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]
    >>> drift(v, m, R, precision=float("inf"), ridge=0.1).overlaps.tolist()
    [0.25, -0.25]
    """
    v, m, r = _state(readout, overlaps, orthogonal)
    lam = _checks.positive("precision", precision, allow_infinite=True)
    alpha, c = _checks.nonnegative("ridge", ridge), _checks.positive("step", step)
    if math.isinf(lam):
        return Velocity(*noiseless_drift(v, m, ridge=alpha), -2 * alpha * r)
    a, perp, b = integrals(v, m, r, precision=lam)
    pull = v[:, None] * perp
    return Velocity(
        -m * a - np.diag(perp) - alpha * v,
        -v * a - alpha * m,
        -pull - pull.T - 2 * alpha * r + c / lam * np.outer(v, v) * b,
    )


def _rule(
    mean: np.ndarray, lower: np.ndarray, slope: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes s = mean + lower·t, their t and weights, accurate across the kinks s₁ = 0, s₂ = 0."""
    size = max(abs(lower[0, 0]), 1e-12)
    floor = 1e-12 * max(size, np.abs(mean).max())
    first = math.copysign(max(abs(lower[0, 0]), floor), lower[0, 0])
    second = math.copysign(max(abs(lower[1, 1]), floor), lower[1, 1])
    # Panels of two standard deviations, shorter where the sigmoid is steep across one of them.
    panels = math.ceil(REACH * max(1.0, slope * size / 3))
    edges = [*np.linspace(-REACH, REACH, panels + 1), -mean[0] / first]
    if lower[1, 0] != 0:
        centre, width = -mean[1] / lower[1, 0], abs(second / lower[1, 0])
        doublings = max(0, math.ceil(math.log2(2 * REACH / width)))
        reach = width * 2.0 ** np.arange(doublings + 1)
        edges += [centre, *(centre + reach), *(centre - reach)]
    cuts = np.unique(np.clip(edges, -REACH, REACH))
    t1, w1 = _panels(cuts[:-1], cuts[1:])
    t1, w1 = t1.ravel(), w1.ravel()

    middle = mean[1] + lower[1, 0] * t1
    kink = np.clip(-middle / second, -REACH, REACH)
    pieces = np.linspace(0.0, 1.0, math.ceil(5 * max(1.0, slope * abs(second) / 3)) + 1)
    cuts = np.concatenate(
        [-REACH + (kink + REACH) * pieces[:, None], kink + (REACH - kink) * pieces[1:, None]]
    )
    t2, w2 = _panels(cuts[:-1], cuts[1:])  # (panel, first node, second node)
    weight = w2 * w1[:, None] * np.exp(-(t2**2 + t1[:, None] ** 2) / 2) / (2 * np.pi)
    t = np.stack([np.broadcast_to(t1[:, None], t2.shape).ravel(), t2.ravel()])
    s = mean[:, None] + np.array([[first, 0.0], [lower[1, 0], second]]) @ t
    return s, t, weight.ravel()


def _panels(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = (right - left)[..., None] / 2
    return (left + right)[..., None] / 2 + half * NODES, half * WEIGHTS


def _state(
    readout: Numeric, overlaps: Numeric, orthogonal: Numeric
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    v = _checks.array("readout", readout, (2,))
    return v, _checks.array("overlaps", overlaps, (2,)), symmetric("orthogonal", orthogonal, 2)

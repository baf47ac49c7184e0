"""Lazy training: when gradient flow of a model stays near that of its linearisation.

For n samples, predictions f(θ) ∈ ℝⁿ with Jacobian D(θ), and loss R = ‖y − f‖²/(2n), the flow and
the flow of the linearised model are

    θ̇ = D(θ)ᵀ(y − f(θ))/n,    θ̄̇ = D₀ᵀ(y − f₀ − D₀(θ̄ − θ₀))/n,    D₀ = D(θ₀), f₀ = f(θ₀)

The second is least squares of ỹ = y − f₀ + D₀θ₀ on D₀; ch. 9 of J24 prints − D₀θ₀.

Source: J24 Thms 9.1 and 9.2 (from Bartlett, Montanari and Rakhlin), with constants of our own where
the theorem hides them.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Matrix, Number, Numbers, WholeNumber
from sgdlimits.theory import _inputs

THRESHOLD = 0.25  # of Assumption 1


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What Theorem 9.1 promises for all times; nothing, if its assumption fails.

    Args:
        ratio: L‖y − f₀‖/σ_min², which has to be below ¼.
        rate: λ₀, R(θ_t) ≤ R(θ₀) e^(−λ₀t); 0 without a promise.
        reach: bound of ‖θ_t − θ₀‖, infinite without a promise.
        deviation: bound of ‖θ_t − θ̄_t‖, infinite without a promise.
    """

    ratio: float
    rate: float
    reach: float
    deviation: float

    @property
    def holds(self) -> bool:
        """Whether the assumption of the theorem is met."""
        return self.ratio < THRESHOLD

    def __repr__(self) -> str:
        if not self.holds:
            return f"no promise: L|y − f₀|/σ_min² = {self.ratio:.3g} is not below 1/4"
        return (
            f"loss falls at rate {self.rate:.3g}, parameters move by at most {self.reach:.3g}, "
            f"within {self.deviation:.3g} of the linearised flow"
        )


class Scalings(NamedTuple):
    """The four sizes of Theorem 9.2, up to constants."""

    misfit: float
    smallest: float
    largest: float
    lipschitz: float


def guarantee(
    misfit: Number, *, smallest: Number, largest: Number, lipschitz: Number, samples: WholeNumber
) -> Guarantee:
    """Theorem 9.1 with its constants: when the flow is lazy, and how near it stays.

    If L ρ < σ_min²/4, ρ = ‖y − f₀‖, then for all times

        R(θ_t) ≤ R(θ₀) e^(−λ₀t),  λ₀ = σ_min²/(2n),       ‖θ_t − θ₀‖ ≤ 2ρ/σ_min,
        ‖θ_t − θ̄_t‖ ≤ min{3ρ/σ_min, 8Lρ²/σ_min³ + (80/3) Lσ_max²ρ²/σ_min⁵}

    The last line is (3) of the theorem with constants: 3ρ/σ_min adds ‖θ̄_t − θ₀‖ ≤ ρ/σ_min. Else,
    ‖K_t − K₀‖ ≤ 5Lρσ_max/σ_min makes the difference r of predictions obey
    d‖r‖/dt ≤ −(a/4)‖r‖ + (5Lρ²σ_max/(σ_min n)) e^(−at), a = σ_min²/n, and the difference of
    parameters is the integral of (L‖θ_t − θ₀‖‖y − f_t‖ + σ_max‖r‖)/n.

    Args:
        misfit: ρ.
        smallest: σ_min, least singular value of D₀, 0 if it has more rows than columns.
        largest: σ_max, largest singular value of D₀.
        lipschitz: L, Lipschitz constant of θ ↦ D(θ) in operator norm, or a bound from above.
        samples: n.

    >>> guarantee(1.0, smallest=2.0, largest=4.0, lipschitz=0.1, samples=10)
    loss falls at rate 0.2, parameters move by at most 1, within 1.43 of the linearised flow
    >>> guarantee(1.0, smallest=1.0, largest=4.0, lipschitz=0.3, samples=10)
    no promise: L|y − f₀|/σ_min² = 0.3 is not below 1/4
    """
    rho, low = _checks.nonnegative("misfit", misfit), _checks.nonnegative("smallest", smallest)
    high, L = _checks.nonnegative("largest", largest), _checks.nonnegative("lipschitz", lipschitz)
    n = _checks.integer("samples", samples, least=1)
    if high < low:
        raise _checks.InputError(
            f"largest={largest!r} is not allowed: largest must be at least smallest={smallest!r}"
        )
    if low == 0:
        return Guarantee(math.inf, 0.0, math.inf, math.inf)
    # in units of σ_min: its powers, and products of what is large and small, leave the numbers
    reach, spread = rho / low, high / low
    ratio = L / low * reach if L * reach > 0 else 0.0
    if not ratio < THRESHOLD:
        return Guarantee(ratio, 0.0, math.inf, math.inf)
    near = ratio * reach
    near = 8 * near + 80 / 3 * near * spread * spread if near > 0 else 0.0
    return Guarantee(ratio, low / (2 * n) * low, 2 * reach, min(3 * reach, near))


def linear_flow(jacobian: Matrix, residual: Numbers, *, times: Numbers) -> np.ndarray:
    """Displacement of the linearised flow, θ̄_t − θ₀ = D₀ᵀ K⁻¹(1 − e^(−Kt/n))(y − f₀), K = D₀D₀ᵀ.

    It tends to the interpolant of the linearised model that is nearest to θ₀, D₀⁺(y − f₀).

    Args:
        jacobian: D₀, one row for each sample.
        residual: y − f₀.
        times: t ≥ 0.

    Returns:
        One row for each time.

    >>> linear_flow([[2.0, 0.0]], [3.0], times=[0.0, 0.5, 10.0]).round(4)
    array([[0.   , 0.   ],
           [1.297, 0.   ],
           [1.5  , 0.   ]])
    """
    r = _inputs.vector("residual", residual)
    D = _checks.array("jacobian", jacobian, None)
    if D.ndim != 2 or len(D) != len(r) or D.size == 0:
        raise _checks.InputError(
            f"jacobian has shape {D.shape}, which is not allowed: jacobian must have {len(r)} rows"
        )
    t = _inputs.vector("times", times)
    if np.any(t < 0):
        raise _checks.InputError(f"times={_checks.shown(t)} is not allowed: times must be >= 0")
    left, values, right = np.linalg.svd(D, full_matrices=False)
    positive = values > max(D.shape) * np.finfo(float).eps * max(values[0], 1e-300)
    safe = np.where(positive, values, 1.0)
    learned = np.where(positive, -np.expm1(-np.outer(t, safe**2) / len(r)) / safe, 0.0)
    return np.asarray((learned * (r @ left)) @ right)


def scalings(
    scale: Number, *, samples: WholeNumber, dim: WholeNumber, width: WholeNumber
) -> Scalings:
    """Theorem 9.2: sizes, up to constants, of what Theorem 9.1 needs, for two layers.

        ‖y − f₀‖ ≲ (1 + α)√n,            σ_min ≳ α√d,
        σ_max ≲ α(√n + √d),              L ≲ α√(d/m)(√n + √d)

    with high probability for f(x) = (α/√m) Σ_j b_j σ(⟨w_j, x⟩), b_j = ±1, w_j on the unit sphere,
    x ~ N(0, I_d), y sub-Gaussian, if md ≳ n log n and n ≲ dᵏ, where the Hermite coefficients of σ
    up to order k do not vanish.

    Args:
        scale: α.
        samples: n.
        dim: d.
        width: m.

    >>> scalings(2.0, samples=100, dim=25, width=400)
    Scalings(misfit=30.0, smallest=10.0, largest=30.0, lipschitz=7.5)
    """
    alpha = _checks.positive("scale", scale)
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    m = _checks.integer("width", width, least=1)
    both = math.sqrt(n) + math.sqrt(d)
    return Scalings(
        (1 + alpha) * math.sqrt(n),
        alpha * math.sqrt(d),
        alpha * both,
        alpha * math.sqrt(d / m) * both,
    )

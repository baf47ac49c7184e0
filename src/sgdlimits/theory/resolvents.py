"""Why spectra of sample covariances concentrate: the two lemmas behind Marchenko and Pastur.

S = (1/n) Σ_ℓ x_ℓx_ℓᵀ in dimension d has the transform m_d(z) = tr (S − z)⁻¹/d; ``ratio`` is
φ = n/d samples per dimension, as in ``marchenko_pastur``.

Source: J24 Lemmas 6.16 and 6.18, corrected.
"""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number
from sgdlimits.theory._inputs import square


def deviation_bound(deviation: object, dim: Number, ratio: Number, height: Number) -> np.ndarray:
    """Bound for P(|m_d(z) − E m_d(z)| ≥ t), for ``ratio`` φ = n/d samples per dimension.

        4 exp(−d η² t² / (16 φ)),  η = |Im z|

    Without its sample ℓ, m_d differs by at most 1/(dη), so that m_d − E m_d is a sum of n
    martingale differences of at most 2/(dη): Azuma's inequality, for real and imaginary part. It
    holds for any law of independent samples, and is far from sharp: deviations are of order 1/d,
    not 1/√d.

    Corrected: Lemma 6.16 of J24 has exp(−c d t²/η), which would make m_d concentrate ever better as
    z nears the spectrum.

    Args:
        deviation: t.
        dim: dimension d.
        ratio: φ.
        height: η, the distance of z to the real axis.

    >>> float(deviation_bound(0.2, dim=4000, ratio=2.0, height=1.0).round(6))
    0.026952
    """
    t = _checks.array("deviation", deviation, None)
    if np.any(t < 0):
        raise _checks.InputError(
            f"deviation={_checks.shown(t)} is not allowed: deviation must be >= 0"
        )
    d, phi = _checks.integer("dim", dim, least=1), _checks.positive("ratio", ratio)
    eta = _checks.positive("height", height)
    return np.asarray(np.minimum(4 * np.exp(-d * (eta * t) ** 2 / (16 * phi)), 1.0))


def quadratic_form_variance(matrix: object, kurtosis: Number) -> float:
    """Exact E (⟨x, Ax⟩/d − tr A/d)² for independent entries of mean 0 and variance 1.

        [2 Σ_{i≠j} A_ij² + (κ − 1) Σ_i A_ii²] / d²  ≤  max(2, κ − 1) ‖A‖² / d

    for symmetric A and κ = E x⁴: of order 1/d, so that in L¹ the gap is of order 1/√d.

    Corrected: the proof of Lemma 6.18 in J24 lacks the 2, as pairs (i, j) and (j, i) are the same.

    Args:
        matrix: A, real and symmetric.
        kurtosis: κ, at least 1.

    >>> quadratic_form_variance([[1.0, 0.5], [0.5, 0.0]], kurtosis=3.0)
    0.75
    """
    A = square("matrix", matrix)
    if not np.allclose(A, A.T, rtol=1e-8, atol=1e-10 * np.max(np.abs(A))):
        raise _checks.InputError(
            f"matrix={_checks.shown(A)} is not allowed: matrix must be symmetric"
        )
    fourth = _checks.positive("kurtosis", kurtosis)
    if fourth < 1:
        raise _checks.InputError(
            f"kurtosis={kurtosis!r} is not allowed: kurtosis must be >= 1, as E x⁴ ≥ (E x²)²"
        )
    diagonal = np.sum(np.diag(A) ** 2)
    return float((2 * (np.sum(A**2) - diagonal) + (fourth - 1) * diagonal) / len(A) ** 2)

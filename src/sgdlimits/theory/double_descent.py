"""Risk of least squares in high dimension: without ridge it explodes at one sample per parameter.

Data y = ⟨x, β⟩ + ε with independent entries of x of mean 0 and variance 1, ``signal`` r² = ‖β‖²
and ``noise`` σ² = E ε²; n samples in dimension d, ``ratio`` is φ = n/d samples per dimension, as in
``marchenko_pastur``. The lecture notes have γ = d/n = 1/φ instead. Estimators are

    β̂ = argmin ‖Xβ − y‖²/n + λ‖β‖²,  and for λ = 0 the one of least norm

and their risk is E⟨x, β̂ − β⟩² = ‖β̂ − β‖² on a new sample, noise not counted. As n, d → ∞ it tends
to ``bias`` + ``variance`` almost surely, if E|x_i|^(4+ε) is finite.

Source: J24 Thms 7.4 and 7.6, Lemma 7.3, corrected.
"""

import math

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber


def bias(ratio: Number, signal: Number, ridge: Number = 0.0) -> float:
    """Limit of the squared bias, for ``ratio`` φ = n/d samples per dimension.

        r² λ² m'(−λ),  which is r² max(0, 1 − φ) at λ = 0

    with the Stieltjes transform m of the Marchenko–Pastur law.

    >>> bias(0.5, signal=1.0), bias(2.0, signal=1.0)
    (0.5, 0.0)
    """
    phi, r2 = _checks.positive("ratio", ratio), _checks.nonnegative("signal", signal)
    scale = _checks.nonnegative("ridge", ridge)
    if scale == 0:
        return r2 * max(0.0, 1 - phi)
    kept, root = _kept(phi, scale), _root(phi, scale)
    return r2 * kept * (kept + phi * scale) / root


def variance(ratio: Number, noise: Number, ridge: Number = 0.0) -> float:
    """Limit of the variance, for ``ratio`` φ = n/d samples per dimension.

        σ² (m(−λ) − λ m'(−λ))/φ,  which is σ²/(φ − 1) or σ² φ/(1 − φ) at λ = 0

    and infinite at λ = 0, φ = 1. Corrected: for φ > 1 Thm 7.4 of J24 has it with the wrong sign,
    γ/(γ − 1), and the proof of Thm 7.6 has 1/γ for γ.

    >>> variance(2.0, noise=0.1), round(variance(0.5, noise=0.1), 12)
    (0.1, 0.1)
    """
    phi, sigma2 = _checks.positive("ratio", ratio), _checks.nonnegative("noise", noise)
    scale = _checks.nonnegative("ridge", ridge)
    if sigma2 == 0:
        return 0.0
    if scale == 0:
        return sigma2 * min(1.0, phi) / abs(phi - 1) if phi != 1 else math.inf
    root = _root(phi, scale)
    below = phi - 1 - phi * scale
    # λ m(−λ) (root + below)/(2λφ), without cancellation and where λφ is too small for a number
    part = (
        (root + below) / (root + phi * scale + (phi - 1))
        if below > 0
        else _kept(phi, scale) * 2 * phi / (root - below)
    )
    return sigma2 * part / root


def risk(ratio: Number, signal: Number, noise: Number, ridge: Number = 0.0) -> float:
    """Limit of ‖β̂ − β‖², ``bias`` + ``variance``, for ``ratio`` φ = n/d samples per dimension.

    >>> risk(0.5, signal=1.0, noise=0.1)
    0.6
    """
    return bias(ratio, signal, ridge) + variance(ratio, noise, ridge)


def optimal_ridge(ratio: Number, signal: Number, noise: Number) -> float:
    """The ridge of least risk, λ = σ²/(φ r²), for ``ratio`` φ = n/d samples per dimension.

    It is what Bayes' rule says of β ~ N(0, r²/d). The risk there is σ² m(−λ)/φ, without a peak. A
    signal of zero asks for an infinite ridge.

    >>> optimal_ridge(2.0, signal=1.0, noise=0.1)
    0.05
    """
    phi, r2 = _checks.positive("ratio", ratio), _checks.nonnegative("signal", signal)
    sigma2 = _checks.nonnegative("noise", noise)
    if r2 == 0:
        return math.inf if sigma2 > 0 else 0.0
    return sigma2 / (phi * r2)


def resolvent_form(ratio: Number, signal: Number, ridge: Number) -> float:
    """Limit of ⟨β, (S + λ)⁻¹β⟩, r² m(−λ), for ``ratio`` φ = n/d samples per dimension.

    So a fixed direction sees the law of all eigenvalues (Thm 7.6 of J24, from Rubio and Mestre).

    >>> round(resolvent_form(2.0, signal=1.0, ridge=1.0), 6)
    0.561553
    """
    phi, r2 = _checks.positive("ratio", ratio), _checks.nonnegative("signal", signal)
    scale = _checks.positive("ridge", ridge)
    return r2 * _kept(phi, scale) / scale


def mean_bias(samples: WholeNumber, dim: WholeNumber, signal: Number) -> float:
    """E of the squared bias without ridge at finite size, for Gaussian x: r² max(0, 1 − n/d).

    >>> mean_bias(50, 100, signal=1.0)
    0.5
    """
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    return _checks.nonnegative("signal", signal) * max(0.0, 1 - n / d)


def mean_variance(samples: WholeNumber, dim: WholeNumber, noise: Number) -> float:
    """E of the variance without ridge at finite size, for Gaussian x: an inverse Wishart's trace.

        σ² min(n, d)/(|n − d| − 1)  if |n − d| ≥ 2,  infinite else

    from Lemma 7.3, tr (S⁺) σ²/n. Where it is infinite single data sets are finite, but means over
    data sets do not converge.

    >>> mean_variance(100, 50, noise=1.0).as_integer_ratio() == (50 / 49).as_integer_ratio()
    True
    >>> mean_variance(100, 99, noise=1.0)
    inf
    """
    n, d = _checks.integer("samples", samples, least=1), _checks.integer("dim", dim, least=1)
    sigma2 = _checks.nonnegative("noise", noise)
    if sigma2 == 0:
        return 0.0
    return sigma2 * min(n, d) / (abs(n - d) - 1) if abs(n - d) >= 2 else math.inf


def _root(phi: float, ridge: float) -> float:
    """√(b² + 4λφ), b = φλ + φ − 1: of the equation λ m² + b m − φ = 0 for m(−λ)."""
    if math.isinf(phi * ridge):
        raise _checks.InputError(
            f"ridge={ridge!r} is not allowed: ridge must be so small that ridge times "
            f"ratio={phi!r} is a number"
        )
    return math.hypot(phi * ridge + (phi - 1), 2 * math.sqrt(ridge) * math.sqrt(phi))


def _kept(phi: float, ridge: float) -> float:
    """λ m(−λ), in (0, 1]: what the ridge keeps of the error, without cancellation."""
    b, root = phi * ridge + (phi - 1), _root(phi, ridge)
    return 2 * phi * ridge / (b + root) if b > 0 else (root - b) / 2

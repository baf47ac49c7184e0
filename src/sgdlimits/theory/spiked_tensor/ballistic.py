"""The ballistic limit of spiked tensors: drift, its Jacobian, diffusion, and the loss."""

from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric, Values, WholeNumber
from sgdlimits.theory._inputs import numbers


class Velocity(NamedTuple):
    """Time derivatives of the overlap and of the squared radius."""

    overlap: Values
    radius_squared: Values


def drift(
    overlap: Numeric,
    radius_squared: Numeric,
    *,
    order: WholeNumber,
    snr: Number,
    step: Number = 1.0,
    ridge: Number = 0.0,
) -> Velocity:
    """Effective drift of (m, r²), in the notation of the package; states broadcast.

        dm/dt  = 2km(λmᵏ⁻² − ρᵏ⁻¹) − αm
        dr²/dt = −4kρᵏ⁻¹(r² − c) − 2αr²

    Source: BGJ22 (3.1); the ridge term of sec. 7 corrected.

    >>> velocity = drift(0.5, 0.75, order=2, snr=2.0)
    >>> float(velocity.overlap), float(velocity.radius_squared)
    (2.0, 2.0)
    """
    k, lam, c, alpha = _parameters(order, snr, step, ridge)
    m, r2 = numbers("overlap", overlap), numbers("radius_squared", radius_squared)
    power = (m**2 + r2) ** (k - 1)
    dm = 2 * k * (lam * m ** (k - 1) - m * power) - alpha * m
    dr2 = -4 * k * power * (r2 - c) - 2 * alpha * r2
    return Velocity(dm, dr2)


def jacobian(
    overlap: Number,
    radius_squared: Number,
    *,
    order: WholeNumber,
    snr: Number,
    step: Number = 1.0,
    ridge: Number = 0.0,
) -> np.ndarray:
    """Jacobian matrix of the effective drift in (m, r²).

        ∂(dm/dt)/∂m   = 2k(λ(k−1)mᵏ⁻² − ρᵏ⁻¹ − 2(k−1)m²ρᵏ⁻²) − α
        ∂(dm/dt)/∂r²  = −2k(k−1)mρᵏ⁻²
        ∂(dr²/dt)/∂m  = −8k(k−1)mρᵏ⁻²(r² − c)
        ∂(dr²/dt)/∂r² = −4kρᵏ⁻¹ − 4k(k−1)ρᵏ⁻²(r² − c) − 2α

    Source: BGJ22 (3.1), linearised.

    >>> jacobian(0.5, 0.75, order=2, snr=2.0).tolist()
    [[2.0, -2.0], [2.0, -6.0]]
    """
    k, lam, c, alpha = _parameters(order, snr, step, ridge)
    m = _checks.array("overlap", overlap, ())
    r2 = _checks.array("radius_squared", radius_squared, ())
    high, low = (m**2 + r2) ** (k - 1), (k - 1) * (m**2 + r2) ** (k - 2)
    mm = 2 * k * (lam * (k - 1) * m ** (k - 2) - high - 2 * m**2 * low) - alpha
    rr = -4 * k * (high + low * (r2 - c)) - 2 * alpha
    return np.array([[mm, -2 * k * m * low], [-8 * k * m * low * (r2 - c), rr]])


def diffusion(
    overlap: Numeric, radius_squared: Numeric, *, order: WholeNumber, step: Number = 1.0
) -> np.ndarray:
    """Diffusion matrix Σ = c·JVJᵀ of (m, r²): the covariance rate of √dim times their fluctuations.

        Σ₁₁ = c(4kρᵏ⁻¹ + 4k(k−1)m²ρᵏ⁻²)
        Σ₁₂ = 8ck(k−1)mr²ρᵏ⁻²
        Σ₂₂ = c(16kr²ρᵏ⁻¹ + 16k(k−1)r⁴ρᵏ⁻²)

    where V = 4kρᵏ⁻¹I + 4k(k−1)ρᵏ⁻²xxᵀ is the covariance of the gradient. States broadcast; the
    result has shape (..., 2, 2).

    Source: BGJ22 (7.2), (7.3); the second row and column corrected.

    >>> diffusion(0.0, 1.0, order=2).tolist()
    [[8.0, 0.0], [0.0, 64.0]]
    """
    k = _checks.integer("order", order, least=2)
    c = _checks.positive("step", step)
    m, r2 = np.broadcast_arrays(
        numbers("overlap", overlap), numbers("radius_squared", radius_squared)
    )
    flat = 4 * k * (m**2 + r2) ** (k - 1)
    spike = 4 * k * (k - 1) * (m**2 + r2) ** (k - 2)
    cross = 2 * m * r2 * spike
    rows = [[flat + m**2 * spike, cross], [cross, 4 * r2 * flat + 4 * r2**2 * spike]]
    return c * np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def population_loss(
    overlap: Numeric,
    radius_squared: Numeric,
    *,
    order: WholeNumber,
    snr: Number,
    ridge: Number = 0.0,
) -> Values:
    """Population loss without the constant E‖Y‖².

        Φ = −2λmᵏ + ρᵏ + (α/2)ρ

    Source: BGJ22 sec. 3 and 7.

    >>> float(population_loss(1.0, 1.0, order=2, snr=2.0))
    0.0
    """
    k, lam, _, alpha = _parameters(order, snr, 1.0, ridge)
    m, r2 = numbers("overlap", overlap), numbers("radius_squared", radius_squared)
    return -2 * lam * m**k + (m**2 + r2) ** k + alpha / 2 * (m**2 + r2)


def loss_drift(
    overlap: Numeric,
    radius_squared: Numeric,
    *,
    order: WholeNumber,
    snr: Number,
    step: Number = 1.0,
    ridge: Number = 0.0,
) -> Values:
    """Effective drift of the population loss, which the corrector may make positive.

        dΦ/dt = −(∂Φ/∂m)² − 4r²(∂Φ/∂r²)² + 4ckρᵏ⁻¹ ∂Φ/∂r²
              = −4k²m²(λmᵏ⁻² − ρᵏ⁻¹)² − 4k²ρ²ᵏ⁻²(r² − c)   without ridge

    Source: BGJ22 (3.4).

    >>> float(loss_drift(0.0, 0.5, order=2, snr=1.0))  # Φ grows while r² grows to 1
    2.0
    """
    k, lam, c, alpha = _parameters(order, snr, step, ridge)
    m, r2 = numbers("overlap", overlap), numbers("radius_squared", radius_squared)
    power = (m**2 + r2) ** (k - 1)
    along = -2 * k * lam * m ** (k - 1) + (2 * k * power + alpha) * m
    radial = k * power + alpha / 2
    return -(along**2) - 4 * r2 * radial**2 + 4 * c * k * power * radial


def _parameters(
    order: WholeNumber, snr: Number, step: Number, ridge: Number
) -> tuple[int, float, float, float]:
    return (
        _checks.integer("order", order, least=2),
        _checks.nonnegative("snr", snr),
        _checks.positive("step", step),
        _checks.nonnegative("ridge", ridge),
    )

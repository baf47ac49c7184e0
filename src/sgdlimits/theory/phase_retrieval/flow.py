"""Effective drifts of phase retrieval, on the sphere and without constraint."""

from typing import NamedTuple

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, Numeric, Values
from sgdlimits.theory._inputs import numbers, symmetric, vector


class Velocity(NamedTuple):
    """Time derivatives of the overlaps m and of the Gram matrix Q."""

    overlaps: np.ndarray
    gram: np.ndarray


def drift(
    overlaps: Numeric,
    gram: Numeric,
    *,
    step: Number,
    noise: Number = 0.0,
    spherical: Flag = True,
    signal: Number = 1.0,
) -> Velocity:
    """Effective drift of (m, Q) for any width p.

        p dm/dt = 2(ρ − tr Q/p) m + 4(ρm − Qm/p)                                  =: Ψ
        p dQ/dt = 4(ρ − tr Q/p) Q + 8(mmᵀ − Q²/p)
                  + (4γ/p) {3ρ²Q + 12ρ mmᵀ
                    − (2/p) [(ρ tr Q + 2‖m‖²) Q + 2 tr(Q) mmᵀ + 2ρQ² + 4(mmᵀQ + Qmmᵀ)]
                    + (1/p²) [(tr(Q)² + 2 tr(Q²)) Q + 4 tr(Q) Q² + 8Q³] + ΔQ}     =: Φ

    with γ = ``step``, Δ = ``noise`` and ρ = ``signal`` the squared norm of the teacher. With
    ``spherical`` weights

        p dmⱼ/dt   = Ψⱼ − mⱼΦ_jj/(2Q_jj),
        p dQ_jl/dt = Φ_jl − (Q_jl/2)(Φ_jj/Q_jj + Φ_ll/Q_ll),

    which keeps each squared norm Q_jj at its value (1 in the paper). The factor p on the left is
    our unit of time.

    Source: AKLS23 (26), (21); the term mmᵀ of (26b) corrected.

    >>> velocity = drift([0.1], [[1.0]], step=0.05)
    >>> round(float(velocity.overlaps[0]), 6), float(velocity.gram[0, 0])
    (0.2772, 0.0)
    """
    m = vector("overlaps", overlaps)
    p = len(m)
    q = symmetric("gram", gram, p)
    gamma, delta = _checks.positive("step", step), _checks.nonnegative("noise", noise)
    rho = _checks.positive("signal", signal)
    trace, mm, qq = np.trace(q), np.outer(m, m), q @ q
    psi = 2 * (rho - trace / p) * m + 4 * (rho * m - q @ m / p)
    error_square = 3 * rho**2 * q + 12 * rho * mm + delta * q
    error_square -= (2 / p) * (
        (rho * trace + 2 * m @ m) * q + 2 * trace * mm + 2 * rho * qq + 4 * (mm @ q + q @ mm)
    )
    error_square += ((trace**2 + 2 * np.trace(qq)) * q + 4 * trace * qq + 8 * qq @ q) / p**2
    phi = 4 * (rho - trace / p) * q + 8 * (mm - qq / p) + 4 * gamma / p * error_square
    if _checks.flag("spherical", spherical):
        positive_diagonal(q)
        radial = np.diag(phi) / (2 * np.diag(q))
        psi = psi - m * radial
        phi = phi - q * (radial[:, None] + radial[None, :])
    return Velocity(psi / p, phi / p)


def positive_diagonal(gram: np.ndarray) -> None:
    """Raise InputError unless every neuron has a length, as it has on a sphere."""
    if np.any(np.diag(gram) <= 0):
        raise _checks.InputError(
            f"gram={gram.tolist()} is not allowed: gram must have a positive diagonal "
            "when spherical=True"
        )


def single_drift(overlap: Numeric, *, step: Number, noise: Number = 0.0) -> Values:
    """Effective drift of the overlap of one neuron on the unit sphere.

        dm/dt = m (4(1 − 6γ)(1 − m²) − 2γΔ),   γ = ``step``,   Δ = ``noise``

    Source: AKLS23 (7).

    >>> round(float(single_drift(0.1, step=0.05)), 6)
    0.2772
    """
    gamma, delta = _checks.positive("step", step), _checks.nonnegative("noise", noise)
    m = numbers("overlap", overlap)
    return m * (4 * (1 - 6 * gamma) * (1 - m**2) - 2 * gamma * delta)


def unconstrained_drift(
    overlap: Numeric, square_norm: Numeric, *, step: Number, signal: Number = 1.0
) -> tuple[Values, Values]:
    """Effective drift of (m, q) for one free neuron without label noise.

        dm/dt = 6m(ρ − q)
        dq/dt = 4(q(ρ − 3q) + 2m²) + 12γ(q(ρ² + 5q² − 2ρq) + 4m²(ρ − 2q))

    with q = ``square_norm``, γ = ``step`` and ρ = ``signal`` the squared norm of the teacher.

    Source: AKLS23 (75), (76).

    >>> [float(rate) for rate in unconstrained_drift(1.0, 1.0, step=0.05)]  # the teacher
    [0.0, 0.0]
    """
    gamma, rho = _checks.positive("step", step), _checks.positive("signal", signal)
    m, q = numbers("overlap", overlap), numbers("square_norm", square_norm)
    corrector = q * (rho**2 + 5 * q**2 - 2 * rho * q) + 4 * m**2 * (rho - 2 * q)
    return 6 * m * (rho - q), 4 * (q * (rho - 3 * q) + 2 * m**2) + 12 * gamma * corrector

"""The landscape of the population risk of one neuron: critical points, curvature, plateau.

Weights w of dimension d and teacher w⋆ with ‖w⋆‖² = ρ, overlap m = w·w⋆, squared norm q = ‖w‖²,
standard Gaussian samples; R is a function of m and q alone.
"""

import math
from typing import NamedTuple

from sgdlimits import _checks
from sgdlimits._types import Flag, Number, WholeNumber
from sgdlimits.theory._inputs import below


class CriticalPoint(NamedTuple):
    """A point, or a set of equivalent points, at which the gradient of the risk vanishes.

    ``eigenvalues`` of the Hessian there with their multiplicities, increasing.
    """

    kind: str
    overlap: float
    square_norm: float
    risk: float
    eigenvalues: tuple[tuple[float, int], ...]

    def __repr__(self) -> str:
        spectrum = ", ".join(f"{value:.6g} ({count}×)" for value, count in self.eigenvalues)
        return (
            f"{self.kind} at overlap {self.overlap:.6g}, squared norm {self.square_norm:.6g}: "
            f"risk {self.risk:.6g}, Hessian {spectrum}"
        )


def critical_points(
    dim: WholeNumber, *, noise: Number = 0.0, signal: Number = 1.0, spherical: Flag = False
) -> tuple[CriticalPoint, ...]:
    """Critical points of the population risk, with the spectra of the Hessian there.

        R = Δ/2 + ½(3ρ² + 3q² − 4m² − 2ρq)
        ∇R = 2(3q − ρ)w − 4m w⋆
        ∇²R = 2(3q − ρ)I + 12 wwᵀ − 4 w⋆w⋆ᵀ

    In space: a maximum at w = 0; saddles on the sphere of radius √(ρ/3) across w⋆, flat but for one
    direction down, along w⋆, and one up, along w; minima at ±w⋆. On the unit sphere (ρ = 1):
    R = Δ/2 + 2(1 − m²), and the Hessian on the d − 1 tangent directions is 4m² across w⋆ and
    8m² − 4 towards it: saddles, which are global maxima, on the equator m = 0, minima at ±w⋆.

    Source: AKLS23 (63)–(73), (80)–(85); corrected: the risk (63), (69) by a factor ½, (71) is 4/3,
    the rank-one terms of (67)–(72) have the coefficients 12 and −4; (79) lacks a factor 2 that (83)
    has; the sphere has d − 2 flat directions, not d − 1.

    >>> for point in critical_points(100):
    ...     point
    maximum at overlap 0, squared norm 0: risk 1.5, Hessian -6 (1×), -2 (99×)
    saddle at overlap 0, squared norm 0.333333: risk 1.33333, Hessian -4 (1×), 0 (98×), 4 (1×)
    minimum at overlap 1, squared norm 1: risk 0, Hessian 4 (99×), 12 (1×)
    minimum at overlap -1, squared norm 1: risk 0, Hessian 4 (99×), 12 (1×)
    """
    d, floor = _checks.integer("dim", dim, least=3), _checks.nonnegative("noise", noise) / 2
    rho = _checks.positive("signal", signal)
    if _checks.flag("spherical", spherical):
        if rho != 1:
            raise _checks.InputError(
                f"signal={signal!r} is not allowed: signal must be 1 when spherical=True"
            )
        equator = CriticalPoint("saddle", 0.0, 1.0, floor + 2.0, sphere_hessian(0.0, d))
        poles = [CriticalPoint("minimum", m, 1.0, floor, sphere_hessian(m, d)) for m in (1.0, -1.0)]
        return (equator, *poles)
    third = rho / 3
    low, flat, high = (-4 * rho, 1), (0.0, d - 2), (4 * rho, 1)
    ends = ((4 * rho, d - 1), (12 * rho, 1))
    centre = ((-6 * rho, 1), (-2 * rho, d - 1))
    return (
        CriticalPoint("maximum", 0.0, 0.0, floor + 1.5 * rho**2, centre),
        CriticalPoint("saddle", 0.0, third, floor + 4 / 3 * rho**2, (low, flat, high)),
        *(CriticalPoint("minimum", m, rho, floor, ends) for m in (rho, -rho)),
    )


def sphere_hessian(overlap: Number, dim: WholeNumber) -> tuple[tuple[float, int], ...]:
    """Eigenvalues of the Hessian of the population risk on the unit sphere, anywhere on it.

        8m² − 4 towards the teacher, 4m² in the d − 2 directions across it

    Increasing, with multiplicities; there are d − 1 tangent directions.

    Source: AKLS23 (83).

    >>> sphere_hessian(0.0, 100)
    ((-4.0, 1), (0.0, 98))
    """
    m = float(_checks.array("overlap", overlap, ()))
    if abs(m) > 1:
        raise _checks.InputError(
            f"overlap={overlap!r} is not allowed: overlap must lie in [-1, 1] on the unit sphere"
        )
    d = _checks.integer("dim", dim, least=3)
    towards, across = 8 * m**2 - 4, 4 * m**2
    if towards == across:  # at ±w⋆ there is no direction towards it
        return ((across, d - 1),)
    return ((towards, 1), (across, d - 2))


class Plateau(NamedTuple):
    """Where the norm of a free neuron rests while it has not found the teacher.

    At ``square_norm`` q the norm is stable, and beyond ``repelling_norm`` it grows without bounds;
    small overlaps grow at ``growth_rate``; ``risk`` is the population risk there.
    """

    square_norm: float
    repelling_norm: float
    growth_rate: float
    risk: float

    def __repr__(self) -> str:
        return (
            f"plateau at squared norm {self.square_norm:.6g}, risk {self.risk:.6g}: overlaps "
            f"{'grow' if self.growth_rate > 0 else 'decay'} at rate {abs(self.growth_rate):.6g}"
        )


def plateau(step: Number, *, noise: Number = 0.0, signal: Number = 1.0) -> Plateau:
    """The plateau of norm learning at m = 0, shifted from q = ρ/3 by the corrector.

        dq/dt = 4q [15γq² − (3 + 6γρ)q + ρ + 3γρ² + γΔ]

    whose smaller root is the plateau, the larger one repels. It exists for γ up to
    ``largest_plateau_step``; there the roots meet, and for larger steps every norm grows without
    bounds. Small overlaps follow dm/dt = 6(ρ − q)m, at the rate 4ρ as γ → 0; they decay, and
    nothing is learned from there, if Δ > 4ρ² and γ > 2ρ/(12ρ² + Δ).

    Source: AKLS23 (75), (76) at m = 0, with label noise from (26); sec. H, where γ → 0.

    >>> plateau(0.05)
    plateau at squared norm 0.381576, risk 1.33682: overlaps grow at rate 3.71055
    """
    delta, rho = _checks.nonnegative("noise", noise), _checks.positive("signal", signal)
    largest = largest_plateau_step(noise=delta, signal=rho)
    why = "from where on norms grow without bounds and there is no plateau (largest_plateau_step)"
    gamma = below("step", step, largest, why)
    linear, constant = 3 + 6 * gamma * rho, rho + 3 * gamma * rho**2 + gamma * delta
    root = math.sqrt(max(linear**2 - 60 * gamma * constant, 0.0))
    q = 2 * constant / (linear + root)  # no cancellation at small steps
    risk = delta / 2 + (3 * rho**2 + 3 * q**2 - 2 * rho * q) / 2
    return Plateau(q, (linear + root) / (30 * gamma), 6 * (rho - q), risk)


def largest_plateau_step(*, noise: Number = 0.0, signal: Number = 1.0) -> float:
    """Step beyond which the norm of a free neuron across the teacher grows without bounds.

        γ = 9/(12ρ + √(1440ρ² + 540Δ)),   which is 0.18 for ρ = 1 without noise

    Source: AKLS23 (76) at m = 0: where the two roots of ``plateau`` meet.

    >>> round(largest_plateau_step(), 6)
    0.18019
    """
    delta, rho = _checks.nonnegative("noise", noise), _checks.positive("signal", signal)
    return 9 / (12 * rho + math.sqrt(1440 * rho**2 + 540 * delta))

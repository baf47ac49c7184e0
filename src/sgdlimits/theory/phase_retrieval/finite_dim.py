"""How finite dimension slows growth down, and the steps up to which it does so by little.

One sample moves all neurons along one and the same vector. Where it moves them towards the teacher
by kicks of mⱼ, it moves their mutual overlaps by kicks of Q_jl that are correlated with mⱼm_l:
neurons that look the same way align, at random, and what is aligned grows more slowly, until the
overlap has decayed again at the rate ω_Q. This costs a relative O(1/dim) of the growth rate, with a
constant of hundreds where ω_Q is small. Once aligned, neurons move as one of step γ/p, which learns
only below 2/(12 + Δ): at larger steps such runs never escape.
"""

from typing import NamedTuple

from scipy.optimize import brentq

from sgdlimits import _checks
from sgdlimits._types import Number, WholeNumber
from sgdlimits.theory.phase_retrieval.exit_expansions import LARGE
from sgdlimits.theory.phase_retrieval.exit_setting import Setting, checked_setting
from sgdlimits.theory.phase_retrieval.rates import (
    alignment_decay_rate,
    fastest_step,
    largest_step,
)


class Coupling(NamedTuple):
    """Coefficients at the equator, in units of our time; see ``growth_slowing``."""

    local: float  # ρ₁
    bend: float  # λ₂
    cross: float  # χ
    variance: float  # V


def growth_slowing(width: WholeNumber = 1, *, step: Number, noise: Number = 0.0) -> float:
    """φ, where overlaps with the teacher grow at the rate ω(1 − φ/dim + O(1/dim²)) on average.

    While 1/dim ≪ ‖m‖² ≪ 1, overlaps Q_jl = q_jl/√d of different neurons fluctuate with the
    stationary variance V, independently, and

        dm = (ω + ℓq/√d + …) m dt + noise,   ℓ = −4/p²,
        d Cov(mⱼ, Q_jl) = (χ/d) m_l dt,      d Var(Q_jl) = (2ω_Q V/d) dt.

    To second order in q and first in 1/d, the mean over directions of m gives

        φ = [2|ℓ|(χ − |ℓ|V)(p − 1)p/((p + 2)ω_Q) − λ₂V − ρ₁]/ω

    with γ = ``step``, Δ = ``noise``, ω = ``growth_rate``, ω_Q = ``alignment_decay_rate`` and

        χ  = (8γ/p²)[10 − 14/p + 24/p² + Δ + (γ/p)(68 − 108/p + 112/p² − 192/p³ + 6Δ(1 − 2/p))]
        λ₂ = (1 − 1/p)(4/p)[1 − (γ/p)(1 + 12/p)]
        2ω_Q V = γ{(16/p²)(2 + 2/p + 24/p² + Δ) + (γ/p³)(256 − 768/p − 1024/p² − 6144/p³ − 384Δ/p)
               + (γ²/p⁴)[960 − 1664/p + 4800/p² + 7424/p³ + 30720/p⁴
                         + Δ(192 + 192/p + 2304/p²) + 48Δ²]}.

    ρ₁ has the Itô terms of ``one_step_drift`` and the part of the noise of m that grows with m.
    The largest term is that of χ. Near ``fastest_step`` with many neurons ω_Q is small and φ large:
    140 for p = 5 and 740 for p = 20 at Δ = ½, and dim must be well above that. Exit times are
    longer by φ/dim of themselves, but for O(1/dim) of 1/ω that the first kicks add.

    Source: of its own, from the second moments of one step; AKLS23 (38) is φ = 0.

    >>> round(growth_slowing(5, step=1.5, noise=0.5), 2)
    127.93
    """
    setting = checked_setting(LARGE, width, step, noise, 0.1)
    p, rate, own = setting.width, setting.rate, coupling(setting)
    if p == 1:
        return -own.local / rate
    slope, decay = 4 / p**2, alignment_decay_rate(p, setting.step)
    common = 2 * slope * (own.cross - slope * own.variance) / decay * (p - 1) * p / (p + 2)
    return (common - own.bend * own.variance - own.local) / rate


def trapping_step(width: WholeNumber, noise: Number = 0.0) -> float:
    """Step from which on neurons that have aligned with one another never learn, 2p/(12 + Δ).

    Parallel neurons get parallel gradients: they stay parallel and move as a single one with step
    γ/p, whose overlap with the teacher decays from γ/p = 2/(12 + Δ) on, ``largest_step(noise)``.
    The fastest step is beyond it if and only if (8 − Δ)p² > 4p + 16: from p = 2 on for Δ < 2. At
    such steps a part of the runs is trapped, the smaller the larger dim.

    >>> trapping_step(5, 0.5)
    0.8
    """
    p = _checks.integer("width", width, least=1)
    return p * largest_step(noise)


def reliable_step(
    dim: WholeNumber, width: WholeNumber = 1, noise: Number = 0.0, *, slowing: Number = 0.03
) -> float:
    """The fastest step, or, where it is smaller, that of a φ/dim of so much: ``growth_slowing``.

    Up to it exit times are known to about (φ/dim)². ``fastest_step`` is right as dim → ∞: at finite
    dim neurons disturb one another there, and where φ/dim is large most of them align.

    >>> reliable_step(3000, 1, 0.5), round(reliable_step(3000, 5, 0.5), 3)
    (0.08, 1.308)
    """
    d, share = _checks.integer("dim", dim, least=2), _checks.positive("slowing", slowing)
    fastest = fastest_step(width, noise)

    def beyond(step: float) -> float:
        return growth_slowing(width, step=step, noise=noise) / d - share

    if beyond(fastest) <= 0:
        return fastest
    return float(brentq(beyond, 1e-6 * fastest, fastest))


def coupling(setting: Setting) -> Coupling:
    """ρ₁, λ₂, χ and V."""
    p, g, D = setting.width, setting.step, setting.noise
    x = 1 / p
    eta = -108 + 180 * x + 48 * x**2 + 2 * D
    eta += g * x * (-528 + 432 * x - 2496 * x**2 - 4608 * x**3 - D * (72 + 288 * x))
    eta += (g * x) ** 2 * (
        1080
        - 1872 * x
        + 5400 * x**2
        + 8352 * x**3
        + 34560 * x**4
        + D * (216 + 216 * x + 2592 * x**2)
        + 54 * D**2
    )
    # covariance of m to second order: a₁‖m‖²I + a₂mmᵀ + a₃ diag(m²), each over p²
    a1 = x * (-80 + 64 * x)
    a2 = 184 - 184 * x + 96 * x**2 + 4 * D
    a2 += g * x * (-448 + 704 * x - 1024 * x**2 - 32 * D)
    a2 += (g * x) ** 2 * (
        224
        - 448 * x
        + 1056 * x**2
        + 1728 * x**3
        + 7424 * x**4
        + D * (32 + 32 * x + 512 * x**2)
        + 8 * D**2
    )
    a3 = -144 + 240 * x - 192 * x**2 - 8 * D
    a3 += g * x * (-960 + 1344 * x - 2304 * x**2 - 96 * D)
    a3 += (g * x) ** 2 * (
        480
        - 832 * x
        + 2400 * x**2
        + 3712 * x**3
        + 15360 * x**4
        + D * (96 + 96 * x + 1152 * x**2)
        + 24 * D**2
    )
    f = 3 / (p + 2)
    local = g * x**2 * (eta + (a1 * (p - 2) - a2 + a3 * (1 - 2 * f)) / 2)
    cross = 10 - 14 * x + 24 * x**2 + D
    cross += g * x * (68 - 108 * x + 112 * x**2 - 192 * x**3 + 6 * D * (1 - 2 * x))
    bend = (1 - x) * 4 * x * (1 - g * x * (1 + 12 * x))
    kicks = 16 * (2 + 2 * x + 24 * x**2 + D)
    kicks += g * x * (256 - 768 * x - 1024 * x**2 - 6144 * x**3 - 384 * D * x)
    kicks += (g * x) ** 2 * (
        960
        - 1664 * x
        + 4800 * x**2
        + 7424 * x**3
        + 30720 * x**4
        + D * (192 + 192 * x + 2304 * x**2)
        + 48 * D**2
    )
    variance = g * x**2 * kicks / (2 * alignment_decay_rate(p, g)) if p > 1 else 0.0
    return Coupling(local, bend, 8 * g * x**2 * cross, variance)

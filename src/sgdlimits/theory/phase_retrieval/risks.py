"""Population risk of phase retrieval, and the excess that constant steps leave behind."""

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number, Numeric
from sgdlimits.theory._inputs import below, symmetric, vector
from sgdlimits.theory.phase_retrieval.rates import largest_step


def risk(
    overlaps: Numeric,
    gram: Numeric,
    *,
    noise: Number = 0.0,
    readout: Numeric | None = None,
    signal: Number = 1.0,
) -> float:
    """Population risk ½E(y − f)².

        (3ρ² + Δ)/2 − (1/p) Σⱼ aⱼ(ρQ_jj + 2mⱼ²) + (1/2p²) Σ_jl aⱼa_l(Q_jj Q_ll + 2Q_jl²)

    with Δ = ``noise``, ρ = ``signal`` the squared norm of the teacher and a = ``readout`` (ones by
    default). For one neuron it is Δ/2 + (3ρ² + 3q² − 4m² − 2ρq)/2.

    Source: AKLS23 (6), (27); (63) corrected by a factor ½.

    >>> risk([0.0], [[1.0]]), risk([1.0], [[1.0]])
    (2.0, 0.0)
    """
    m = vector("overlaps", overlaps)
    p = len(m)
    q = symmetric("gram", gram, p)
    a = np.ones(p) if readout is None else _checks.array("readout", readout, (p,))
    delta, rho = _checks.nonnegative("noise", noise), _checks.positive("signal", signal)
    norms = np.diag(q)
    cross = a @ (rho * norms + 2 * m**2) / p
    network = a @ (np.outer(norms, norms) + 2 * q**2) @ a / (2 * p**2)
    return float((3 * rho**2 + delta) / 2 - cross + network)


def excess_risk(step: Number, noise: Number) -> float:
    """Risk above Δ/2 that remains at late times, for one neuron on the sphere.

        γΔ/(1 − 6γ)   for γ < 2/(12 + Δ),   γ = ``step``,   Δ = ``noise``

    For larger steps the overlap decays to 0.

    Source: AKLS23 (8); the range of γ corrected.

    >>> round(excess_risk(0.05, 0.5), 6)
    0.035714
    """
    delta = _checks.nonnegative("noise", noise)
    gamma = below("step", step, largest_step(delta), "beyond which nothing is learned")
    return gamma * delta / (1 - 6 * gamma)

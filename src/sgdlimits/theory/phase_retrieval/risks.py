"""Population risk of phase retrieval, and the excess that constant steps leave behind."""

from typing import Any

import numpy as np

from sgdlimits import _checks
from sgdlimits._types import Number
from sgdlimits.theory._inputs import below, symmetric, vector
from sgdlimits.theory.phase_retrieval.exit_times import largest_step


def risk(
    overlaps: Any, gram: Any, *, noise: Number = 0.0, readout: Any = None, signal: Number = 1.0
) -> float:
    """Population risk E (y - f)^2 / 2.

        (3 rho^2 + noise) / 2 - (1/p) sum_j a_j (rho Q_jj + 2 m_j^2)
        + (1 / 2p^2) sum_jl a_j a_l (Q_jj Q_ll + 2 Q_jl^2)

    with readout a = 1 by default; for one neuron noise/2 + (3 rho^2 + 3 q^2 - 4 m^2 - 2 rho q)/2.

    Source: 002 (6), (27); (63) corrected by a factor 1/2.

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
    """Risk above noise / 2 that remains for late times, for one neuron on the sphere.

        gamma noise / (1 - 6 gamma),   for gamma < 2 / (12 + noise)

    For larger steps the overlap decays to 0.

    Source: 002 (8); the range of gamma corrected.

    >>> round(excess_risk(0.05, 0.5), 6)
    0.035714
    """
    delta = _checks.nonnegative("noise", noise)
    gamma = below("step", step, largest_step(delta), "beyond which nothing is learned")
    return gamma * delta / (1 - 6 * gamma)

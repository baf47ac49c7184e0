"""Phase retrieval with square activations (002): f = (1/p) sum_i s_i^2, loss (y - f)^2 / 2.

Labels y = (teacher field)^2 + sqrt(noise) z. States are the overlaps m (p,) and the Gram matrix
Q (p, p) of unit-order weights. Step size delta = step / dim with the paper's gamma as ``step``.

Time everywhere in this package is t = delta * steps, which is p = width times the paper's time:
rates are the paper's divided by p, exit times the paper's multiplied by p.
"""

from sgdlimits.theory.phase_retrieval.exit_times import (
    exit_time_annealed,
    exit_time_diffusive,
    exit_time_quenched,
    fastest_step,
    growth_rate,
    largest_step,
)
from sgdlimits.theory.phase_retrieval.flow import (
    Velocity,
    drift,
    single_drift,
    unconstrained_drift,
)
from sgdlimits.theory.phase_retrieval.fluctuations import increment_covariance
from sgdlimits.theory.phase_retrieval.risks import excess_risk, risk

__all__ = [
    "Velocity",
    "drift",
    "excess_risk",
    "exit_time_annealed",
    "exit_time_diffusive",
    "exit_time_quenched",
    "fastest_step",
    "growth_rate",
    "increment_covariance",
    "largest_step",
    "risk",
    "single_drift",
    "unconstrained_drift",
]

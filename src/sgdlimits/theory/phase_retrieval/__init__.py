"""Phase retrieval with square activations (AKLS23): f = (1/p) Σᵢ sᵢ², loss ½(y − f)².

Labels y = (teacher field)² + √Δ z, z ~ N(0, 1), Δ = ``noise``. States are the overlaps m (p,) with
the teacher and the Gram matrix Q (p, p) of weights of norm O(1). Step size δ = step/dim, where
``step`` is the paper's γ.

Time everywhere in this package is t = δ·steps, which is p = ``width`` times the paper's time: rates
are the paper's divided by p, exit times the paper's multiplied by p.
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

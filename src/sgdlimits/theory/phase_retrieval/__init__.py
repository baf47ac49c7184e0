"""Phase retrieval with square activations (AKLS23): f = (1/p) Σᵢ sᵢ², loss ½(y − f)².

Labels y = (teacher field)² + √Δ z, z ~ N(0, 1), Δ = ``noise``. States are the overlaps m (p,) with
the teacher and the Gram matrix Q (p, p) of weights of norm O(1). Step size δ = step/dim, where
``step`` is the paper's γ.

Time everywhere in this package is t = δ·steps, which is p = ``width`` times the paper's time: rates
are the paper's divided by p, exit times the paper's multiplied by p.
"""

from sgdlimits.theory.phase_retrieval.exit_expansions import exit_delay, exit_time_offset
from sgdlimits.theory.phase_retrieval.exit_results import ExitLaw, ExitTime
from sgdlimits.theory.phase_retrieval.exit_times import exit_law, exit_time, minimal_samples
from sgdlimits.theory.phase_retrieval.finite_dim import (
    growth_slowing,
    reliable_step,
    trapping_step,
)
from sgdlimits.theory.phase_retrieval.flow import (
    Velocity,
    drift,
    single_drift,
    unconstrained_drift,
)
from sgdlimits.theory.phase_retrieval.fluctuations import (
    increment_covariance,
    one_step_drift,
    single_increment_covariance,
)
from sgdlimits.theory.phase_retrieval.landscape import (
    CriticalPoint,
    Plateau,
    critical_points,
    largest_plateau_step,
    plateau,
    sphere_hessian,
)
from sgdlimits.theory.phase_retrieval.rates import (
    alignment_decay_rate,
    fastest_step,
    growth_rate,
    largest_step,
    overlap_noise,
    overparametrization_gain,
)
from sgdlimits.theory.phase_retrieval.risks import excess_risk, risk

__all__ = [
    "CriticalPoint",
    "ExitLaw",
    "ExitTime",
    "Plateau",
    "Velocity",
    "alignment_decay_rate",
    "critical_points",
    "drift",
    "excess_risk",
    "exit_delay",
    "exit_law",
    "exit_time",
    "exit_time_offset",
    "fastest_step",
    "growth_rate",
    "growth_slowing",
    "increment_covariance",
    "largest_plateau_step",
    "largest_step",
    "minimal_samples",
    "one_step_drift",
    "overlap_noise",
    "overparametrization_gain",
    "plateau",
    "reliable_step",
    "risk",
    "single_drift",
    "single_increment_covariance",
    "sphere_hessian",
    "trapping_step",
    "unconstrained_drift",
]

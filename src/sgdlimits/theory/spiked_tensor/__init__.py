"""Spiked matrices and tensors (BGJ22 sec. 3 and 7): Y = λv^⊗k + W, loss ‖Y − x^⊗k‖².

The signal v is a unit vector, W has independent standard normal entries, λ = ``snr`` and
k = ``order``; a ridge α = ``ridge`` adds (α/2)‖x‖² to the loss. States are the overlap m = ⟨x, v⟩
and the squared radius r² orthogonal to v; formulas abbreviate ρ = ‖x‖² = m² + r². Step size
δ = c/dim with c = ``step``, time t = δ·steps.
"""

from sgdlimits.theory.spiked_tensor.ballistic import (
    diffusion,
    drift,
    jacobian,
    loss_drift,
    population_loss,
)
from sgdlimits.theory.spiked_tensor.equator import (
    equator_sde,
    equator_stationary_variance,
    equator_variance,
    radius_variance,
    transient_radius_variance,
)
from sgdlimits.theory.spiked_tensor.escape import (
    climbing_barrier,
    climbing_time,
    escape_probability,
    escape_quantile,
    escape_time,
)
from sgdlimits.theory.spiked_tensor.rest_points import (
    RestPoint,
    critical_ridge,
    critical_snr,
    fixed_points,
    overlaps,
)

__all__ = [
    "RestPoint",
    "climbing_barrier",
    "climbing_time",
    "critical_ridge",
    "critical_snr",
    "diffusion",
    "drift",
    "equator_sde",
    "equator_stationary_variance",
    "equator_variance",
    "escape_probability",
    "escape_quantile",
    "escape_time",
    "fixed_points",
    "jacobian",
    "loss_drift",
    "overlaps",
    "population_loss",
    "radius_variance",
    "transient_radius_variance",
]

"""Spiked matrices and tensors (000 sec. 3 and 7): Y = snr v^(x)k + W, loss |Y - x^(x)k|^2.

States are the overlap m = <x, v> and the squared radius r2 = |x|^2 - m^2 orthogonal to v;
R^2 = m^2 + r2. Step size delta = step / dim, time t = delta * steps.
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
)
from sgdlimits.theory.spiked_tensor.rest_points import (
    FixedPoint,
    critical_ridge,
    critical_snr,
    fixed_points,
    overlaps,
)

__all__ = [
    "FixedPoint",
    "critical_ridge",
    "critical_snr",
    "diffusion",
    "drift",
    "equator_sde",
    "equator_stationary_variance",
    "equator_variance",
    "fixed_points",
    "jacobian",
    "loss_drift",
    "overlaps",
    "population_loss",
    "radius_variance",
]

"""Two-layer ReLU network on a binary Gaussian mixture (000 sec. 4 and 8).

Data X ~ N((2y - 1) mu, 1/precision), y = 0 or 1 with probability 1/2, |mu| = 1; network
sigmoid(v . relu(W X)), cross-entropy loss with ridge (ridge / 2)(|v|^2 + |W|^2). States are the
readout v, the overlaps m_i = W_i . mu and the orthogonal Gram matrix R. Step size
delta = step / dim, time t = delta * steps.
"""

from sgdlimits.theory.binary_mixture.noiseless import (
    noiseless_diffusion,
    noiseless_drift,
    population_loss,
)
from sgdlimits.theory.binary_mixture.noisy import Integrals, Velocity, drift, integrals
from sgdlimits.theory.binary_mixture.rest_points import (
    Losses,
    Point,
    QuarterRing,
    critical_losses,
    fixed_points,
    ring_diffusion,
    ring_jacobian,
    ring_radius_squared,
)

__all__ = [
    "Integrals",
    "Losses",
    "Point",
    "QuarterRing",
    "Velocity",
    "critical_losses",
    "drift",
    "fixed_points",
    "integrals",
    "noiseless_diffusion",
    "noiseless_drift",
    "population_loss",
    "ring_diffusion",
    "ring_jacobian",
    "ring_radius_squared",
]

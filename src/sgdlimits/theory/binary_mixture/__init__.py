"""Two-layer ReLU network on a binary Gaussian mixture (BGJ22 sec. 4 and 8).

Data X ~ N((2y − 1)μ, I/λ), y = 0 or 1 with probability ½ each, ‖μ‖ = 1, λ = ``precision``; network
σ(v·relu(WX)) with σ the sigmoid, cross-entropy loss with ridge (α/2)(‖v‖² + ‖W‖²), α = ``ridge``.
States are the readout v, the overlaps mᵢ = ⟨Wᵢ, μ⟩ and the Gram matrix R of the parts of W that are
orthogonal to μ. Step size δ = step/dim, time t = δ·steps.
"""

from sgdlimits.theory.binary_mixture.noiseless import (
    noiseless_diffusion,
    noiseless_drift,
    population_loss,
)
from sgdlimits.theory.binary_mixture.noisy import Integrals, Velocity, drift, integrals
from sgdlimits.theory.binary_mixture.noisy_rest_points import (
    NoisyPoint,
    noisy_optimal_point,
    noisy_ring_point,
)
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
    "NoisyPoint",
    "Point",
    "QuarterRing",
    "Velocity",
    "critical_losses",
    "drift",
    "fixed_points",
    "integrals",
    "noiseless_diffusion",
    "noiseless_drift",
    "noisy_optimal_point",
    "noisy_ring_point",
    "population_loss",
    "ring_diffusion",
    "ring_jacobian",
    "ring_radius_squared",
]

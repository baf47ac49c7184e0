"""Noise around the limit: paths of its SDE, fluctuations along solutions, diffusive limits."""

from sgdlimits.dynamics.noise.fluctuations import fluctuations
from sgdlimits.dynamics.noise.linear import LinearSDE, StationaryCovariance
from sgdlimits.dynamics.noise.paths import sample_paths
from sgdlimits.dynamics.noise.rescaled import RescaledSDE, rescaled

__all__ = [
    "LinearSDE",
    "RescaledSDE",
    "StationaryCovariance",
    "fluctuations",
    "rescaled",
    "sample_paths",
]

"""From a task to the ODE or SDE that its summary statistics obey; and the same for any loss."""

from sgdlimits.dynamics.bifurcations import bifurcations
from sgdlimits.dynamics.closability import closability
from sgdlimits.dynamics.critical_step import critical_step
from sgdlimits.dynamics.effective import EffectiveDynamics, effective_dynamics
from sgdlimits.dynamics.generator import generator
from sgdlimits.dynamics.localizability import localizability
from sgdlimits.dynamics.triple import Triple

__all__ = [
    "EffectiveDynamics",
    "Triple",
    "bifurcations",
    "closability",
    "critical_step",
    "effective_dynamics",
    "generator",
    "localizability",
]

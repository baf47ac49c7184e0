"""From a task to the ODE or SDE that its summary statistics obey."""

from sgdlimits.dynamics.effective import EffectiveDynamics, effective_dynamics
from sgdlimits.dynamics.measures import Measurement, measure
from sgdlimits.dynamics.model import Model, model_of
from sgdlimits.dynamics.noise import LinearSDE, RescaledSDE
from sgdlimits.dynamics.rest import FixedPoint, FixedPoints

__all__ = [
    "EffectiveDynamics",
    "FixedPoint",
    "FixedPoints",
    "LinearSDE",
    "Measurement",
    "Model",
    "RescaledSDE",
    "effective_dynamics",
    "measure",
    "model_of",
]

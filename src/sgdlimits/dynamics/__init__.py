"""From a task to the ODE or SDE that its summary statistics obey."""

from sgdlimits.dynamics.effective import EffectiveDynamics, effective_dynamics

__all__ = ["EffectiveDynamics", "effective_dynamics"]

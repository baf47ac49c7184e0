"""The high-dimensional limits of stochastic gradient descent, as software."""

__version__ = "0.1.0"

from sgdlimits import plot, results, tasks, theory
from sgdlimits.dynamics import (
    Triple,
    bifurcations,
    closability,
    critical_step,
    effective_dynamics,
    generator,
    localizability,
)
from sgdlimits.simulate import simulate

__all__ = [
    "Triple",
    "bifurcations",
    "closability",
    "critical_step",
    "effective_dynamics",
    "generator",
    "localizability",
    "plot",
    "results",
    "simulate",
    "tasks",
    "theory",
]

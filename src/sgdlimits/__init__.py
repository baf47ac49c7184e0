"""The high-dimensional limits of stochastic gradient descent, as software."""

__version__ = "0.1.0"

from sgdlimits import plot, results, spectra, tasks, theory
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

from sgdlimits import experiments  # isort: skip  # built on all of the above

__all__ = [
    "Triple",
    "bifurcations",
    "closability",
    "critical_step",
    "effective_dynamics",
    "experiments",
    "generator",
    "localizability",
    "plot",
    "results",
    "simulate",
    "spectra",
    "tasks",
    "theory",
]

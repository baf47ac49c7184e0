"""The high-dimensional limits of stochastic gradient descent, as software."""

from sgdlimits import plot, results, spectra, tasks, theory
from sgdlimits._checks import InputError
from sgdlimits._version import __version__
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
    "InputError",
    "Triple",
    "__version__",
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

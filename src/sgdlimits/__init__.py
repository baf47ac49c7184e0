"""The high-dimensional limits of stochastic gradient descent, as software."""

from sgdlimits import plot, results, spectra, tasks, theory
from sgdlimits._checks import InputError
from sgdlimits._version import __version__
from sgdlimits.dynamics import EffectiveDynamics, effective_dynamics
from sgdlimits.simulate import simulate
from sgdlimits.triples import Triple, closability, critical_step, generator, localizability

from sgdlimits import experiments  # isort: skip  # built on all of the above

__all__ = [
    "EffectiveDynamics",
    "InputError",
    "Triple",
    "__version__",
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

"""The high-dimensional limits of stochastic gradient descent, as software."""

__version__ = "0.1.0"

from sgdlimits import plot, results, tasks, theory
from sgdlimits.dynamics import effective_dynamics
from sgdlimits.simulate import simulate

__all__ = ["effective_dynamics", "plot", "results", "simulate", "tasks", "theory"]

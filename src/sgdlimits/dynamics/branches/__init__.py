"""Rest points followed while a parameter moves."""

from sgdlimits.dynamics.branches.diagram import bifurcations

__all__ = ["bifurcations"]

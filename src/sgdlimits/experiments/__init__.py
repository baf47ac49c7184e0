"""The papers' figures and claims as experiments that anyone can run."""

from sgdlimits.experiments.registry import get, names

__all__ = ["get", "names"]

"""SGD itself: exactly in law at any dimension, or with all its coordinates."""

from sgdlimits.simulate.run import simulate

__all__ = ["simulate"]

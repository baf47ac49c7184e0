"""SGD itself: exactly in law at any dimension, or with all its coordinates."""

from sgdlimits.simulate.run import simulate
from sgdlimits.simulate.training import DataSet, Training, Weights, anchors

__all__ = ["DataSet", "Training", "Weights", "anchors", "simulate"]

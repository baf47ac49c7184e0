"""SGD itself: exactly in law at any dimension, or with all its coordinates."""

from sgdlimits.simulate import multi_index, spiked_tensor  # noqa: F401 - they register themselves
from sgdlimits.simulate.base import Process, process_of
from sgdlimits.simulate.chain import Chain
from sgdlimits.simulate.extend import extend
from sgdlimits.simulate.passage import first_passage
from sgdlimits.simulate.run import simulate
from sgdlimits.simulate.training import DataSet, Training, Weights, anchors

__all__ = [
    "Chain",
    "DataSet",
    "Process",
    "Training",
    "Weights",
    "anchors",
    "extend",
    "first_passage",
    "process_of",
    "simulate",
]

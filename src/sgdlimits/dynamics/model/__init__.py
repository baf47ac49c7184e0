"""The limit of a task as functions of its flat statistics; one file per family of tasks."""

from sgdlimits.dynamics.model.base import Model, Vector, VectorMap, as_state, model_of
from sgdlimits.dynamics.model.limit import COARSE_NODES, Limit
from sgdlimits.dynamics.model.mean import Mean, name_of
from sgdlimits.dynamics.model.multi_index import MultiIndexModel
from sgdlimits.dynamics.model.spiked_tensor import SpikedTensorModel
from sgdlimits.dynamics.model.table import Table

__all__ = [
    "COARSE_NODES",
    "Limit",
    "Mean",
    "Model",
    "MultiIndexModel",
    "SpikedTensorModel",
    "Table",
    "Vector",
    "VectorMap",
    "as_state",
    "model_of",
    "name_of",
]

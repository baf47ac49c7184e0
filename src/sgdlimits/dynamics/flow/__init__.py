"""Solutions of the effective dynamics: smooth ones, and those that slide along jumps."""

from sgdlimits.dynamics.flow.dataset import to_dataset
from sgdlimits.dynamics.flow.init import batch_size, start_vectors
from sgdlimits.dynamics.flow.passage import first_passage
from sgdlimits.dynamics.flow.solve import ends_of, follow, follow_steps, solve

__all__ = [
    "batch_size",
    "ends_of",
    "first_passage",
    "follow",
    "follow_steps",
    "solve",
    "start_vectors",
    "to_dataset",
]

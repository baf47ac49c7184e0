"""SGD on multi-index tasks: the exact chain, or all coordinates."""

from sgdlimits.simulate.base import Process, process_of
from sgdlimits.simulate.multi_index_chain import make_chain
from sgdlimits.simulate.multi_index_direct import make_direct
from sgdlimits.tasks import MultiIndexFamily


@process_of.register(MultiIndexFamily)
def multi_index_process(
    task: MultiIndexFamily, *, method: str, dim: int, step: float, first_run: int
) -> Process:
    """One process for each method."""
    make = make_chain if method == "chain" else make_direct
    return make(task, dim, step, first_run)

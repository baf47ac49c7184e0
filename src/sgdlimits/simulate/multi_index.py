"""SGD on multi-index tasks: the exact chain, all coordinates, or the population loss."""

from sgdlimits import _checks
from sgdlimits._moves import Moves
from sgdlimits.simulate.base import Process, process_of
from sgdlimits.simulate.multi_index_chain import make_chain
from sgdlimits.simulate.multi_index_direct import make_direct
from sgdlimits.simulate.multi_index_moves import make_moved
from sgdlimits.simulate.population import make_population
from sgdlimits.tasks import MultiIndexFamily


@process_of.register(MultiIndexFamily)
def multi_index_process(
    task: MultiIndexFamily, *, method: str, dim: int, moves: Moves, first_run: int
) -> Process:
    """One process for each method."""
    if "readout_step" in moves.words and not task.trained:
        raise _checks.InputError(
            f"readout_step={float(moves.readout_step)} is not allowed: "
            f"{type(task).__name__} has no trained readout"
        )
    if moves.tangential and not task.spherical:
        raise _checks.InputError(
            f"sphere='tangential' is not allowed: {type(task).__name__} here is not spherical"
        )
    if method == "population":
        return make_population(task, dim, moves)
    if method == "direct":
        return make_direct(task, dim, moves, first_run)
    few = dim < len(task.anchors) + task.width  # directions for the weights
    one = {*moves.words} <= {"readout_step"}  # sample, and nothing else that is done to a gradient
    make = make_chain if one and not few else make_moved
    return make(task, dim, moves, first_run)

"""What solutions need to know where the step of SGD is not constant.

Time counts δ, so that dt = δ whatever the step, and only the corrector depends on time: it is
proportional to c(t). Where c(t) is constant in pieces, each piece is a solution of its own, and no
step of a solver goes across a change. Else time is one more variable, dt/dt = 1.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from sgdlimits._moves import Schedule
from sgdlimits.dynamics.flow.methods import Rates, Rows
from sgdlimits.dynamics.model import Table

LEAST, GROWTH = 8, 8  # times at once, padded: the function is compiled for few sizes
Steps = Callable[[np.ndarray], np.ndarray]


def pieces(schedule: Schedule, times: Float[np.ndarray, " t"]) -> Float[np.ndarray, " p"]:
    """The first and the last of the times, and between them those at which the step jumps."""
    changes = schedule.times[1:] if schedule.function is None else np.zeros(0)
    inside = changes[(changes > times[0]) & (changes < times[-1])]
    return np.concatenate([times[:1], inside, times[-1:]])


def steps_of(schedule: Schedule, times: np.ndarray) -> np.ndarray:
    """The step at many times, checked."""
    room = LEAST
    while room < len(times):
        room *= GROWTH
    return schedule.at(times[np.minimum(np.arange(room), len(times) - 1)])[: len(times)]


def moving_rates(table: Table, step: float, steps: Steps) -> Rates:
    """The velocity of (u, t), from the drift at one step and the step at every time."""

    def rates(rows: Rows) -> Rows:
        population, corrector = np.moveaxis(table.parts(rows[:, :-1])[0], 1, 0)
        share = steps(rows[:, -1]) / step
        return np.column_stack([share[:, None] * corrector - population, np.ones(len(rows))])

    return rates

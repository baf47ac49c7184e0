"""What is simulated, read once from the words of a caller."""

from typing import Any, NamedTuple

import jax
import numpy as np

from sgdlimits import _checks
from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._segments import seed_words, segment_of
from sgdlimits._types import State, StateLike, WholeNumber
from sgdlimits.simulate.base import Process, process_of
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.layout import Layout

METHODS = ("chain", "direct", "population")


class Setting(NamedTuple):
    """SGD on a task in one dimension, with its moves and its randomness.

    A simulation that starts from the Dataset of another one of the same seed is the next
    ``segment`` of it: its noise is independent of that of all segments before.
    """

    task: Task
    dim: int
    moves: Moves
    method: str
    seed: int
    segment: int
    layout: Layout  # the statistics of the task, and what else is observed of these moves

    def process(self, first_run: int) -> Process:
        """Of the runs from this number on that are advanced together."""
        return process_of(
            self.task, method=self.method, dim=self.dim, moves=self.moves, first_run=first_run
        )

    @property
    def words(self) -> jax.Array:
        """Those of the key of all noise."""
        return staged(seed_words(self.seed, self.segment))

    @property
    def noted(self) -> dict[str, Any]:
        """What results note."""
        functions = [name for name, value in self.task.arguments().items() if callable(value)]
        if self.moves.step.function is not None:
            functions.append("step")
        return {
            "task": type(self.task).__name__,
            "parameters": self.task.parameters(),
            "dim": self.dim,
            "step": self.moves.step_words,
            **self.moves.words,
            "seed": self.seed,
            "method": self.method,
            **({"segment": self.segment} if self.segment else {}),
            **({"functions": functions} if functions else {}),
        }


def setting_of(
    task: Task,
    dim: WholeNumber,
    moves: Moves,
    method: str,
    seed: WholeNumber,
    init: StateLike | None,
) -> Setting:
    """Check what callers of ``simulate`` and ``first_passage`` say."""
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    dim = task.check_dim(dim)
    seed = _checks.integer("seed", seed, least=0)
    method = _checks.choice("method", method, METHODS)
    process = process_of(task, method=method, dim=dim, moves=moves, first_run=0)
    layout = Layout((*task.layout.statistics, *process.further))
    return Setting(task, dim, moves, method, seed, segment_of(init, seed), layout)


def starts_of(setting: Setting, runs: int, init: StateLike | None) -> State:
    """A state for every run, along a leading axis; what else is observed is zero."""
    task = setting.task
    if init is None:
        states = task.random_states(setting.dim, setting.seed, range(runs))
    else:
        states = task.check_state(init, runs=runs, argument="init")
    shapes = setting.layout.shapes
    return {
        name: np.broadcast_to(states.get(name, 0.0), (runs, *shape)).copy()
        for name, shape in shapes.items()
    }

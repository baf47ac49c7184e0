"""What every simulation of SGD is: a state that moves step by step and shows its statistics."""

import abc
import functools
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, PyTree

from sgdlimits import _checks
from sgdlimits._types import Index, State
from sgdlimits.tasks.base import Task

Carry = PyTree[Float[Array, "..."]]


@functools.singledispatch
def process_of(task: Task, *, method: str, dim: int, step: float, first_run: int) -> "Process":
    """SGD on a task, as a process that ``simulate`` advances.

    A family of tasks registers how its processes are made:
    ``@process_of.register(SpikedTensor)``.

    Args:
        task: what is learned.
        method: "chain", exactly in law through the statistics alone, or "direct", all coordinates.
        dim: the data dimension d.
        step: c in δ = c/dim.
        first_run: number of the first of the runs that are advanced together.
    """
    del method, dim, step, first_run
    raise _checks.InputError(
        f"task={task!r} is not allowed: no simulation is known for {type(task).__name__}"
    )


class Process(eqx.Module):
    """Independent runs of SGD on one task, advanced together."""

    lanes: ClassVar[int]  # how many runs are advanced together

    # --- must implement -------------------------------------------------------------------------

    @abc.abstractmethod
    def start(self, states: State) -> Carry:
        """The internal state of runs whose statistics are ``states`` (runs along axis 0)."""

    @abc.abstractmethod
    def advance(self, carry: Carry, key: Array, first: Index, last: Index) -> Carry:
        """Take the steps first, ..., last − 1. Step i uses the same noise however it is reached."""

    @abc.abstractmethod
    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The summary statistics, runs along axis 0."""


@eqx.filter_jit
def observe_at(
    process: Process, carry: Carry, key: Array, marks: Int[Array, " marks"]
) -> tuple[Carry, dict[str, Float[Array, "records runs ..."]]]:
    """Advance from step marks[0] to marks[-1], observing at marks[1:] and nowhere else."""

    def interval(
        carry: Carry, ends: tuple[Index, Index]
    ) -> tuple[Carry, dict[str, Float[Array, "runs ..."]]]:
        carry = process.advance(carry, key, *ends)
        return carry, process.observe(carry)

    return jax.lax.scan(interval, carry, (marks[:-1], marks[1:]))

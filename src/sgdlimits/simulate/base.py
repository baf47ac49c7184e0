"""What every simulation of SGD is: a state that moves step by step and shows its statistics."""

import abc
import functools

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, UInt32

from sgdlimits import _checks
from sgdlimits._types import Index, State
from sgdlimits.simulate.kernel import program_of_kernels
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

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def lanes(self) -> int:
        """How many runs are advanced together."""

    @abc.abstractmethod
    def start(self, states: State) -> Carry:
        """The internal state of runs whose statistics are ``states`` (runs along axis 0)."""

    @abc.abstractmethod
    def advance(self, carry: Carry, key: Array, first: Index, last: Index) -> Carry:
        """Take the steps first, ..., last − 1. Step i uses the same noise however it is reached."""

    @abc.abstractmethod
    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The summary statistics, runs along axis 0."""


def seed_words(seed: int) -> UInt32[np.ndarray, " 2"]:
    """The key of ``jax.random`` with this seed, as words: made by NumPy, nothing to compile.

    >>> seed_words(7)
    array([0, 7], dtype=uint32)
    """
    if seed >= 2**64:
        return np.random.SeedSequence(seed).generate_state(2)
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


@program_of_kernels
def observe_at(
    process: Process,
    carry: Carry,
    words: UInt32[Array, " 2"],
    marks: Int[Array, " marks"],
) -> tuple[Carry, dict[str, Float[Array, "records runs ..."]]]:
    """Advance from step marks[0] to marks[-1], observing at marks[1:] and nowhere else."""
    key = jax.random.wrap_key_data(words, impl="threefry2x32")

    def interval(
        carry: Carry, ends: tuple[Index, Index]
    ) -> tuple[Carry, dict[str, Float[Array, "runs ..."]]]:
        carry = process.advance(carry, key, *ends)
        return carry, process.observe(carry)

    return jax.lax.scan(interval, carry, (marks[:-1], marks[1:]))

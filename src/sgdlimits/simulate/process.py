"""What every simulation of SGD is: a state that moves step by step and shows its statistics."""

import abc

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, PyTree

from sgdlimits._types import Index, State

Carry = PyTree[Float[Array, "..."]]


class Process(eqx.Module):
    """Independent runs of SGD on one task, advanced together."""

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
def record(
    process: Process, carry: Carry, key: Array, marks: Int[Array, " marks"]
) -> tuple[Carry, dict[str, Float[Array, "records runs ..."]]]:
    """Advance from step marks[0] to marks[-1], observing at marks[1:] and nowhere else."""

    def interval(
        carry: Carry, ends: tuple[Index, Index]
    ) -> tuple[Carry, dict[str, Float[Array, "runs ..."]]]:
        carry = process.advance(carry, key, *ends)
        return carry, process.observe(carry)

    return jax.lax.scan(interval, carry, (marks[:-1], marks[1:]))

"""What every simulation of SGD is: a state that moves step by step and shows its statistics."""

import abc
import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from sgdlimits import _checks
from sgdlimits._events import Event
from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index, State
from sgdlimits.simulate.clock import Clock
from sgdlimits.simulate.kernel import as_one_kernel, only_needed, program_of_kernels
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.layout import Statistic

Carry = PyTree[Float[Array, "..."]]
Words = UInt32[Array, " 2"]  # those of a key: see seed_words
Step = Callable[[Index, Carry, Float[Array, ""]], Carry]


@functools.singledispatch
def process_of(task: Task, *, method: str, dim: int, moves: Moves, first_run: int) -> "Process":
    """SGD on a task, as a process that ``simulate`` advances.

    A family of tasks registers how its processes are made:
    ``@process_of.register(SpikedTensor)``.

    Args:
        task: what is learned.
        method: "chain", exactly in law through the statistics alone, or "direct", all coordinates.
        dim: the data dimension d.
        moves: how SGD moves; what this task cannot do raises InputError (see ``take_only``).
        first_run: number of the first of the runs that are advanced together.
    """
    del method, dim, moves, first_run
    raise _checks.InputError(
        f"task={task!r} is not allowed: no simulation is known for {type(task).__name__}"
    )


def take_only(task: Task, method: str, moves: Moves, *names: str) -> None:
    """Raise InputError if moves differ from the defaults in anything but the step and ``names``."""
    for name, value in moves.words.items():
        if name not in names:
            allowed = ", ".join(("step", *names))
            raise _checks.InputError(
                f"{name}={value!r} is not allowed: for {type(task).__name__} with "
                f"method={method!r} only these may differ from their defaults: {allowed}"
            )


class Moving(NamedTuple):
    """Runs of SGD on their way: the time it is, and what a process carries from step to step."""

    time: Float[Array, ""]
    carry: Carry


class Watch(NamedTuple):
    """An event that is waited for, and when it happened to each run."""

    event: Event
    sides: Float[Array, " runs"]  # sign of the height for which it has happened
    steps: Int[Array, " runs"]  # taken until then, −1 for not yet
    times: Float[Array, " runs"]  # then, where steps are not constant


class Process(eqx.Module):
    """Independent runs of SGD on one task, advanced together."""

    clock: eqx.AbstractVar[Clock]

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def lanes(self) -> int:
        """How many runs are advanced together."""

    @abc.abstractmethod
    def start(self, states: State) -> Carry:
        """The internal state of runs whose statistics are ``states`` (runs along axis 0)."""

    @abc.abstractmethod
    def stepper(self, words: Words) -> Step:
        """One step of SGD: a function of its number, the carry and δ.

        A step uses the same noise however it is reached: that of its number.
        """

    @abc.abstractmethod
    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The summary statistics, runs along axis 0."""

    # --- only needed where more is observed than the statistics of the task ---------------------

    @property
    def further(self) -> tuple[Statistic, ...]:
        """What else ``observe`` returns, zero at the start."""
        return ()

    # --- given ----------------------------------------------------------------------------------

    @property
    def runs_last(self) -> bool:
        """Whether runs lie along the last axis of what is carried, not along the first."""
        return False

    def begin(self, states: State) -> Moving:
        """At time zero, with the statistics ``states`` (runs along axis 0)."""
        return Moving(staged(0.0), self.start(states))

    def advance(self, moving: Moving, words: Words, first: Index, last: Index) -> Moving:
        """Take the steps first, ..., last − 1."""
        step = self.stepper(words)

        def onward(number: Index, moving: Moving) -> Moving:
            delta = self.clock(moving.time)
            return Moving(moving.time + delta, step(number, moving.carry, delta))

        return jax.lax.fori_loop(first, last, onward, moving)

    def advance_until(
        self, moving: Moving, watch: Watch, words: Words, first: Index, last: Index
    ) -> tuple[Moving, Watch]:
        """The same, but a run to which its event has happened stands still from then on."""
        return as_one_kernel(_advance_until)(self, moving, watch, words, first, last)


def _advance_until(
    process: Process, moving: Moving, watch: Watch, words: Words, first: Index, last: Index
) -> tuple[Moving, Watch]:
    step = process.stepper(words)

    def still(new: Array, old: Array, stopped: Bool[Array, " runs"]) -> Array:
        others = (1,) * (new.ndim - 1)
        return jnp.where(
            stopped.reshape((*others, -1) if process.runs_last else (-1, *others)), old, new
        )

    def heights_of(carry: Carry) -> Float[Array, " runs"]:
        return jax.vmap(watch.event.height)(process.observe(carry))

    def goes_on(state: tuple[Array, Moving, Watch]) -> Bool[Array, ""]:
        number, _, watch = state
        return (number < last) & jnp.any(watch.steps < 0)

    def onward(state: tuple[Array, Moving, Watch]) -> tuple[Array, Moving, Watch]:
        number, (time, carry), watch = state
        delta, stopped = process.clock(time), watch.steps >= 0
        moved = step(number, carry, delta)
        carry = jax.tree.map(lambda new, old: still(new, old, stopped), moved, carry)
        heights = watch.sides * only_needed(heights_of)(carry)
        now = ~stopped & ~(heights <= 0)  # not a number: the run has diverged
        steps = jnp.where(now, number + 1, watch.steps)
        watch = watch._replace(steps=steps)
        if not process.clock.schedule.constant:  # else the number of steps tells the time
            watch = watch._replace(times=jnp.where(now, time + delta, watch.times))
        return number + 1, Moving(time + delta, carry), watch

    _, moving, watch = jax.lax.while_loop(goes_on, onward, (jnp.asarray(first), moving, watch))
    return moving, watch


def run_keys(words: Words, first_run: Index, runs: int, number: Index) -> Array:
    """For each run the key of ``jax.random`` for the step with this number."""
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    own = jax.vmap(lambda j: jax.random.fold_in(key, j))(first_run + jnp.arange(runs))
    return jax.vmap(lambda k: jax.random.fold_in(k, number))(own)


@program_of_kernels
def observe_at(
    process: Process, moving: Moving, words: Words, marks: Int[Array, " marks"]
) -> tuple[Moving, dict[str, Float[Array, "records runs ..."]]]:
    """Advance from step marks[0] to marks[-1], observing at marks[1:] and nowhere else."""

    def interval(
        moving: Moving, ends: tuple[Index, Index]
    ) -> tuple[Moving, dict[str, Float[Array, "runs ..."]]]:
        moving = process.advance(moving, words, *ends)
        return moving, process.observe(moving.carry)

    return jax.lax.scan(interval, moving, (marks[:-1], marks[1:]))


@program_of_kernels
def observe_until(
    process: Process, moving: Moving, watch: Watch, words: Words, marks: Int[Array, " marks"]
) -> tuple[Moving, Watch, dict[str, Float[Array, "records runs ..."]]]:
    """The same, with runs that stand still after their event."""

    def interval(
        state: tuple[Moving, Watch], ends: tuple[Index, Index]
    ) -> tuple[tuple[Moving, Watch], dict[str, Float[Array, "runs ..."]]]:
        moving, watch = process.advance_until(*state, words, *ends)
        return (moving, watch), process.observe(moving.carry)

    (moving, watch), seen = jax.lax.scan(interval, (moving, watch), (marks[:-1], marks[1:]))
    return moving, watch, seen

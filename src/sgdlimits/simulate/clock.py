"""Time: how far each step of SGD goes, and which steps lie at which times."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgdlimits import _checks
from sgdlimits._moves import Moves, Schedule
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Real
from sgdlimits._warn import warn

MOST = 2**53  # steps; beyond it a float64 no longer counts them
LONG = 1e10  # steps: more than an hour, at some 2e-6 seconds for a chunk of runs
BRIEF = 2**22  # steps walked in one compiled call, which cannot be interrupted
TRIED = 1025  # times at which a schedule is tried before anything starts


class Clock(eqx.Module):
    """A step at time t has δ = c(t)/dim and takes time δ: t ← t + δ."""

    schedule: Schedule
    dim: Float[Array, ""]

    def __call__(self, time: Real) -> Float[Array, ""]:
        """δ of the step taken at a time."""
        return self.schedule(time) / self.dim


def clock(moves: Moves, dim: int) -> Clock:
    """The clock of these moves in dimension ``dim``."""
    return Clock(as_arrays(moves.step), staged(float(dim)))


class Marks(NamedTuple):
    """Numbers of steps taken, and the time it is then."""

    steps: Int[np.ndarray, " marks"]
    times: Float[np.ndarray, " marks"]


def steps_at(
    moves: Moves,
    dim: int,
    times: np.ndarray,
    argument: str,
    start: tuple[int, float] = (0, 0.0),
) -> Marks:
    """The steps after which it is nearest to each of the times, which increase.

    Several times may lie nearest to one step, which is then named once. ``start`` tells how many
    steps have been taken, and the time it is then.

    Raises:
        InputError: if a step is not a positive finite number, or if there are too many of them or
            none; ``argument`` is what the caller calls the last of the times.
    """
    last = float(times[-1])
    constant = moves.step.constant
    tried = moves.step.values if constant else moves.step.at(np.linspace(0.0, last, TRIED))
    _check_friction(moves, dim, float(np.max(tried)))
    steps_in_all = last * dim * float(np.mean(1 / tried))
    step = moves.step_words
    if steps_in_all >= MOST:
        raise _checks.InputError(
            f"{argument}={last} is not allowed: with dim={dim} and step={step} it takes "
            f"{steps_in_all:.3g} steps"
        )
    if steps_in_all > LONG:
        warn(
            f"{argument}={last:g} takes {steps_in_all:.1e} steps with dim={dim} and step={step}, "
            "hours at best; the effective dynamics do not depend on dim and take seconds"
        )
    if constant:
        steps = np.unique(np.round(times * dim / step).astype(np.int64))
        marks = Marks(steps, times_of(moves, dim, steps))
    else:
        marks = _walked(moves.step, dim, times, start)
    if marks.steps[-1] <= start[0]:
        first = float(moves.step.at(np.array([start[1]]))[0])
        raise _checks.InputError(
            f"{argument}={last} is not allowed: with dim={dim} and step={step} it must be "
            f"at least {start[1] + first / dim} (one step of SGD)"
        )
    return marks


def _check_friction(moves: Moves, dim: int, most: float) -> None:
    """Slow momentum must not turn the velocity around: 1 − κδ > 0."""
    if moves.friction is not None and float(moves.friction) * most >= dim:
        raise _checks.InputError(
            f"momentum=('slow', {float(moves.friction)}) is not allowed: with dim={dim} and steps "
            f"up to {most:g} it must be below dim/step = {dim / most:g}"
        )


def times_of(moves: Moves, dim: int, steps: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The times after so many constant steps: of evenly spaced ones those of a solution."""
    times = steps * moves.step_words / dim
    if len(steps) > 1 and steps[0] == 0 and not np.any(np.diff(steps, 2)):
        times = np.linspace(0, times[-1], len(steps))
    return times


def _walked(schedule: Schedule, dim: int, times: np.ndarray, start: tuple[int, float]) -> Marks:
    """Take all the steps, without anything that moves."""
    timed = Clock(as_arrays(schedule), staged(float(dim)))
    taken, at = start
    steps: list[int] = []
    reached: list[float] = []
    for time in times:
        there = False
        while not there:
            now, count, done = _walk(timed, staged(at), staged(float(time)))
            at, taken, there = float(now), taken + int(count), bool(done)
            if not there and count < BRIEF:
                schedule.at(np.array([at]))  # names the step that is not allowed
        if not steps or taken > steps[-1]:
            steps.append(taken)
            reached.append(at)
    return Marks(np.array(steps, np.int64), np.array(reached))


@eqx.filter_jit
def _walk(
    clock: Clock, start: Float[Array, ""], end: Float[Array, ""]
) -> tuple[Float[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """Time and number of steps where the end is nearest, or where a step is not allowed."""

    def goes_on(walk: tuple[Array, Array]) -> Bool[Array, ""]:
        time, count = walk
        delta = clock(time)
        allowed = (delta > 0) & (delta < jnp.inf)
        return allowed & (count < BRIEF) & (time + delta / 2 < end)

    def onward(walk: tuple[Array, Array]) -> tuple[Array, Array]:
        time, count = walk
        return time + clock(time), count + 1

    time, count = jax.lax.while_loop(goes_on, onward, (start, jnp.asarray(0)))
    delta = clock(time)
    return time, count, (delta > 0) & (delta < jnp.inf) & (time + delta / 2 >= end)

"""Paths where the step of SGD is not constant: stretches of time, in each of which it is smooth."""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Schedule
from sgdlimits.dynamics.flow.schedule import pieces, steps_of
from sgdlimits.dynamics.model import Limit, Model, Vector
from sgdlimits.dynamics.model.moved import noise_step
from sgdlimits.dynamics.noise.integrator import SDE

LOOKS = 256  # times at which a function is looked at


class Stretch(NamedTuple):
    """Some intervals of equal length in which the step does not jump.

    Attributes:
        model: drift and diffusion there.
        spacing: length of an interval.
        intervals: how many.
        recorded: whether the last of them ends at a time that is recorded, as all others do.
    """

    model: SDE
    spacing: float
    intervals: int
    recorded: bool = True


class Timed(eqx.Module):
    """A model at the step of every time, which is one more variable: dt = dt, without noise."""

    model: Model
    schedule: Schedule
    share: Float[Array, ""]  # the step of plain SGD with as much noise, over c

    @property
    def exact(self) -> bool:
        """Whether expectations are in closed form."""
        return self.model.exact

    def drift(self, vector: Vector) -> Vector:
        """(h, 1)."""
        return jnp.append(self._now(vector).drift(vector[:-1]), 1.0)

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ, bordered by zeros."""
        return jnp.pad(self._now(vector).diffusion(vector[:-1]), (0, 1))

    def retract(self, vector: Vector) -> Vector:
        """The nearest state, at the same time."""
        return jnp.append(self.model.retract(vector[:-1]), vector[-1])

    def _now(self, vector: Vector) -> Model:
        return self.model.at_step(self.share * self.schedule(vector[-1]))


def stretches(
    limit: Limit, model: Model, times: Float[np.ndarray, " t"]
) -> tuple[list[Stretch], bool]:
    """Those between equally spaced times, and whether time is one more variable in them."""
    schedule, count = limit.moves.step, len(times) - 1
    spacing = float(times[-1] / count)
    if schedule.function is not None:
        timed = Timed(model, schedule, jnp.asarray(noise_step(limit.moves, 1.0)))
        return [Stretch(timed, spacing, count)], True
    return list(_between_changes(limit, model, times)), False


def _between_changes(limit: Limit, model: Model, times: np.ndarray) -> Iterator[Stretch]:
    spacing = float(times[-1] / (len(times) - 1))
    cuts = pieces(limit.moves.step, times)
    begun = float(times[0])
    for number in range(len(cuts) - 1):
        now, end = limit.with_step_of(model, float(cuts[number])), float(cuts[number + 1])
        inside = times[(times > begun) & (times <= end)]
        if len(inside) and begun not in times:  # up to the next record
            yield Stretch(now, float(inside[0] - begun), 1)
            begun, inside = float(inside[0]), inside[1:]
        if len(inside):
            yield Stretch(now, spacing, len(inside))
            begun = float(inside[-1])
        if begun < end:
            yield Stretch(now, end - begun, 1, recorded=False)
            begun = end


def busiest(limit: Limit, time: float) -> float:
    """When, up to a time, the step is largest."""
    schedule = limit.moves.step
    if schedule.constant:
        return 0.0
    looks = pieces(schedule, np.array([0.0, time]))[:-1]
    if schedule.function is not None:
        looks = np.linspace(0, time, LOOKS + 1)
    return float(looks[np.argmax(steps_of(schedule, looks))])

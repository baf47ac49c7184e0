"""A model whose drift depends on one moving parameter of its task, or on the step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._moves import Moves, schedule
from sgdlimits._precision import as_arrays
from sgdlimits._types import Number, Real, Reals, Word
from sgdlimits.dynamics.model import Limit, Model
from sgdlimits.dynamics.model.limit import DEFAULT_NODES
from sgdlimits.dynamics.model.moved import moved_model, noise_step, step_at, task_seen
from sgdlimits.tasks.base import Task

WIDE = 10.0  # a range whose ends have a larger ratio than this is measured by its logarithm


class MovingModel(eqx.Module):
    """The models h(u; p) for p between ``low`` and ``high``, differentiable in u and in p.

    Every real number in a task is an affine function of each parameter (snr is itself; the spike of
    OnlinePCA is snr·vvᵀ; the weights of MixtureLikelihood are p and 1 − p), so the models at both
    ends give all the others, without compiling again. ``position`` runs from 0 at ``low`` to 1 at
    ``high``, evenly in p or, where the range is wide, in log p.
    """

    first: Model
    slope: Any  # derivative of (task, step) with respect to p, leaf by leaf
    low: Float[Array, ""]
    high: Float[Array, ""]
    wide: bool = eqx.field(static=True)

    def at(self, position: Real) -> Model:
        """The model at a position in the range."""
        moved = self.value(position) - self.low
        numbers, rest = eqx.partition(_moving(self.first), eqx.is_inexact_array)
        numbers = jax.tree.map(lambda number, slope: number + moved * slope, numbers, self.slope)
        return eqx.tree_at(_moving, self.first, eqx.combine(numbers, rest))

    def value(self, position: Reals) -> Float[Array, "..."]:
        """The parameter at a position in the range, or at many."""
        if self.wide:
            return self.low * (self.high / self.low) ** position
        return self.low + (self.high - self.low) * position

    def position(self, value: float) -> float:
        """Where in the range the parameter has this value."""
        low, high = float(self.low), float(self.high)
        if self.wide:
            return float(np.log(value / low) / np.log(high / low))
        return (value - low) / (high - low)


def moving_model(limit: Limit, parameter: Word, low: Number, high: Number) -> MovingModel:
    """The models between two values of a parameter; every value is validated as the task does."""
    task, moves = limit.learned, limit.moves
    names = [name for name, value in task.parameters().items() if isinstance(value, float)]
    if parameter not in names and parameter != "step":
        raise _checks.InputError(
            f"parameter={parameter!r} is not allowed: the real parameters of "
            f"{type(task).__name__} are {', '.join([*names, 'step'])}"
        )
    ends = [float(_checks.array(name, x, ())) for name, x in (("low", low), ("high", high))]
    if not ends[0] < ends[1]:
        raise _checks.InputError(f"low={low!r} is not allowed: low must be less than high={high!r}")
    first, middle, last = (
        changed(task, moves, parameter, value) for value in (ends[0], sum(ends) / 2, ends[1])
    )
    width = ends[1] - ends[0]
    # what does not move has no slope, be it infinite
    slope = jax.tree.map(
        lambda a, b: jnp.asarray(_slope(np.asarray(a), np.asarray(b), width)),
        _numbers(*first),
        _numbers(*last),
    )
    halfway = jax.tree.map(
        lambda a, b: np.asarray(a) + np.asarray(b) * width / 2, _numbers(*first), slope
    )
    if not all(
        np.allclose(a, b, rtol=1e-9)
        for a, b in zip(jax.tree.leaves(halfway), jax.tree.leaves(_numbers(*middle)), strict=True)
    ):
        raise _checks.InputError(
            f"parameter={parameter!r} is not allowed: "
            f"the numbers in {type(task).__name__} are not affine functions of it"
        )
    return MovingModel(
        first=moved_model(*first, limit.nodes or DEFAULT_NODES),
        slope=slope,
        low=jnp.asarray(ends[0]),
        high=jnp.asarray(ends[1]),
        wide=ends[0] > 0 and ends[1] > WIDE * ends[0],
    )


def changed(task: Task, moves: Moves, parameter: str, value: float) -> tuple[Task, Moves]:
    """Task and moves with a parameter of the one, or the step of the other, changed."""
    if parameter == "step":
        return task, eqx.tree_at(lambda moves: moves.step, moves, schedule(value))
    return task.replace(**{parameter: value}), moves


def _numbers(task: Task, moves: Moves) -> Any:
    step = noise_step(moves, step_at(moves, 0.0))
    return eqx.filter(as_arrays((task_seen(task, moves), step)), eqx.is_inexact_array)


def _slope(first: np.ndarray, last: np.ndarray, width: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of numbers that are infinite throughout
        return np.where(first == last, 0.0, (last - first) / width)


def _moving(model: Model) -> tuple[Any, Any]:
    return model.task, model.step

r"""How SGD moves: its step size, batches, momentum and what else is done to a gradient.

One reading of these words serves the chain, direct SGD and the limit. A step of SGD in dimension d
at time t, with δ = c(t)/d and b fresh samples, is

1. G = (1/b) Σ ∇ℓ over the samples, in W and in v, without the ridge;
   normalised: G ← √d G/‖G‖, the norm being that of both parts together, and G = 0 where it is zero;
2. G ← G + α(W, v), the ridge; tangential: from each row of its part in W what is along that row of
   W is taken off;
3. no momentum: Δ = δG; momentum β: V ← βV + δG, Δ = V; slow momentum, β = 1 − κδ:
   U ← (1 − κδ)U + δG, Δ = δU;
4. W ← W − Δ in W, v ← v − ε Δ in v for the readout's own step ε;
   on the sphere each row of W is divided by its norm;
5. t ← t + δ.

Velocities V and U are zero at the start.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import staged
from sgdlimits._types import Flag, Number, Real, WholeNumber, Word

StepLike = float | Callable[[Real], Real] | Sequence[tuple[float, float]]
MomentumLike = float | tuple[str, float]

_ROUNDING = 1e-10  # times are sums of many small ones
SPHERES = ("rescaled", "tangential")


class Schedule(eqx.Module):
    """The step size c as a function of time.

    >>> warm = schedule([(0.0, 0.5), (2.0, 1.0)])
    >>> [float(warm(t)) for t in (0.0, 1.9, 2.0, 5.0)]
    [0.5, 0.5, 1.0, 1.0]
    """

    times: Any  # from when on each of the values holds, (s,); one of them where c is constant
    values: Any  # (s,)
    function: Callable[[Real], Real] | None = eqx.field(static=True, default=None)

    @property
    def constant(self) -> bool:
        """Whether c is one number."""
        return self.function is None and len(self.values) == 1

    def __call__(self, time: Real) -> Float[Array, ""]:
        """The step at a time, traced or not."""
        if self.function is not None:
            return jnp.asarray(self.function(time), float)
        values, times = jnp.asarray(self.values), jnp.asarray(self.times)
        return values[jnp.sum(times[1:] <= time * (1 + _ROUNDING))]

    def at(self, times: np.ndarray) -> np.ndarray:
        """The step at many times; raises InputError unless it is a positive finite number."""
        with jax.enable_x64(True):
            try:
                values = np.asarray(_steps(self, staged(np.asarray(times, float))))
            except (TypeError, ValueError) as error:
                raise self._not_a_schedule(str(error).split("\n", 1)[0]) from error
        if values.shape != times.shape:
            raise self._not_a_schedule(f"it returned an array of shape {values.shape[1:]}")
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if len(wrong):
            raise _checks.InputError(
                f"step={values[wrong[0]]:g} at time {times[wrong[0]]:g} is not allowed: the step "
                "must be a positive finite number at every time"
            )
        return values

    def _not_a_schedule(self, reason: str) -> _checks.InputError:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return _checks.InputError(
            f"step={name} is not allowed: a function must give a number for a time, traced by JAX "
            f"(jnp.where in place of if); {reason}"
        )


@compiled  # solvers ask at every step
def _steps(schedule: Schedule, times: Float[Array, " n"]) -> Float[Array, "..."]:
    return jax.vmap(schedule)(times)


class Moves(eqx.Module):
    """All of it, checked: see the top of this file. Numbers are leaves, kinds are structure."""

    step: Schedule
    batch: int = eqx.field(static=True)
    momentum: Any  # β, zero for none
    friction: Any  # κ of slow momentum; None where momentum is not slow
    readout_step: Any  # ε
    normalised: bool = eqx.field(static=True)
    tangential: bool = eqx.field(static=True)
    moving: bool = eqx.field(static=True)  # whether there is a velocity with fixed β

    @property
    def plain(self) -> bool:
        """Whether it is SGD with one sample, constant steps, and nothing else."""
        return (
            self.step.constant
            and self.batch == 1
            and not self.moving
            and self.friction is None
            and not self.normalised
            and not self.tangential
            and float(self.readout_step) == 1.0
        )

    @property
    def words(self) -> dict[str, Any]:
        """What results note: each that is not the default, as JSON can hold it."""
        noted: dict[str, Any] = {}
        if self.batch != 1:
            noted["batch"] = self.batch
        if self.friction is not None:
            noted["momentum"] = ["slow", float(self.friction)]
        elif self.moving:
            noted["momentum"] = float(self.momentum)
        if float(self.readout_step) != 1.0:
            noted["readout_step"] = float(self.readout_step)
        if self.normalised:
            noted["normalised"] = True
        if self.tangential:
            noted["sphere"] = "tangential"
        return noted

    @property
    def step_words(self) -> Any:
        """The step as JSON can hold it: a number, pairs of time and step, or a function's name."""
        if self.step.function is not None:
            return getattr(self.step.function, "__name__", type(self.step.function).__name__)
        if self.step.constant:
            return float(self.step.values[0])
        pairs = zip(self.step.times, self.step.values, strict=True)
        return [[float(time), float(value)] for time, value in pairs]


def moves(
    *,
    step: StepLike = 1.0,
    batch: WholeNumber = 1,
    momentum: MomentumLike = 0.0,
    readout_step: Number = 1.0,
    normalised: Flag = False,
    sphere: Word = "rescaled",
) -> Moves:
    """Read the words of a caller.

    Args:
        step: c in δ = c/dim; a function of time, or pairs (time, step) from each of which on that
            step is taken, the first at time 0.
        batch: how many fresh samples a gradient is averaged over.
        momentum: β in [0, 1), or ("slow", κ) for β = 1 − κδ.
        readout_step: ε ≥ 0; the readout moves with εδ.
        normalised: whether gradients are divided by their norm.
        sphere: "rescaled", rows are divided by their norms after a Euclidean step; "tangential",
            gradients are made tangential before.

    >>> moves(step=0.5, batch=4, momentum=("slow", 2.0)).words
    {'batch': 4, 'momentum': ['slow', 2.0]}
    """
    beta, friction = _momentum(momentum)
    return Moves(
        step=schedule(step),
        batch=_checks.integer("batch", batch, least=1),
        momentum=np.asarray(beta),
        friction=None if friction is None else np.asarray(friction),
        readout_step=np.asarray(_checks.nonnegative("readout_step", readout_step)),
        normalised=_checks.flag("normalised", normalised),
        tangential=_checks.choice("sphere", sphere, SPHERES) == "tangential",
        moving=beta > 0,
    )


def schedule(step: StepLike) -> Schedule:
    """A constant, a function of time, or pairs (time, step)."""
    zero = np.zeros(1)
    if callable(step):
        return Schedule(zero, zero, step)
    if isinstance(step, Sequence) and not isinstance(step, str):
        pairs = _checks.array("step", step, None)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) == 0:
            raise _checks.InputError(
                f"step={_checks.shown(pairs)} is not allowed: a schedule must be pairs "
                "(time, step), at least one"
            )
        times, values = pairs.T
        if times[0] != 0 or np.any(np.diff(times) <= 0):
            raise _checks.InputError(
                f"step={_checks.shown(pairs)} is not allowed: the times of a schedule must start "
                "at 0 and increase"
            )
        made = Schedule(times.copy(), values.copy())
        made.at(times)
        return made
    return Schedule(zero, np.array([_checks.positive("step", step)]))


def _momentum(momentum: MomentumLike) -> tuple[float, float | None]:
    """β, and κ where momentum is slow."""
    if isinstance(momentum, tuple | list):
        if len(momentum) != 2 or momentum[0] != "slow":
            raise _checks.InputError(
                f"momentum={momentum!r} is not allowed: momentum must be a number in [0, 1) or "
                '("slow", κ) with κ > 0'
            )
        return 0.0, _checks.positive("momentum[1]", momentum[1])
    beta = _checks.nonnegative("momentum", momentum)
    if beta >= 1:
        raise _checks.InputError(
            f'momentum={momentum!r} is not allowed: momentum must lie in [0, 1), or be ("slow", κ) '
            "for 1 − κ·step/dim"
        )
    return beta, None

r"""The limit of SGD with batches, momentum and a readout step of its own, from that of plain SGD.

Write h and Σ for drift and diffusion of plain SGD at step c, both per unit of its time. Then

- batch b: the noise of a mean over b samples has 1/b of the variance, in the corrector as in Σ, and
  its square has 1/b of the mean: the limit at step c/b.
- momentum β: W − βV/(1 − β) moves by −δG/(1 − β), and V = O(δ) but for its norm, so this is SGD at
  step c/(1 − β), whose time is t/(1 − β). On the sphere too: a norm that stays 1 takes off as much
  as it does there, whatever the velocity holds.
- readout step ε: dv/dt and the rows and columns of v in Σ are multiplied by ε.
- a schedule: time counts δ, so only the step that corrector and Σ are taken at moves.

So at c/(b(1 − β)) both h and Σ are multiplied by 1/(1 − β), and rows of v by ε.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits import _checks
from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits.dynamics.model.base import Errors, Given, Model, Rows, Vector, model_of
from sgdlimits.dynamics.model.normalised import normalised
from sgdlimits.dynamics.model.quadrature import Quadrature
from sgdlimits.dynamics.model.velocity import with_velocity
from sgdlimits.tasks.base import Task


class Moved(Model):
    """Another model's limit at the pace of SGD with momentum and a step of the readout's own.

    du = D h dt + √(D Σ D/(rate·dim)) dB, D = diag(speeds), with h and Σ of ``plain``.
    """

    plain: Model
    rate: Float[Array, ""]  # 1/(1 − β)
    speeds: Vector  # rate, times ε for the readout

    # fields of other models are here read off the plain one; ``eqx.tree_at`` puts anything there
    @property  # type: ignore[misc]
    def task(self) -> Any:  # type: ignore[override]
        """What is learned."""
        return self.plain.task

    @property  # type: ignore[misc]
    def step(self) -> Any:  # type: ignore[override]
        """Of plain SGD with as much noise."""
        return self.plain.step

    def population_drift(self, vector: Vector) -> Vector:
        """f, faster."""
        return self.speeds * self.plain.population_drift(vector)

    def corrector(self, vector: Vector) -> Vector:
        """g, faster."""
        return self.speeds * self.plain.corrector(vector)

    def parts(self, vector: Vector) -> tuple[Vector, Vector]:
        """Both."""
        population, corrector = self.plain.parts(vector)
        return self.speeds * population, self.speeds * corrector

    def drift(self, vector: Vector) -> Vector:
        """The velocity h, faster."""
        return self.speeds * self.plain.drift(vector)

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ of the plain model is per unit of its own time."""
        return jnp.outer(self.speeds, self.speeds) / self.rate * self.plain.diffusion(vector)

    # --- expectations are those of the plain model ----------------------------------------------

    @property
    def tolerance(self) -> tuple[float, float]:
        """(rtol, atol) that the drift can support."""
        return self.plain.tolerance

    @property
    def exact(self) -> bool:
        """Whether expectations are exact."""
        return self.plain.exact

    def rule_variants(self) -> Quadrature | None:
        """Rules for expectations."""
        return self.plain.rule_variants()

    def rule_halves(self) -> tuple[Quadrature, ...]:
        """Rules for either half of long sums."""
        return self.plain.rule_halves()

    def ruled(self, rule: Quadrature) -> "Moved":
        """The same with another rule."""
        return self._of(self.plain.ruled(rule))

    def suited(self, vectors: Rows, rtol: float, *, smooth: bool) -> tuple["Moved", float]:
        """The cheapest rule whose error is at most rtol."""
        plain, error = self.plain.suited(vectors, rtol, smooth=smooth)
        return self._of(plain), error

    def with_slopes(self, vectors: Rows, rtol: float) -> "Moved":
        """The same with an accurate Jacobian, if there is a rule for it."""
        return self._of(self.plain.with_slopes(vectors, rtol))

    def errors(self, vectors: Rows) -> Errors:
        """Those of the plain model, faster."""
        errors = self.plain.errors(vectors)
        return Errors(errors.drift * np.asarray(self.speeds), errors.scale * float(self.rate))

    def diffusion_error(self, vector: Given) -> Float[np.ndarray, "n n"]:
        """The same for the diffusion."""
        speeds = np.asarray(self.speeds)
        return np.outer(speeds, speeds) / float(self.rate) * self.plain.diffusion_error(vector)

    def slopes(self, vector: Given) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
        """The Jacobian, and its error."""
        speeds = np.asarray(self.speeds)[:, None]
        jacobian, error = self.plain.slopes(vector)
        return speeds * jacobian, speeds * error

    def infinite_rates(self, vector: Given) -> str:
        """Why some derivative of the drift is infinite here, in words."""
        return self.plain.infinite_rates(vector)

    def parting(self, vector: Given) -> Float[np.ndarray, "k n"]:
        """Those of the plain model."""
        return self.plain.parting(vector)

    def resting(self) -> "Moved":
        """The same limit where units without weights stay so."""
        return self._of(self.plain.resting())

    # --- jumps are where those of the plain model are -------------------------------------------

    @property
    def motion(self) -> str:
        """How solutions move."""
        return self.plain.motion

    def switches(self, vector: Vector) -> Float[Array, "..."]:
        """Functions of the statistics across whose zeros the drift jumps."""
        return self.plain.switches(vector)

    def drift_with_signs(self, vector: Vector, signs: Float[Array, "..."]) -> Vector:
        """The drift with the sign of every switch held."""
        return self.speeds * self.plain.drift_with_signs(vector, signs)

    def onto_switches(self, vector: Vector, chosen: Bool[Array, "..."]) -> Vector:
        """The nearest statistics for which the chosen switches are exactly zero."""
        return self.plain.onto_switches(vector, chosen)

    @property
    def units(self) -> Sequence[np.ndarray]:
        """Groups of flat coordinates that vanish together."""
        return self.plain.units

    def _of(self, plain: Model) -> "Moved":
        return eqx.tree_at(lambda moved: moved.plain, self, plain)


def task_of(task: Task, moves: Moves) -> Task:
    """The task whose statistics the limit is about: with velocities where momentum is slow."""
    epsilon = float(moves.readout_step)
    if epsilon != 1 and not task.layout.of_readout.any():
        raise _checks.InputError(
            f"readout_step={epsilon:g} is not allowed: {type(task).__name__} has no trained readout"
        )
    return task if moves.friction is None else with_velocity(task, float(moves.friction), epsilon)


def task_seen(task: Task, moves: Moves) -> Task:
    """The same with the gradients that move the weights, as its model sees it."""
    return task_of(normalised(task, moves.batch) if moves.normalised else task, moves)


def moved_model(task: Task, moves: Moves, nodes: int) -> Model:
    """The limit of a task under these moves, at the step of time 0."""
    step = noise_step(moves, step_at(moves, 0.0))
    plain = model_of(task_seen(task, moves), step=step, nodes=nodes)
    rate, epsilon = _rate(moves), float(moves.readout_step)
    if moves.friction is not None or (rate == 1 and epsilon == 1):
        return plain
    speeds = np.where(task.layout.of_readout, rate * epsilon, rate)
    return Moved(plain=plain, rate=staged(rate), speeds=staged(speeds))  # type: ignore[call-arg]


def step_at(moves: Moves, time: float) -> float:
    """The step c at a time."""
    if moves.step.constant:
        return float(moves.step.values[0])
    return float(moves.step.at(np.array([time]))[0])


def noise_step(moves: Moves, step: float) -> float:
    """At which step plain SGD has as much noise: c/(b(1 − β))."""
    return step * _rate(moves) / moves.batch


def _rate(moves: Moves) -> float:
    """1/(1 − β)."""
    return 1 / (1 - float(moves.momentum))

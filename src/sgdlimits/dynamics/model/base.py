"""What the engine knows of a task: drift, corrector and diffusion of its flat statistics."""

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._types import Metric, Real, State
from sgdlimits.dynamics.model.mean import Given, Mean, Rows, Vector
from sgdlimits.dynamics.model.table import ON_SURFACE, Table
from sgdlimits.tasks.base import Task

VectorMap = Callable[[Vector], Vector]


@functools.singledispatch
def model_of(task: Task, *, step: float, nodes: int) -> "Model":
    """The limit of a task at learning rate step/dim, as functions of its flat statistics.

    A family of tasks registers how its model is made: ``@model_of.register(SpikedTensor)``.

    Args:
        task: what is learned.
        step: c in δ = c/dim.
        nodes: about how many quadrature nodes an expectation without a closed form may use.
    """
    del step, nodes
    raise _checks.InputError(
        f"task={task!r} is not allowed: no effective dynamics is known for {type(task).__name__}"
    )


class Errors(NamedTuple):
    """Errors of the drift at some vectors, and what to compare them with."""

    drift: Float[np.ndarray, "q n"]
    scale: Float[np.ndarray, " q"]  # size of the terms that cancel in the drift

    @property
    def relative(self) -> Float[np.ndarray, " q"]:
        """The largest error of the drift, relative to the terms it is made of."""
        return np.max(self.drift, axis=1) / np.where(self.scale > 0, self.scale, np.inf)


class Model(eqx.Module):
    """The triple (f, g, Σ) of a task at one step size, as functions of the flat statistics.

    du = (−f + g) dt + √(Σ/dim) dB, to first order in 1/dim. A model is a pytree whose leaves are
    float64 arrays, the real parameters of its task among them: under ``jax.enable_x64(True)`` it
    can be differentiated, batched by ``jax.vmap`` and compiled by ``eqx.filter_jit``.
    """

    task: eqx.AbstractVar[Task]
    step: eqx.AbstractVar[Float[Array, ""]]

    # --- must implement -------------------------------------------------------------------------

    @abc.abstractmethod
    def population_drift(self, vector: Vector) -> Vector:
        """f, the motion under gradient flow on the population loss, with its sign reversed."""

    @abc.abstractmethod
    def corrector(self, vector: Vector) -> Vector:
        """g, what the noise of critical size adds to the drift."""

    @abc.abstractmethod
    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ, the covariance per unit time of √dim times the statistics."""

    # --- only needed where expectations are sums over quadrature nodes --------------------------

    @property
    def tolerance(self) -> tuple[float, float]:
        """(rtol, atol) that the drift can support."""
        return 1e-9, 1e-12

    @property
    def exact(self) -> bool:
        """Whether expectations are exact; else every drift is a sum over many nodes."""
        return True

    def mean(self, metric: Metric) -> Mean:
        """What a metric is on average over fresh samples: "risk", "error" or a function."""
        raise _checks.InputError(
            f"metric={metric!r} is not allowed: of {type(self.task).__name__} no mean is known"
        )

    def rule_variants(self) -> Any:
        """Rules for expectations along a leading axis, this model's first; None if exact."""
        return None

    def rule_halves(self) -> tuple[Any, ...]:
        """Where sums are long, the same rules for either half of what is summed; else none.

        The drift and its derivative must be the sums of what they are by either half.
        """
        return ()

    def ruled(self, rule: Any) -> "Model":
        """The same with another rule."""
        return self

    def suited(self, vectors: Rows, rtol: float, *, smooth: bool) -> "tuple[Model, float]":
        """The cheapest model of the same limit whose error at these vectors is at most rtol.

        Where none is, the best. Errors are those of ``errors``, and the one reached is returned. A
        drift that jumps a little, by nodes that cross kinks, is left out if it must be ``smooth``.
        """
        return self, 0.0

    def errors(self, vectors: Rows) -> "Errors":
        """Estimated errors of the drift at some vectors, due to quadrature."""
        return Errors(np.zeros(vectors.shape), np.ones(len(vectors)))

    def diffusion_error(self, vector: Given) -> Float[np.ndarray, "n n"]:
        """Estimated error of each entry of the diffusion, due to quadrature."""
        return np.zeros((len(vector), len(vector)))

    def slopes(self, vector: Given) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
        """The Jacobian, and the estimated error of each entry due to quadrature."""
        jacobian = Table(self).jacobian(np.asarray(vector)[None])[0]
        return jacobian, np.zeros_like(jacobian)

    def with_slopes(self, vectors: Rows, rtol: float) -> "Model":
        """A model of the same limit whose Jacobian here is accurate, if there is one."""
        return self

    def infinite_rates(self, vector: Given) -> str:
        """Why some derivative of the drift is infinite here, in words; empty if none is."""
        return ""

    def parting(self, vector: Given) -> Float[np.ndarray, "k n"]:
        """Linear functions of the statistics, zero here, whose rates of growth are infinite."""
        return np.zeros((0, len(vector)))

    def resting(self) -> "Model":
        """The same limit where units without weights stay so, as those of SGD do.

        Beside such a state they move at once: the drift may jump there, and has no derivative.
        """
        return self

    # --- only needed where the drift jumps ------------------------------------------------------

    @property
    def motion(self) -> str:
        """How solutions move.

        - "smooth": the drift is smooth;
        - "sliding": it jumps where one of ``switches`` is zero, and each of them can be held at
          zero without touching the others;
        - "chattering": it jumps at places of which nothing is known.
        """
        return "smooth"

    def switches(self, vector: Vector) -> Float[Array, "..."]:
        """Functions of the statistics across whose zeros the drift jumps."""
        return jnp.zeros(0)

    def drift_with_signs(self, vector: Vector, signs: Float[Array, "..."]) -> Vector:
        """The drift with the sign of every switch held, 0 for on the surface: smooth across it."""
        return self.drift(vector)

    def onto_switches(self, vector: Vector, chosen: Bool[Array, "..."]) -> Vector:
        """The nearest statistics for which the chosen switches are exactly zero."""
        return vector

    @property
    def units(self) -> Sequence[np.ndarray]:
        """Groups of flat coordinates that vanish together, as those of a neuron switched off."""
        return ()

    # --- given ----------------------------------------------------------------------------------

    def parts(self, vector: Vector) -> tuple[Vector, Vector]:
        """(f, g), from which all three velocities follow."""
        return self.population_drift(vector), self.corrector(vector)

    def drift(self, vector: Vector) -> Vector:
        """The velocity h = −f + g."""
        return self.corrector(vector) - self.population_drift(vector)

    def at_step(self, step: Real) -> Self:
        """The same limit at another step."""
        return eqx.tree_at(lambda model: model.step, self, jnp.asarray(step, float))

    def jacobian(self, vector: Vector) -> Float[Array, "n n"]:
        """∂h/∂u."""
        return jax.jacfwd(self.drift)(vector)

    def ravel(self, state: Mapping[str, Any]) -> Vector:
        """Flatten a state; of symmetric matrices only the upper triangle is kept."""
        return jnp.asarray(self.task.layout.ravel(state))

    def unravel(self, vector: Vector) -> dict[str, Float[Array, "..."]]:
        """The state that flattens to ``vector``."""
        state = self.task.layout.unravel(vector)
        return {name: jnp.asarray(value) for name, value in state.items()}

    def constraint(self, vector: Vector) -> Float[Array, " m"]:
        """What vanishes at every state: on the sphere, squared norms minus one."""
        return jnp.asarray(self.task.constraint(self.unravel(vector)))

    def retract(self, vector: Vector) -> Vector:
        """The nearest vector that is a state: used after a step of random size."""
        return self.ravel(self.task.project(self.unravel(vector)))

    def margin(self, vector: Vector) -> Float[Array, ""]:
        """The least eigenvalue of R, or r2: not negative at a state."""
        return jnp.asarray(self.task.layout.smallest(self.unravel(vector)))

    def branch(self, start: Vector) -> tuple[VectorMap, VectorMap]:
        """The drift continued smoothly from ``start``, and the projection onto its domain.

        Switches keep the signs they have at ``start``; those that are zero stay so.
        """
        values = self.switches(start)
        signs = jnp.where(jnp.abs(values) < ON_SURFACE, 0.0, jnp.sign(values))
        return (
            lambda vector: self.drift_with_signs(vector, signs),
            lambda vector: self.onto_switches(vector, signs == 0),
        )

    def jump_directions(self, vector: Given) -> list[np.ndarray]:
        """Directions across the surfaces through ``vector`` on which the drift jumps."""
        vector = jnp.asarray(vector)
        if jax.eval_shape(self.switches, vector).size == 0:
            return []
        values, gradients = map(np.asarray, _switches_and_slopes(self, vector))
        return list(gradients[np.abs(values) < ON_SURFACE])


@compiled
def _switches_and_slopes(model: Model, vector: Vector) -> tuple[Array, Array]:
    switches = lambda u: model.switches(u).ravel()  # noqa: E731
    return switches(vector), jax.jacfwd(switches)(vector)


def as_state(state: Mapping[str, Any]) -> State:
    """A state of JAX arrays as a state of NumPy arrays."""
    return {name: np.asarray(value) for name, value in state.items()}

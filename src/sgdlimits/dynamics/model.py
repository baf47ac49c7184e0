"""What the engine knows of a task: drift, corrector and diffusion of its flat statistics."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._types import State
from sgdlimits.tasks.base import Task

Vector = Float[Array, " n"]
VectorMap = Callable[[Vector], Vector]


class Model(eqx.Module):
    """The triple (f, g, Σ) of a task at one step size, as functions of the flat statistics.

    dU = (−f + g) dt + √(Σ/dim) dB, to first order in 1/dim.
    """

    task: eqx.AbstractVar[Task]
    step: eqx.AbstractVar[Float[Array, ""]]
    tolerance: eqx.AbstractVar[tuple[float, float]]  # (rtol, atol) that the drift can support

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

    @abc.abstractmethod
    def retract(self, vector: Vector) -> Vector:
        """The nearest vector that is a state: used after a step of random size."""

    # --- only needed where the statistics obey a constraint -------------------------------------

    def constraint(self, vector: Vector) -> Float[Array, " m"]:
        """What vanishes at every state: on the sphere, squared norms minus one."""
        return jnp.zeros(0)

    # --- only needed where the drift jumps ------------------------------------------------------

    def branch(self, start: Vector) -> tuple[VectorMap, VectorMap]:
        """The drift continued smoothly from ``start``, and the projection onto its domain."""
        return self.drift, lambda vector: vector

    def jump_directions(self, vector: Vector) -> list[Vector]:
        """Directions across the surfaces through ``vector`` on which the drift jumps."""
        return []

    # --- given ----------------------------------------------------------------------------------

    def drift(self, vector: Vector) -> Vector:
        """The velocity h = −f + g."""
        return self.corrector(vector) - self.population_drift(vector)

    def jacobian(self, vector: Vector) -> Float[Array, "n n"]:
        """∂h/∂u."""
        return jax.jacfwd(self.drift)(vector)

    def ravel(self, state: dict[str, Any]) -> Vector:
        """Flatten a state; of symmetric matrices only the upper triangle is kept."""
        return jnp.concatenate(
            [jnp.asarray(state[name])[self._kept(name)].ravel() for name in self.task.shapes]
        )

    def unravel(self, vector: Vector) -> dict[str, Float[Array, "..."]]:
        """The state that flattens to ``vector``."""
        state, start = {}, 0
        for name, shape in self.task.shapes.items():
            size = len(_labels(self.task, name))
            part = vector[start : start + size]
            start += size
            if _symmetric(self.task, name):
                upper = jnp.zeros(shape, vector.dtype).at[self._kept(name)].set(part)
                state[name] = upper + jnp.triu(upper, 1).T
            else:
                state[name] = part.reshape(shape)
        return state

    def _kept(self, name: str) -> Any:
        shape = self.task.shapes[name]
        return np.triu_indices(shape[0]) if _symmetric(self.task, name) else ...


def coordinates(task: Task) -> list[str]:
    """Flat names of the statistics of a task, in order: "v[0]", "M[0,mu]", "R[0,1]".

    >>> import sgdlimits as sl
    >>> coordinates(sl.tasks.PhaseRetrieval())
    ['M[0,teacher]', 'R[0,0]']
    """
    return [label for name in task.shapes for label in _labels(task, name)]


def as_state(state: dict[str, Any]) -> State:
    """A state of JAX arrays as a state of NumPy arrays."""
    return {name: np.asarray(value) for name, value in state.items()}


def _symmetric(task: Task, name: str) -> bool:
    return task.dims[name] == ("neuron", "neuron_")


def _labels(task: Task, name: str) -> list[str]:
    axes = [task.labels_of_dims[dim] for dim in task.dims[name]]
    if not axes:
        return [name]
    if len(axes) == 1:
        return [f"{name}[{i}]" for i in axes[0]]
    pairs = [(i, j) for i in axes[0] for j in axes[1]]
    if _symmetric(task, name):
        pairs = [(i, j) for i, j in pairs if i <= j]
    return [f"{name}[{i},{j}]" for i, j in pairs]

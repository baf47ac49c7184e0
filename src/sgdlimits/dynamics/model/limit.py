"""The limit of a task as users hold it: frozen, in words of states, float64 in and out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, Numbers, State, StateLike, WholeNumber
from sgdlimits.dynamics.model.base import Model, as_state, model_of
from sgdlimits.tasks.base import Task

# for searches and paths: a drift error of 1e-3 is below the 1/√dim of the noise up to dim = 10⁵
COARSE_NODES = 2**10


class Limit(eqx.Module):
    """A task at one step size, and its model at two accuracies: ``model``, and ``coarse``.

    Frozen: a limit at another step, or of another task, is another limit.
    """

    task: Task
    step: float  # c in δ = c/dim
    nodes: int = eqx.field(static=True)
    model: Model  # the limit in JAX: differentiate it, vmap it
    coarse: Model  # the same with fewer quadrature nodes, for searches and paths

    @double_precision
    def __init__(self, task: Task, step: Number, nodes: WholeNumber):
        self.task = task
        self.step = _checks.positive("step", step)
        self.nodes = _checks.integer("nodes", nodes, least=2)
        self.model = model_of(task, step=self.step, nodes=self.nodes)
        fewer = min(self.nodes, COARSE_NODES)
        self.coarse = model_of(task, step=self.step, nodes=fewer)

    @property
    def coordinates(self) -> list[str]:
        """Flat names of the statistics in order, e.g. "v[0]", "M[0,mu]", "R[0,1]"."""
        return self.task.layout.coordinates

    @property
    def nonnegative(self) -> list[str]:
        """Those of the ``coordinates`` that cannot be negative: squared norms."""
        return self.task.layout.nonnegative

    @double_precision
    def ravel(self, state: StateLike) -> np.ndarray:
        """The state as a vector in ``coordinates``."""
        return np.asarray(self._vector(state))

    @double_precision
    def unravel(self, vector: Numbers) -> State:
        """The state with this vector of ``coordinates``."""
        vector = _checks.array("vector", vector, (len(self.coordinates),))
        return as_state(self.model.unravel(jnp.asarray(vector)))

    @double_precision
    def drift(self, state: StateLike) -> State:
        """The velocity h = −f + g of each statistic."""
        return as_state(self.model.unravel(_drift(self.model, self._vector(state))))

    @double_precision
    def population_drift(self, state: StateLike) -> State:
        """The population drift f: the velocity under gradient flow on the population loss is −f."""
        return as_state(self.model.unravel(_population_drift(self.model, self._vector(state))))

    @double_precision
    def corrector(self, state: StateLike) -> State:
        """The corrector g: what SGD noise adds to the velocity at the critical step size."""
        return as_state(self.model.unravel(_corrector(self.model, self._vector(state))))

    @double_precision
    def diffusion(self, state: StateLike) -> np.ndarray:
        """The diffusion Σ in ``coordinates``: covariance rate of √dim times the statistics.

        For linear statistics, and for spiked tensors, this is lim c·JVJᵀ. For R (and on the sphere)
        the squared norm of the gradient fluctuates too and is included: see Remark 2 of BGJ22.
        """
        return np.asarray(_diffusion(self.model, self._vector(state)))

    @double_precision
    def jacobian(self, state: StateLike) -> np.ndarray:
        """∂h/∂u in ``coordinates``, by automatic differentiation."""
        return np.asarray(_jacobian(self.model, self._vector(state)))

    @double_precision
    def drift_error(self, state: StateLike) -> State:
        """Standard error of each entry of ``drift`` due to the quadrature; zero where it is exact.

        The spread over independent scrambles of the Sobol nodes, or the change from a Gauss–Hermite
        rule of half as many nodes.
        """
        return as_state(self.model.unravel(self.model.drift_error(self._vector(state))))

    @property
    def provenance(self) -> dict[str, Any]:
        """What results of this limit note: task, parameters, step and accuracy."""
        return {
            "task": type(self.task).__name__,
            "parameters": self.task.parameters(),
            "step": self.step,
            "nodes": self.nodes,
        }

    def _vector(self, state: StateLike) -> jax.Array:
        return self.model.ravel(self.task.check_state(state))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.task!r}, step={self.step})"


_drift = eqx.filter_jit(lambda model, vector: model.drift(vector))
_population_drift = eqx.filter_jit(lambda model, vector: model.population_drift(vector))
_corrector = eqx.filter_jit(lambda model, vector: model.corrector(vector))
_diffusion = eqx.filter_jit(lambda model, vector: model.diffusion(vector))
_jacobian = eqx.filter_jit(lambda model, vector: model.jacobian(vector))

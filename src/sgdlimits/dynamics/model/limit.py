"""The limit of a task as users hold it: frozen, in words of states, float64 in and out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._events import Quantity
from sgdlimits._moves import Moves
from sgdlimits._precision import double_precision
from sgdlimits._types import Metric, Number, Numbers, State, StateLike, WholeNumber
from sgdlimits._warn import warn
from sgdlimits.dynamics.model.base import Model, Rows, as_state, model_of
from sgdlimits.dynamics.model.mean import name_of
from sgdlimits.dynamics.model.moved import moved_model, noise_step, step_at, task_of
from sgdlimits.dynamics.model.table import Table
from sgdlimits.tasks.base import Task

# for searches and paths: a drift error of 1e-3 is below the 1/√dim of the noise up to dim = 10⁵
COARSE_NODES = 2**10
DEFAULT_NODES = 2**14  # of ``model``, which is one rule for all states
BESIDE = 0.03  # how far from a state, relative to its statistics, a rule must hold
EXAMPLES = 2  # vectors at which a rule is judged
ROUGH = 1e-3  # below the noise of SGD, 1/√dim, up to dim = 10⁶
FAIR = 10.0  # errors beyond so many times that are warned of
ROUGH_SLOPE = 0.01  # relative errors of the Jacobian beyond this are warned of
POOR = 100.0  # errors beyond so many times rtol are warned of


class Limit(eqx.Module):
    """A task and how SGD moves, and its model at two accuracies: ``model``, and ``coarse``.

    Frozen: a limit at another step, or of another task, is another limit.
    """

    learned: Task
    task: Task  # what states are of: the task learned, with velocities where momentum is slow
    moves: Moves
    rtol: float = eqx.field(static=True)
    nodes: int | None = eqx.field(static=True)
    model: Model  # the limit in JAX, at time 0: differentiate it, vmap it
    coarse: Model  # the same with fewer quadrature nodes, for searches and paths

    @double_precision
    def __init__(self, task: Task, moves: Moves, rtol: Number, nodes: WholeNumber | None):
        self.learned = task
        self.task = task_of(task, moves)
        self.moves = moves
        self.rtol = _checks.positive("rtol", rtol)
        self.nodes = None if nodes is None else _checks.integer("nodes", nodes, least=2)
        many = DEFAULT_NODES if self.nodes is None else self.nodes
        self.model = moved_model(task, moves, many)
        self.coarse = moved_model(task, moves, min(many, COARSE_NODES))

    @property
    def step(self) -> float:
        """Of SGD, c in δ = c/dim; where it is not constant, that at time 0."""
        return step_at(self.moves, 0.0)

    def at(self, time: float) -> Model:
        """The model at the step of a time."""
        return self.with_step_of(self.model, time)

    def with_step_of(self, model: Model, time: float) -> Model:
        """A model of this limit, with another rule perhaps, at the step of a time."""
        if self.moves.step.constant:
            return model
        return self.at_step_size(model, step_at(self.moves, time))

    def at_step_size(self, model: Model, step: float) -> Model:
        """A model of this limit at another step c, moved as before."""
        return model.at_step(noise_step(self.moves, step))

    def check_constant_step(self, asked: str) -> None:
        """Raise InputError if the step moves: then nothing comes to rest."""
        if not self.moves.step.constant:
            raise _checks.InputError(
                f"step={self.moves.step_words!r} is not allowed for {asked}: where the step is not "
                "constant the drift depends on time, and has no rest points; give a number as step"
            )

    def suited(
        self,
        vectors: Rows,
        *,
        smooth: bool = False,
        rtol: float | None = None,
        time: float = 0.0,
    ) -> tuple[Model, float]:
        """A model with expectations as accurate as asked for at these vectors, and its error.

        A few of them stand for all. Where nodes were given, they are what is used.

        Args:
            vectors: flat statistics, finite at least in part.
            smooth: whether derivatives are needed.
            rtol: the limit's own by default.
            time: at whose step.
        """
        now = self.at(time)
        if now.exact:
            return now if smooth else now.resting(), 0.0
        flat = np.asarray(vectors)  # small things in NumPy: nothing to compile
        finite = np.flatnonzero(np.all(np.isfinite(flat), axis=1))
        few = flat[finite[np.linspace(0, len(finite) - 1, EXAMPLES).round().astype(int)]]
        # at a rest point a poor rule may be right by symmetry: states beside it tell
        beside = np.random.default_rng(0).normal(size=few.shape) * BESIDE
        beside[0] = 0.0
        few = Table(self.model).retract(few + beside * self._sizes(few))
        model = now if smooth else now.resting()
        if self.nodes is not None:
            return model, float(np.max(model.errors(jnp.asarray(few)).relative))
        return model.suited(jnp.asarray(few), self.rtol if rtol is None else rtol, smooth=smooth)

    def cheaper(self, vectors: Rows, where: str, time: float = 0.0) -> Model:
        """A model for many solutions, or noisy ones: with errors of 1e-3 at most if that is enough.

        Warns in words where it is poor.
        """
        rtol = max(self.rtol, ROUGH)
        model, error = self.suited(vectors, smooth=True, rtol=rtol, time=time)
        if self.nodes is not None:
            return self.with_step_of(self.coarse, time)
        if error > FAIR * rtol:
            warn(
                f"expectations are known to {error:.1g} of their size only {where}: "
                "no rule within the budget is more accurate"
            )
        return model

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
        """The state, or a drift or its error, as a vector in ``coordinates``."""
        return np.asarray(self.task.layout.ravel(self.task.check_shapes(state)))

    @double_precision
    def unravel(self, vector: Numbers) -> State:
        """The state with this vector of ``coordinates``."""
        vector = _checks.array("vector", vector, (len(self.coordinates),))
        return self._state(vector)

    @double_precision
    def drift(self, state: StateLike, time: Number = 0.0) -> State:
        """The velocity h = −f + g of each statistic, by the step at ``time``."""
        population, corrector = self._parts(state, time)
        return self._state(corrector - population)

    @double_precision
    def population_drift(self, state: StateLike) -> State:
        """The population drift f: the velocity under gradient flow on the population loss is −f."""
        return self._state(self._parts(state, 0.0)[0])

    @double_precision
    def corrector(self, state: StateLike, time: Number = 0.0) -> State:
        """The corrector g: what SGD noise adds to the velocity at the critical step size."""
        return self._state(self._parts(state, time)[1])

    @double_precision
    def diffusion(self, state: StateLike, time: Number = 0.0) -> np.ndarray:
        """The diffusion Σ in ``coordinates``: covariance rate of √dim times the statistics.

        For linear statistics, and for spiked tensors, this is lim c·JVJᵀ. For R (and on the sphere)
        the squared norm of the gradient fluctuates too and is included: see Remark 2 of BGJ22.
        """
        vector = self._vector(state)
        return np.asarray(_diffusion(self._suited_at(vector, time), vector))

    @double_precision
    def jacobian(self, state: StateLike, time: Number = 0.0) -> np.ndarray:
        """∂h/∂u in ``coordinates``, by automatic differentiation; warns where it is infinite."""
        return self._slopes(state, time)[0]

    @double_precision
    def drift_error(self, state: StateLike, time: Number = 0.0) -> State:
        """Estimated error of each entry of ``drift`` due to quadrature; zero where it is exact.

        One standard deviation: the spread over rules that have little in common but their size.
        """
        vector = self._vector(state)
        return self._state(self._suited_at(vector, time).errors(vector[None]).drift[0])

    @double_precision
    def diffusion_error(self, state: StateLike, time: Number = 0.0) -> np.ndarray:
        """Estimated error of each entry of ``diffusion``, as for ``drift_error``."""
        vector = self._vector(state)
        return np.asarray(self._suited_at(vector, time).diffusion_error(vector))

    @double_precision
    def jacobian_error(self, state: StateLike, time: Number = 0.0) -> np.ndarray:
        """Estimated error of each entry of ``jacobian``, as for ``drift_error``."""
        return self._slopes(state, time)[1]

    @double_precision
    def quantity(self, metric: Metric) -> Quantity:
        """A population mean as a function of the state, for events: those of simulations too.

        Exact where the mean is; else the sum over the nodes of one rule, with the error that
        ``risk``, ``error`` and ``measure`` state at a state.

        Args:
            metric: "risk", "error" or a metric of one's own, as of ``measure``.

        Returns:
            A function of a dict of arrays. Make it once: whoever waits for it compiles it.

        >>> import sgdlimits as sl
        >>> task = sl.tasks.PhaseRetrieval()
        >>> risk = sl.effective_dynamics(task).quantity("risk")
        >>> passage = sl.first_passage(task, (risk, "<", 0.1), 300, runs=8, step=0.1, max_time=50.0)
        >>> bool(passage.censored.any())
        False
        """
        name = name_of(metric)
        mean = model_of(self.learned, step=1.0, nodes=self.nodes or COARSE_NODES).mean(metric)
        layout = self.learned.layout

        def value(state: dict[str, Any]) -> Any:
            return mean.at(jnp.asarray(layout.ravel({part: state[part] for part in layout.shapes})))

        value.__name__ = name
        return value

    def _slopes(self, state: StateLike, time: Number) -> tuple[np.ndarray, np.ndarray]:
        """The Jacobian and its error; warns where it is poor."""
        vector = self._vector(state)
        model = self._suited_at(vector, time, smooth=True)
        if reason := model.infinite_rates(vector):
            warn(reason)
            return model.slopes(vector)
        if self.nodes is not None:
            return model.slopes(vector)
        jacobian, errors = model.with_slopes(vector[None], self.rtol).slopes(vector)
        size, error = (float(np.max(np.abs(x), initial=0.0)) for x in (jacobian, errors))
        if error > ROUGH_SLOPE * size:
            warn(
                f"derivatives of the drift are known to {error:.1g} only at this state, the "
                f"largest of them being {size:.1g}: jacobian_error tells which"
            )
        return jacobian, errors

    def _suited_at(self, vector: jax.Array, time: Number, *, smooth: bool = False) -> Model:
        """The model to use at one vector; warns where it is poor."""
        time = _checks.nonnegative("time", time)
        model, error = self.suited(vector[None], smooth=smooth, time=time)
        self.warn_if_poor(error, "at this state")
        return model

    def warn_if_poor(self, error: float, where: str) -> None:
        """Say in words that expectations are less accurate than was asked for."""
        if self.nodes is None and error > POOR * self.rtol:
            warn(
                f"expectations are known to {error:.1g} of their size only {where} "
                f"(rtol={self.rtol:g}): no rule within the budget is more accurate"
            )

    @property
    def provenance(self) -> dict[str, Any]:
        """What results of this limit note: task, parameters, step and accuracy."""
        return {
            "task": type(self.learned).__name__,
            "parameters": self.learned.parameters(),
            "step": self.moves.step_words,
            **self.moves.words,
            "rtol": self.rtol,
            "nodes": self.nodes,
        }

    def _parts(self, state: StateLike, time: Number) -> tuple[np.ndarray, np.ndarray]:
        """Population drift and corrector: one program for all three velocities."""
        vector = self._vector(state)
        population, corrector = Table(self._suited_at(vector, time)).parts(
            np.asarray(vector)[None]
        )[0, 0]
        return population, corrector

    def _sizes(self, vectors: np.ndarray) -> np.ndarray:
        """Of each statistic its largest entry, in place of all."""
        states = (self.task.layout.unravel(vector) for vector in vectors)
        largest = (
            {name: np.full_like(x, np.max(np.abs(x))) for name, x in state.items()}
            for state in states
        )
        return np.array([self.task.layout.ravel(state) for state in largest])

    def _state(self, vector: Any) -> State:
        return as_state(self.task.layout.unravel(np.asarray(vector)))

    def _vector(self, state: StateLike) -> jax.Array:
        return self.model.ravel(self.task.check_state(state))

    def __repr__(self) -> str:
        words = {"step": self.moves.step_words, **self.moves.words}
        inside = ", ".join(f"{name}={value!r}" for name, value in words.items())
        return f"{type(self).__name__}({self.learned!r}, {inside})"


_diffusion = compiled(lambda model, vector: model.diffusion(vector))

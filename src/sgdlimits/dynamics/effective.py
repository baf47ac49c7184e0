"""The effective dynamics of a task: the limit of its summary statistics as the dimension grows."""

import functools
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, State, StateLike, WholeNumber, Word
from sgdlimits.dynamics.basins import basins, summary
from sgdlimits.dynamics.build import build_model
from sgdlimits.dynamics.errors import quadrature_error
from sgdlimits.dynamics.fixed_points import FixedPoints, find
from sgdlimits.dynamics.fluctuations import deviations
from sgdlimits.dynamics.follow import ends_of, follow
from sgdlimits.dynamics.grid import even_times, given_times
from sgdlimits.dynamics.model import Model, as_state, coordinates
from sgdlimits.dynamics.partly_rescaled import PartlyRescaledSDE, check_rest, rescaled_names
from sgdlimits.dynamics.paths import sample, time_step
from sgdlimits.dynamics.plane_field import check_plane, plane_field
from sgdlimits.dynamics.record import record
from sgdlimits.dynamics.rescaled import LinearSDE
from sgdlimits.dynamics.starts import batch_size, random_starts, starts_from
from sgdlimits.tasks import Task

DEFAULT_NODES = 2**15
LONG = 60.0  # how long random starts are followed to find where the dynamics takes them
# for searches and paths: a drift error of 1e-3 is below the 1/√dim of the noise up to dim = 10⁵
COARSE_NODES = 2**10
PILOTS = 4  # solutions along which the time step of sampled paths is chosen


class EffectiveDynamics:
    r"""du = h(u) dt + √(Σ(u)/dim) dB, h = −f + g (paper 000, Theorem 2.2).

    f is the population drift, g the corrector, Σ the diffusion. States are dicts of arrays. Made by
    ``effective_dynamics``.
    """

    def __init__(self, task: Task, step: Number, nodes: WholeNumber):
        self.task = task
        self.step = _checks.positive("step", step)
        self.nodes = _checks.integer("nodes", nodes, least=2)

    @property
    def coordinates(self) -> list[str]:
        """Flat names of the statistics in order, e.g. "v[0]", "M[0,mu]", "R[0,1]"."""
        return coordinates(self.task)

    @double_precision
    def ravel(self, state: StateLike) -> np.ndarray:
        """The state as a vector in ``coordinates``."""
        return np.asarray(self._model.ravel(self.task.check_state(state)))

    @double_precision
    def unravel(self, vector: Any) -> State:
        """The state with this vector of ``coordinates``."""
        vector = _checks.array("vector", vector, (len(self.coordinates),))
        return as_state(self._model.unravel(jnp.asarray(vector)))

    # --- at a state -----------------------------------------------------------------------------

    def drift(self, state: StateLike) -> State:
        """The velocity h = −f + g of each statistic."""
        return self._state_of(_drift, state)

    def population_drift(self, state: StateLike) -> State:
        """The population drift f: the velocity under gradient flow on the population loss is −f."""
        return self._state_of(_population_drift, state)

    def corrector(self, state: StateLike) -> State:
        """The corrector g: what SGD noise adds to the velocity at the critical step size."""
        return self._state_of(_corrector, state)

    def diffusion(self, state: StateLike) -> np.ndarray:
        """The diffusion Σ in ``coordinates``: covariance rate of √dim times the statistics.

        For linear statistics, and for spiked tensors, this is lim c·JVJᵀ. For R (and on the sphere)
        the squared norm of the gradient fluctuates too and is included: see Remark 2 of paper 000.
        """
        return self._array_of(_diffusion, state)

    def jacobian(self, state: StateLike) -> np.ndarray:
        """∂h/∂u in ``coordinates``, by automatic differentiation."""
        return self._array_of(_jacobian, state)

    @double_precision
    def drift_error(self, state: StateLike) -> State:
        """Standard error of each entry of ``drift`` due to the quadrature; zero where it is exact.

        The spread over independent scrambles of the Sobol nodes, or the change from a Gauss–Hermite
        rule of half as many nodes.
        """
        vector = self._model.ravel(self.task.check_state(state))
        build = functools.partial(build_model, self.task, self.step, self.nodes)
        return as_state(self._model.unravel(quadrature_error(self._model, vector, build)))

    @double_precision
    def fixed_points(
        self, starts: StateLike | None = None, seed: WholeNumber = 0, count: WholeNumber = 64
    ) -> FixedPoints:
        """Search for rest points from many starts; rings of them are reported as one object.

        Args:
            starts: states to start from, along a leading axis; by default ``count`` random states
                of several sizes, and where the dynamics takes them.
            seed: of the random starts.
            count: how many random starts.

        Returns:
            A list, stable ones first; if it is empty, it says where the search looked.
        """
        if starts is None:
            count = _checks.integer("count", count, least=1)
            seed = _checks.integer("seed", seed, least=0)
            vectors = self._vectors(random_starts(self.task, seed, count), count)
            ends, finished = follow(self._coarse, vectors, jnp.linspace(0.0, LONG, 2))
            vectors = jnp.concatenate([vectors, ends[finished, -1]])
            origin = f"{count} random states of seed {seed} and where they are at time {LONG:g}"
        else:
            batch = batch_size(self.task, starts)
            vectors = self._vectors(self.task.check_state(starts, runs=batch), batch)
            origin = "the starts that were given"
        return find(self._model, self._coarse, np.asarray(vectors), origin)

    @double_precision
    def field(
        self, x: Word, y: Word, x_values: Any, y_values: Any, at: Any = None, others: Word = "held"
    ) -> xr.Dataset:
        """The drift on a grid in the plane of two statistics, by flat name, as a Dataset.

        The others are "held" as in the state ``at``, or "slaved": at rest, given x and y, starting
        from ``at``. ``plane_field`` says more; ``plot.portrait`` draws it.
        """
        plane = check_plane(self.task, x, y, x_values, y_values, others)
        attrs = {"step": self.step, "nodes": self.nodes}
        return plane_field(self._model, self._coarse, self.task, plane, at, attrs)

    @double_precision
    def basins(
        self,
        sample: Any,
        time: Number = 200.0,
        into: Callable[[State], Hashable] | None = None,
        count: WholeNumber = 4096,
        seed: WholeNumber = 0,
        confidence: Number = 0.95,
    ) -> xr.Dataset:
        """The probability of reaching each rest point, or connected set of them.

        Every start is followed for ``time`` and then to the rest point next to it. Starts near a
        place that is unstable may still be on their way: see ``stability``, and take more time.

        Args:
            sample: the law of the starts: states along a leading axis; or a function of
                (count, seed) that returns such states; or the result of ``simulate``, whose end
                points are followed, so that SGD in finite dimension is sorted in the same way.
            time: how long to follow them, in units of dim/step samples.
            into: sort by this label of the rest point that is reached, not by connected sets.
            count: how many starts to draw if ``sample`` is a function.
            seed: given to that function.
            confidence: of the exact binomial intervals.

        Returns:
            A Dataset over ``place``, most probable first: ``probability``, ``low``, ``high``,
            ``hits``, ``stability``, ``kernel_dimension`` and the statistics of one rest point;
            and over ``run`` the place ``reached``, −1 where a start did not come to rest.

        >>> import numpy as np, sgdlimits as sl
        >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
        >>> starts = {"m": np.array([-0.1, 0.1, 0.2, 0.3]), "r2": np.ones(4)}
        >>> found = limit.basins(starts, time=30.0)
        >>> found.m.values.round(6), found.probability.values
        (array([ 1., -1.]), array([0.75, 0.25]))
        """
        time, share = _checks.positive("time", time), _checks.fraction("confidence", confidence)
        count, seed = (
            _checks.integer("count", count, least=1),
            _checks.integer("seed", seed, least=0),
        )
        starts = starts_from(self.task, sample, count, seed)
        vectors = self._vectors(starts, len(next(iter(starts.values()))))
        ends = ends_of(self._coarse, vectors, time)
        found = basins(self._model, self._coarse, ends, into)
        return summary(self.task, found, share, self._provenance | {"time": time, "seed": seed})

    # --- near a rest point ----------------------------------------------------------------------

    def rescaled(
        self, at: StateLike, only: Sequence[str] | None = None
    ) -> LinearSDE | PartlyRescaledSDE:
        """The diffusive limit of √dim·(u − u*) at a rest point u*.

        Args:
            at: the rest point.
            only: statistics to rescale, by flat name ("m", "M[0,mu]") or by group ("M"); the others
                stay macroscopic and start at ``at``. All are rescaled by default.

        >>> import sgdlimits as sl
        >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=1.0))
        >>> sde = limit.rescaled({"m": 0.0, "r2": 1.0})
        >>> float(round(sde.stationary_covariance().covariance[1, 1], 9))
        6.0
        """
        vector = self.ravel(at)
        if only is None:
            drift, jacobian, diffusion = self._linearise(vector)
            check_rest("the statistics", drift)
            return LinearSDE(self.coordinates, jacobian, diffusion)
        names = rescaled_names(self.task, only)
        drift, _, _ = self._linearise(vector)
        check_rest("the named statistics", drift[[self.coordinates.index(n) for n in names]])
        return PartlyRescaledSDE(self.coordinates, names, self._path_from(vector), self._linearise)

    @double_precision
    def _linearise(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts = (function(self._model, jnp.asarray(vector)) for function in _LINEARISATION)
        drift, jacobian, diffusion = (np.asarray(part) for part in parts)
        return drift, jacobian, diffusion

    def _path_from(self, vector: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        @double_precision
        def path(times: np.ndarray) -> np.ndarray:
            values, _ = follow(self._model, jnp.asarray(vector)[None], jnp.asarray(times))
            return np.asarray(values[0])

        return path

    # --- along time -----------------------------------------------------------------------------

    @double_precision
    def solve(
        self,
        state: StateLike,
        time: Number = 10.0,
        points: WholeNumber = 201,
        times: Any = None,
    ) -> xr.Dataset:
        """Solve the ODE du/dt = h(u).

        Args:
            state: where to start; arrays with one more leading axis start one solution per entry,
                along a dimension ``run``.
            time: where to stop, in units of dim/step samples.
            points: number of equally spaced times in the result, 0 and ``time`` included.
            times: the times themselves, increasing from 0, in place of ``time`` and ``points``:
                ``runs.time`` puts the solution beside a simulation.

        Returns:
            A Dataset with the statistics by name over ``time``.
        """
        grid = even_times(time, points) if times is None else given_times(times)
        batch = batch_size(self.task, state)
        checked = self.task.check_state(state, runs=batch)
        starts = self._vectors(checked, batch)
        values, finished = follow(self._model, starts, jnp.asarray(grid))
        if batch is None and not bool(finished[0]):
            warnings.warn(
                f"the solution did not reach time={grid[-1]:g}: the effective dynamics diverges or "
                "is too stiff; later values are not finite",
                RuntimeWarning,
                stacklevel=3,
            )
        attrs = {"kind": "limit"} | self._provenance
        return record(self._model, values[0] if batch is None else values, grid, attrs)

    @double_precision
    def sample_paths(
        self,
        state: StateLike,
        dim: WholeNumber = 3000,
        time: Number = 10.0,
        runs: WholeNumber = 64,
        seed: WholeNumber = 0,
        points: WholeNumber = 201,
    ) -> xr.Dataset:
        """Sample the SDE du = h dt + √(Σ/dim) dB of SGD in dimension ``dim``.

        The Euler–Maruyama step is a tenth of the fastest time scale along the limit. For tasks that
        need quadrature the exact chain (``simulate``) is often faster than this approximation.

        Args:
            state: where all paths start, or one state per run along a leading axis.
            dim: the dimension d.
            time: where to stop, in units of dim/step samples.
            runs: number of paths.
            seed: of the noise; path i is the same whatever ``runs``.
            points: number of equally spaced times in the result.
        """
        dim = self.task.check_dim(dim)
        time = _checks.positive("time", time)
        runs = _checks.integer("runs", runs, least=1)
        points = _checks.integer("points", points, least=2)
        seed = _checks.integer("seed", seed, least=0)
        batch = runs if batch_size(self.task, state) else None
        starts = self._vectors(self.task.check_state(state, runs=batch), batch)
        times = np.linspace(0, time, points)
        rough, _ = follow(self._model, starts[:PILOTS], jnp.linspace(0, time, 11))
        largest = time_step(self._model, rough.reshape(-1, rough.shape[-1]))
        starts = jnp.broadcast_to(starts, (runs, starts.shape[1]))
        values = sample(self._coarse, starts, times, largest, dim, seed)
        attrs = {"kind": "paths"} | self._provenance | {"dim": dim, "seed": seed}
        return record(self._model, values, times, attrs)

    @double_precision
    def fluctuations(self, path: xr.Dataset) -> xr.Dataset:
        """Standard deviations of √dim·(u − ū) along a solution ū that ``solve`` returned.

        To first order in 1/√dim, from one start that is not random.

        >>> import sgdlimits as sl
        >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=1.0))
        >>> rest = limit.solve({"m": 0.0, "r2": 1.0}, time=3.0)
        >>> float((limit.fluctuations(rest).r2[-1] ** 2).round(6))  # stationary: 2·order
        6.0
        """
        states = {name: path[name].transpose("time", ...).values for name in self.task.shapes}
        vectors = self._vectors(states, len(path.time))
        sizes = deviations(self._coarse, self.coordinates, vectors, path.time.values)
        attrs = {"kind": "fluctuations"} | self._provenance
        return record(self._model, jnp.asarray(sizes), path.time.values, attrs, valid=False)

    # --- inside ---------------------------------------------------------------------------------

    @functools.cached_property
    def _model(self) -> Model:
        return build_model(self.task, self.step, self.nodes)

    @functools.cached_property
    def _coarse(self) -> Model:
        return build_model(self.task, self.step, min(self.nodes, COARSE_NODES))

    @double_precision
    def _state_of(self, function: Any, state: StateLike) -> State:
        vector = self._model.ravel(self.task.check_state(state))
        return as_state(self._model.unravel(function(self._model, vector)))

    @double_precision
    def _array_of(self, function: Any, state: StateLike) -> np.ndarray:
        vector = self._model.ravel(self.task.check_state(state))
        return np.asarray(function(self._model, vector))

    def _vectors(self, state: State, batch: int | None) -> jax.Array:
        if batch is None:
            return self._model.ravel(state)[None]
        return jax.vmap(self._model.ravel)({name: jnp.asarray(x) for name, x in state.items()})

    @property
    def _provenance(self) -> dict[str, Any]:
        return {
            "task": type(self.task).__name__,
            "parameters": self.task.parameters(),
            "step": self.step,
            "nodes": self.nodes,
        }

    def __repr__(self) -> str:
        return f"EffectiveDynamics({self.task!r}, step={self.step})"


def effective_dynamics(
    task: Any, step: Number = 1.0, nodes: WholeNumber = DEFAULT_NODES
) -> EffectiveDynamics:
    """The effective dynamics of a task at learning rate δ = step/dim.

    Args:
        task: what is learned.
        step: c in δ = c/dim; one unit of time is dim/step samples.
        nodes: quadrature nodes for expectations that have no closed form.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> limit.drift({"m": 1.0, "r2": 1.0})
    {'m': array(0.), 'r2': array(0.)}
    """
    if not isinstance(task, Task):
        raise _checks.InputError(
            f"task={task!r} is not allowed: task must be one of sgdlimits.tasks"
        )
    return EffectiveDynamics(task, step, nodes)


_drift = eqx.filter_jit(lambda model, vector: model.drift(vector))
_population_drift = eqx.filter_jit(lambda model, vector: model.population_drift(vector))
_corrector = eqx.filter_jit(lambda model, vector: model.corrector(vector))
_diffusion = eqx.filter_jit(lambda model, vector: model.diffusion(vector))
_jacobian = eqx.filter_jit(lambda model, vector: model.jacobian(vector))
_LINEARISATION = (_drift, _jacobian, _diffusion)

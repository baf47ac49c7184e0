"""Diffusive limits: what √dim·(u − u*) does in a microscopic neighbourhood of a rest point u*."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, overload

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._pieces import Pieces
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Matrix, Number, Numbers, StateLike, WholeNumber
from sgdlimits._warn import warn
from sgdlimits.dynamics.flow import follow
from sgdlimits.dynamics.model import Limit, Model, Vector
from sgdlimits.dynamics.noise.integrator import (
    PROBES,
    Grid,
    advance,
    fastest_rate,
    path_keys,
)
from sgdlimits.dynamics.noise.linear import LinearSDE, gaussian_paths, start_of_paths, steps_along
from sgdlimits.tasks.base import Task

AT_REST = 1e-6  # the drift at a rest point is below this where it is exact
FAIR = 5.0  # and otherwise below so many times its error more
SUBSTEPS = 4  # linearisations between two recorded times
LOOKS = 100  # times at which the nonlinear SDE's time scale is looked at anew, at least
PER_TIME_SCALE = 10  # steps
MOST_STEPS = 5000  # between two looks
TOGETHER = 64  # paths in one call: their number is padded, so that one program serves all


@overload
def rescaled(self: Limit, at: StateLike) -> LinearSDE: ...
@overload
def rescaled(self: Limit, at: StateLike, only: None) -> LinearSDE: ...
@overload
def rescaled(
    self: Limit, at: StateLike, only: Sequence[str], *, dim: Number = ...
) -> "RescaledSDE": ...
@double_precision
def rescaled(  # noqa: D417 - a method: self needs no word
    self: Limit, at: StateLike, only: Sequence[str] | None = None, *, dim: Number = math.inf
) -> "LinearSDE | RescaledSDE":
    """The diffusive limit of √dim·(u − u*) at a rest point u*.

    Args:
        at: the rest point.
        only: statistics to rescale, by flat name ("m", "M[0,mu]") or by group ("M"); the others
            stay macroscopic and start at ``at``. All are rescaled by default.
        dim: with ``only``, the dimension for which the parameters of the task were chosen. With
            parameters that do not depend on it, leave it out: then dim → ∞ and the SDE is linear.
            Where a parameter grows with the dimension, as snr = Λ·dim^{(k−2)/2} in (3.3) of BGJ22,
            higher powers of the rescaled statistics stay, and only a finite ``dim`` has them.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=1.0))
    >>> sde = limit.rescaled({"m": 0.0, "r2": 1.0})
    >>> float(round(sde.stationary_covariance().covariance[1, 1], 9))
    6.0
    """
    self.check_constant_step("rescaled")
    vector = jnp.asarray(self.ravel(at))
    model, _ = self.suited(vector[None], smooth=True)
    drift, error = np.asarray(_drift(model, vector)), model.errors(vector[None]).drift[0]
    allowed = AT_REST + FAIR * float(jnp.max(error))
    if not isinstance(dim, int | float | np.integer | np.floating):
        raise _checks.InputError(f"dim={dim!r} is not allowed: dim must be an integer or math.inf")
    if only is None:
        if dim != math.inf:
            raise _checks.InputError(
                f"dim={dim!r} is not allowed without `only`: where all statistics are rescaled at "
                "a finite dimension, sample_paths has their SDE"
            )
        if reason := model.infinite_rates(np.asarray(vector)):
            raise _checks.InputError(f"at is not allowed: {reason}, and there is no linear SDE")
        _check_rest("the statistics", drift, allowed)
        return LinearSDE(self.coordinates, *_linearised(model, vector))
    names = _names(self.task, only)
    named = [self.coordinates.index(name) for name in names]
    _check_rest("the named statistics", drift[named], allowed)
    if dim != math.inf:
        dim = float(self.task.check_dim(dim))
    return RescaledSDE(model, self.coordinates, names, np.asarray(vector), dim)


class RescaledSDE:
    r"""Some statistics rescaled around x*, x = √dim·(u − x*), the others y macroscopic.

    dx = √dim · h_x(x* + x/√dim, y) dt + √Σ_xx dB,   dy = h_y dt.

    At ``dim=math.inf`` the drift of x is ∂h_x/∂x(x*, y)·x, and y does not feel x: BGJ22 (3.2), in
    which √n·m diffuses while r² follows its ODE. There h_x must vanish at x* for every y on the
    way. Made by ``limit.rescaled``.
    """

    def __init__(
        self,
        model: Model,
        coordinates: list[str],
        rescaled: list[str],
        at: np.ndarray,
        dim: float,
    ):
        self.coordinates = coordinates
        self.rescaled = rescaled
        self.dim = dim
        self._model = model
        self._at = at
        self._indices = [coordinates.index(name) for name in rescaled]

    @double_precision
    def sample(
        self,
        time: Number,
        runs: WholeNumber = 64,
        *,
        seed: WholeNumber = 0,
        init: Numbers | Matrix | None = None,
        points: WholeNumber = 201,
    ) -> xr.DataArray:
        """Paths over ``run``, ``time`` and ``statistic``: rescaled ones, and the others as is.

        At a finite ``dim`` growth may be faster than exponential. Time steps follow the fastest
        path, and with it depend on ``runs``; one that outruns them is not finite from there on, and
        a warning counts those. The scheme is that of ``sample_paths``.

        Args:
            time: where to stop.
            runs: number of paths.
            seed: of the noise.
            init: rescaled statistics at time 0, a vector or one for each run; zero by default.
            points: number of equally spaced times, 0 and ``time`` included.
        """
        time = _checks.positive("time", time)
        points = _checks.integer("points", points, least=2)
        seed = _checks.integer("seed", seed, least=0)
        times = np.linspace(0, time, points)
        if math.isinf(self.dim):
            return self._linear(times, runs, seed, init)
        return self._nonlinear(times, runs, seed, init)

    def _linear(self, times: np.ndarray, runs: WholeNumber, seed: int, init: Any) -> xr.DataArray:
        fine = np.linspace(0, times[-1], (len(times) - 1) * SUBSTEPS + 1)
        path = self._path(fine)
        matrices = [_linearised(self._model, jnp.asarray(vector)) for vector in path]
        for vector in path:
            drift = np.asarray(_drift(self._model, jnp.asarray(vector)))
            _check_rest(
                "the named statistics, on the way of the others", drift[self._indices], AT_REST
            )
        chosen = np.ix_(self._indices, self._indices)
        A, S = (np.stack([m[chosen] for m in part]) for part in zip(*matrices, strict=True))
        paths = gaussian_paths(self.rescaled, steps_along(fine, A, S), fine, runs, seed, init)
        values = np.repeat(path[None, ::SUBSTEPS], paths.sizes["run"], axis=0)
        values[..., self._indices] = paths.values[:, ::SUBSTEPS]
        return self._labelled(values, times)

    def _nonlinear(
        self, times: np.ndarray, runs: WholeNumber, seed: int, init: Any
    ) -> xr.DataArray:
        runs, rescaled = start_of_paths(self.rescaled, runs, init)
        starts = np.tile(self._at, (runs, 1))
        starts[:, self._indices] = rescaled
        mask = np.zeros(len(self._at), dtype=bool)
        mask[self._indices] = True
        zoomed = _Zoomed(
            self._model, jnp.asarray(self._at), jnp.asarray(mask), jnp.asarray(self.dim)
        )
        values = _adaptive_paths(zoomed, starts, times, seed)
        lost = int(np.sum(~np.all(np.isfinite(values), axis=(1, 2))))
        if lost:
            warn(
                f"{lost} of {runs} paths grow too fast and are not finite before time={times[-1]:g}"
            )
        return self._labelled(values, times)

    def _path(self, times: np.ndarray) -> np.ndarray:
        """The macroscopic solution from x*."""
        values, _ = follow(self._model, jnp.asarray(self._at)[None], jnp.asarray(times))
        return np.asarray(values[0])

    def _labelled(self, values: np.ndarray, times: np.ndarray) -> xr.DataArray:
        return xr.DataArray(
            values,
            dims=("run", "time", "statistic"),
            coords={"run": np.arange(len(values)), "time": times, "statistic": self.coordinates},
        )

    def __repr__(self) -> str:
        size = "∞, linear" if math.isinf(self.dim) else f"{self.dim:g}, nonlinear"
        return f"RescaledSDE(√dim·({', '.join(self.rescaled)}), dim = {size})"


def _adaptive_paths(
    zoomed: "_Zoomed", starts: Float[np.ndarray, "runs n"], times: np.ndarray, seed: int
) -> np.ndarray:
    """Paths whose steps are a fraction of the fastest time scale among them, looked at anew."""
    runs, between = len(starts), math.ceil(LOOKS / (len(times) - 1))  # looks per record
    spacing = (times[1] - times[0]) / between
    rows = np.minimum(np.arange(-(-runs // TOGETHER) * TOGETHER), runs - 1)
    firsts = range(0, runs, TOGETHER)
    keys = [path_keys(seed, first, TOGETHER) for first in firsts]
    vectors, taken, recorded, pieces = starts[rows], 0, [starts], Pieces()
    with progress("sampling paths", len(times) - 1) as report:
        for _ in range(len(times) - 1):
            for _ in range(between):
                steps = math.ceil(spacing * _fastest_rate(zoomed, vectors) * PER_TIME_SCALE)
                grid = Grid.of(spacing, min(max(steps, 1), MOST_STEPS))
                kicks, one = jnp.asarray(taken), jnp.asarray(1.0)
                parts = [
                    advance(zoomed, jnp.asarray(some), key, kicks, 1, grid, one, pieces)[0]
                    for some, key in zip(np.split(vectors, len(keys)), keys, strict=True)
                ]
                vectors = np.concatenate([np.asarray(part) for part in parts])
                taken += int(grid.steps)
            recorded.append(vectors[:runs])
            report(1)
    return np.stack(recorded, axis=1)


def _fastest_rate(zoomed: "_Zoomed", vectors: np.ndarray) -> float:
    """The largest norm of the drift's Jacobian among the paths that have gone farthest."""
    away = np.max(np.where(np.asarray(zoomed.mask), np.abs(vectors), 0.0), axis=1)
    far = np.argsort(np.where(np.isfinite(away), away, -1.0))[-PROBES:]
    return fastest_rate(zoomed, vectors[far])


class _Zoomed(eqx.Module):
    """Drift and diffusion of x = √dim·(u − x*) where ``mask``, and of the statistics elsewhere."""

    model: Model
    at: Vector
    mask: Bool[Array, " n"]
    dim: Float[Array, ""]

    @property
    def exact(self) -> bool:
        """Whether expectations are in closed form."""
        return self.model.exact

    def drift(self, vector: Vector) -> Vector:
        """√dim · h for what is rescaled, h for the others."""
        return self.model.drift(self._statistics(vector)) * self._scale

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ for what is rescaled; the noise of the others vanishes like 1/√dim."""
        return self.model.diffusion(self._statistics(vector)) * jnp.outer(self.mask, self.mask)

    def retract(self, vector: Vector) -> Vector:
        """The nearest state, in these coordinates."""
        nearest = self.model.retract(self._statistics(vector))
        return jnp.where(self.mask, (nearest - self.at) * self._scale, nearest)

    def _statistics(self, vector: Vector) -> Vector:
        return jnp.where(self.mask, self.at + vector / self._scale, vector)

    @property
    def _scale(self) -> Vector:
        return jnp.where(self.mask, jnp.sqrt(self.dim), 1.0)


@compiled
def _drift(model: Model, vector: Vector) -> Vector:
    return model.drift(vector)


def _linearised(model: Model, vector: Vector) -> tuple[np.ndarray, np.ndarray]:
    jacobian, diffusion = _jacobian_and_diffusion(model, vector)
    return np.asarray(jacobian), np.asarray(diffusion)


@compiled
def _jacobian_and_diffusion(
    model: Model, vector: Vector
) -> tuple[Float[Array, "n n"], Float[Array, "n n"]]:
    return model.jacobian(vector), model.diffusion(vector)


def _check_rest(what: str, drift: np.ndarray, allowed: float) -> None:
    """There is no diffusive limit away from rest."""
    size = float(np.max(np.abs(drift), initial=0.0))
    if size > allowed:
        raise _checks.InputError(
            f"at is not allowed: the drift of {what} is {size:.3g}, but a diffusive limit needs a "
            f"rest point, where it is below {allowed:.2g}"
        )


def _names(task: Task, only: Sequence[str]) -> list[str]:
    """Flat names of the statistics that ``only`` names one by one ("M[0,mu]") or as a group."""
    given = [only] if isinstance(only, str) else list(only) if isinstance(only, Iterable) else []
    given = [name if isinstance(name, str) else repr(name) for name in given] or [repr(only)]
    names = task.layout.coordinates
    chosen = [name for name in names if name in given or name.split("[")[0] in given]
    unknown = [name for name in given if name not in {*names, *task.shapes}]
    if unknown or not chosen:
        raise _checks.InputError(
            f"only={given!r} is not allowed: only must name statistics among "
            f"{', '.join(dict.fromkeys([*task.shapes, *names]))}"
        )
    return chosen

"""How far single runs stray from the limit: the Gaussian fluctuations along a solution.

To first order √dim·(u − ū) is a linear SDE along the solution ū, with covariance

    dC/dt = J C + C Jᵀ + Σ,    J = ∇h(ū), Σ = Σ(ū), C(0) = 0.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import double_precision
from sgdlimits.dynamics.flow import follow_steps, to_dataset
from sgdlimits.dynamics.flow.init import flat
from sgdlimits.dynamics.flow.schedule import pieces, steps_of
from sgdlimits.dynamics.model import Limit, Model
from sgdlimits.dynamics.model.moved import noise_step
from sgdlimits.dynamics.noise.linear import covariances, steps_along
from sgdlimits.dynamics.noise.stretches import busiest

LONGEST = 0.2  # a step, in units of the fastest time scale: the error is of its second order
MOST = 64  # steps between two records
PROBES = 8  # states at which the time scale is measured


@double_precision
def fluctuations(self: Limit, path: xr.Dataset) -> xr.Dataset:
    """Standard deviations and covariance of √dim·(u − ū) along a solution ū.

    To first order in 1/√dim, from one start that is not random.

    Args:
        self: the limit whose solution it is.
        path: what ``solve`` returned from one start.

    Returns:
        A Dataset whose statistics, over ``time``, are the standard deviations of √dim times those
        of SGD, and whose ``covariance`` is the whole covariance C over ``time``, ``coordinate`` and
        ``coordinate_``, both labelled by the limit's ``coordinates``.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=1.0))
    >>> rest = limit.solve({"m": 0.0, "r2": 1.0}, time=3.0)
    >>> float((limit.fluctuations(rest).r2[-1] ** 2).round(6))  # stationary: 2·order
    6.0
    >>> moving = limit.fluctuations(limit.solve({"m": 0.9, "r2": 0.5}, time=0.2))
    >>> shared = moving.covariance.sel(coordinate="m", coordinate_="r2")
    >>> float((shared[-1] / (moving.m[-1] * moving.r2[-1])).round(3))  # their correlation
    -0.107
    """
    vectors, times = _solution(self, path)
    when = busiest(self, float(times[-1]))
    model, _ = self.suited(vectors, smooth=True, time=when)
    between = _substeps(model, vectors, times)
    cuts = pieces(self.moves.step, times)
    even = np.interp(np.arange((len(times) - 1) * between + 1) / between, range(len(times)), times)
    fine = np.union1d(even, cuts)
    if len(fine) > len(times):
        vectors = jnp.asarray(follow_steps(self, model, vectors[:1], fine)[0][0])
    steps = []
    for begin, end in itertools.pairwise(np.searchsorted(fine, cuts)):
        some = slice(begin, end + 1)
        at = jnp.asarray(_steps(self, fine[some]))
        slopes, noise = (of(model, vectors[some], at) for of in (_jacobians, _diffusions))
        steps += steps_along(fine[some], np.asarray(slopes), np.asarray(noise))
    size = len(self.coordinates)
    covariance = covariances(steps, np.zeros((size, size)))[np.searchsorted(fine, times)]
    variances = np.diagonal(covariance, axis1=1, axis2=2)
    deviations = jnp.asarray(np.sqrt(np.maximum(variances, 0.0)))
    attrs = {"kind": "fluctuations"} | self.provenance
    spread = to_dataset(self.model, deviations, times, attrs, are_states=False)
    labels = {"coordinate": self.coordinates, "coordinate_": self.coordinates}
    return spread.assign_coords(labels).assign(covariance=(("time", *labels), covariance))


def _steps(limit: Limit, times: np.ndarray) -> np.ndarray:
    """The step of plain SGD with as much noise, at times between which SGD's does not jump."""
    schedule = limit.moves.step
    now = steps_of(schedule, times if schedule.function is not None else times[:1])
    return noise_step(limit.moves, 1.0) * np.broadcast_to(now, times.shape)


def _solution(limit: Limit, path: xr.Dataset) -> tuple[jax.Array, np.ndarray]:
    """The vectors and times of one solution."""
    names = list(limit.task.shapes)
    if not isinstance(path, xr.Dataset) or not {"time", *names} <= set(path.variables):
        given = list(path.variables) if isinstance(path, xr.Dataset) else type(path).__name__
        raise _checks.InputError(
            f"path={given} is not allowed: path must be a solution of this limit, a Dataset with "
            f"{names} over time"
        )
    if "run" in path.dims:
        raise _checks.InputError(
            f"path with {path.sizes['run']} runs is not allowed: path must be one solution; "
            "choose one by path.isel(run=0)"
        )
    times = _checks.array("path.time", path.time.values, (path.sizes["time"],))
    if len(times) < 2 or np.any(np.diff(times) <= 0):
        raise _checks.InputError(
            f"path.time={_checks.shown(times)} is not allowed: two or more increasing times are"
        )
    dims = limit.task.layout.dims
    states = {name: path[name].transpose("time", *dims[name]).values for name in names}
    checked = limit.task.check_state(states, runs=len(times), argument="path")
    return flat(limit.model, checked, len(times)), times


def _substeps(model: Model, vectors: jax.Array, times: np.ndarray) -> int:
    """Into how many steps to divide the time between two records: J and Σ move along the path."""
    some = vectors[np.linspace(0, len(vectors) - 1, PROBES).round().astype(int)]
    jacobians = _jacobians(model, some, jnp.full(len(some), model.step))
    rate = np.max(np.linalg.norm(np.asarray(jacobians), 2, axis=(1, 2)))
    wanted = float(np.max(np.diff(times))) * rate / LONGEST
    return int(np.clip(np.ceil(wanted), 1, MOST)) if np.isfinite(wanted) else 1


@compiled
def _jacobians(
    model: Model, path: Float[Array, "t n"], steps: Float[Array, " t"]
) -> Float[Array, "t n n"]:
    return jax.lax.map(lambda at: model.at_step(at[1]).jacobian(at[0]), (path, steps))


@compiled
def _diffusions(
    model: Model, path: Float[Array, "t n"], steps: Float[Array, " t"]
) -> Float[Array, "t n n"]:
    return jax.lax.map(lambda at: model.at_step(at[1]).diffusion(at[0]), (path, steps))

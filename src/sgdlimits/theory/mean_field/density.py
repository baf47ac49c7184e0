"""The mean field as a density: ∂ₜμ = −∇·(μφ) on a grid of one overlap m and one squared norm q."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy import stats

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import Number, Numbers, WholeNumber
from sgdlimits._warn import warn
from sgdlimits.theory.mean_field.flow import MeanField, times_of
from sgdlimits.theory.mean_field.particles import Particles, residual, velocity
from sgdlimits.theory.mean_field.targets import Targets
from sgdlimits.theory.mean_field.units import Smooth

LEAST_MASS = 0.8  # of the law of random weights, on a grid
COURANT = 0.4  # below ½ no cell is emptied by both of its faces, and masses stay positive
LEAVING = 1e-4  # mass in the outermost cells that is worth a warning


def start_density(
    dim: WholeNumber,
    *,
    farthest: Number = 2.0,
    largest: Number = 3.0,
    overlap_cells: WholeNumber = 90,
    norm_cells: WholeNumber = 60,
    signal: Number = 1.0,
) -> xr.DataArray:
    """Masses on a grid of the law of random weights W ~ N(0, I/dim) beside one teacher.

    m ~ N(0, P/dim), and dim·q is chi-square with dim − 1 degrees of freedom, P = ``signal`` the
    teacher's squared norm. The cells are of one size, and what is narrower than one is spread over
    it; what is outside of the grid, a fifth at most, is spread over all of it, so that masses
    sum to one.

    Args:
        dim: of the weights.
        farthest: overlaps are in ±farthest.
        largest: squared norms are in (0, largest).
        overlap_cells: number of cells along m.
        norm_cells: number of cells along q.
        signal: squared norm of the teacher.

    >>> start = start_density(10)
    >>> dict(start.sizes), float(start.sum().round(12))
    ({'m': 90, 'q': 60}, 1.0)
    """
    d = _checks.integer("dim", dim, least=2)
    m = np.linspace(-1, 1, _checks.integer("overlap_cells", overlap_cells, least=4) + 1)
    m *= _checks.positive("farthest", farthest)
    q = np.linspace(0, 1, _checks.integer("norm_cells", norm_cells, least=4) + 1)
    q *= _checks.positive("largest", largest)
    first = np.diff(stats.norm.cdf(m, scale=np.sqrt(_checks.positive("signal", signal) / d)))
    mass = np.outer(first, np.diff(stats.chi2.cdf(d * q, d - 1)))
    if mass.sum() < LEAST_MASS:
        raise _checks.InputError(
            f"farthest={farthest!r} and largest={largest!r} are not allowed: farthest and largest "
            f"must hold {LEAST_MASS:.0%} of the law or more, and hold {mass.sum():.2g} of it"
        )
    centres = {"m": (m[1:] + m[:-1]) / 2, "q": (q[1:] + q[:-1]) / 2}
    return xr.DataArray(mass / mass.sum(), centres, ("m", "q"), name="mass")


@double_precision
def solve_density(
    flow: MeanField,
    init: xr.DataArray,
    time: Number = 10.0,
    *,
    points: WholeNumber = 21,
    times: Numbers | None = None,
) -> xr.Dataset:
    r"""Solve ∂ₜμ + ∂ₘ(μφₘ) + ∂_q(μφ_q) = 0 for one teacher and a fixed readout.

    Finite volumes: what leaves a cell enters its neighbour, so that mass is kept to rounding. Face
    values are linear with the minmod slope, taken from upwind; Heun's method with a Courant number
    below ½ keeps masses positive. The error is of second order in the cell where μ is smooth, of
    first order at maxima and where mass has gathered. Nothing passes the border: at q = 0 nothing
    moves across by itself, and elsewhere a warning says if mass has reached it.

    Args:
        flow: the mean field, of which ``readout`` must be fixed, ``spherical`` False and
            ``teacher_width`` 1.
        init: masses over the centres ``m`` and ``q`` of equal cells, such as
            :func:`start_density` gives; q starts at 0.
        time: duration in the slides' time, t/p.
        points: number of equally spaced times in the result.
        times: the times themselves, in place of ``time`` and ``points``.

    Returns:
        A Dataset with ``mass`` over time, m and q, and ``excess_risk`` over time.

    >>> flow = MeanField(teacher_width=1)
    >>> start = start_density(50, overlap_cells=30, norm_cells=30)
    >>> path = solve_density(flow, start, time=1.0, points=2)
    >>> path.mass.sum(("m", "q")).values.round(12).tolist()
    [1.0, 1.0]
    """
    grid, mass, times = _grid(flow, init), init.values, times_of(time, points, times)
    recorded = np.asarray(_record(flow.unit, grid, flow.targets(), jnp.asarray(mass), times))
    outer = recorded[:, [0, -1], :].sum(axis=(1, 2)) + recorded[:, :, -1].sum(axis=1)
    if np.max(outer) > LEAVING:
        warn(
            f"a share {np.max(outer):.2g} of the mass is in the outermost cells of m or in the last"
            " of q, where nothing can leave: start on a larger grid"
        )
    risks = [
        float(_excess(flow.unit, grid, flow.targets(), jnp.asarray(state))) for state in recorded
    ]
    data = {"mass": (("time", "m", "q"), recorded), "excess_risk": ("time", risks)}
    coords = {"time": times, "m": init.m.values, "q": init.q.values}
    attrs = {"kind": "mean-field density", "time_unit": "step * samples / (dim * width)"}
    return xr.Dataset(data, coords, attrs)


class Grid(NamedTuple):
    """Centres and sizes of the cells."""

    m: Float[Array | np.ndarray, " i"]
    q: Float[Array | np.ndarray, " j"]
    width: float | Float[Array, ""]
    height: float | Float[Array, ""]

    def cells(self) -> Particles:
        """One particle in the centre of each cell."""
        m, q = jnp.meshgrid(self.m, self.q, indexing="ij")
        return Particles(m.reshape(-1, 1), q.ravel())


def _grid(flow: Any, init: Any) -> Grid:
    if not isinstance(flow, MeanField):
        raise _checks.InputError(f"flow={flow!r} is not allowed: flow must be a MeanField")
    for name, wanted in (("teacher_width", 1), ("readout", "fixed"), ("spherical", False)):
        value = getattr(flow, name)
        if value != wanted:
            raise _checks.InputError(
                f"{name}={value!r} is not allowed for a density: {name} must be {wanted!r}"
            )
    if not isinstance(init, xr.DataArray) or init.dims != ("m", "q"):
        raise _checks.InputError(
            f"init={getattr(init, 'dims', init)!r} is not allowed: init must be a DataArray over "
            "m and q, such as start_density gives"
        )
    m, q = init.m.values, init.q.values
    width, height = (float(x[-1] - x[0]) / (len(x) - 1) for x in (m, q))
    even = [np.allclose(np.diff(x), h) for x, h in ((m, width), (q, height))]
    if not all(even) or not np.isclose(q[0], height / 2):
        raise _checks.InputError(
            "init is not allowed: its m and q must be centres of equal cells, those of q from 0 on"
        )
    mass = _checks.array("init", init.values, None)
    if np.any(mass < 0) or not np.isclose(mass.sum(), 1):
        raise _checks.InputError(
            f"init with the sum {mass.sum():g} and the least mass {mass.min():g} is not allowed: "
            "init must be masses >= 0 that sum to 1"
        )
    return Grid(m, q, width, height)


def _left(
    unit: Smooth, grid: Grid, targets: Targets, mass: Float[Array, "i j"]
) -> Float[Array, " q"]:
    return residual(unit, grid.cells(), mass.ravel(), targets)


@functools.partial(jax.jit, static_argnums=0)
def _excess(
    unit: Smooth, grid: Grid, targets: Targets, mass: Float[Array, "i j"]
) -> Float[Array, ""]:
    return jnp.asarray(targets.weights) @ _left(unit, grid, targets, mass) ** 2 / 2


def _speeds(
    unit: Smooth, grid: Grid, targets: Targets, mass: Float[Array, "i j"]
) -> tuple[Float[Array, "sides j"], Float[Array, "i levels"]]:
    """φₘ on the inner faces along m, and φ_q on those along q."""
    psi = _left(unit, grid, targets, mass)
    beside = Grid(grid.m[:-1] + grid.width / 2, grid.q, grid.width, grid.height).cells()
    above = Grid(grid.m, grid.q[:-1] + grid.height / 2, grid.width, grid.height).cells()
    sideways = jnp.asarray(velocity(unit, beside, psi, targets).M)[:, 0]
    upwards = jnp.asarray(velocity(unit, above, psi, targets).q)
    return sideways.reshape(-1, len(grid.q)), upwards.reshape(len(grid.m), -1)


def _gain(
    mass: Float[Array, "n k"], speed: Float[Array, "faces k"], size: Any
) -> Float[Array, "n k"]:
    """What cells gain per time through their faces along the first axis."""
    steps = jnp.diff(mass, axis=0)
    small = jnp.minimum(jnp.abs(steps[1:]), jnp.abs(steps[:-1]))
    slope = jnp.where(steps[1:] * steps[:-1] > 0, jnp.sign(steps[1:]) * small, 0.0)
    slope = jnp.pad(slope, ((1, 1), (0, 0)))
    before, after = (mass + slope / 2)[:-1], (mass - slope / 2)[1:]
    through = jnp.where(speed > 0, speed * before, speed * after) / size
    return -jnp.diff(jnp.pad(through, ((1, 1), (0, 0))), axis=0)


@functools.partial(jax.jit, static_argnums=0)
def _record(
    unit: Smooth,
    grid: Grid,
    targets: Targets,
    mass: Float[Array, "i j"],
    times: Float[Array | np.ndarray, " t"],
) -> Float[Array, "t i j"]:
    def rate(mass: Float[Array, "i j"]) -> tuple[Float[Array, "i j"], Float[Array, ""]]:
        sideways, upwards = _speeds(unit, grid, targets, mass)
        gain = _gain(mass, sideways, grid.width) + _gain(mass.T, upwards.T, grid.height).T
        most = jnp.max(jnp.abs(sideways)) / grid.width + jnp.max(jnp.abs(upwards)) / grid.height
        return gain, most

    def step(moving: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        mass, now, end = moving
        gain, most = rate(mass)
        span = jnp.minimum(COURANT / (most + 1e-300), end - now)
        ahead = mass + span * gain
        then = jnp.where(span < end - now, now + span, end)
        return (mass + ahead + span * rate(ahead)[0]) / 2, then, end

    def to(moving: tuple[Any, Any], end: Any) -> tuple[tuple[Any, Any], Any]:
        mass, now = moving
        mass, now, _ = jax.lax.while_loop(lambda x: x[1] < x[2], step, (mass, now, end))
        return (mass, now), mass

    return jax.lax.scan(to, (mass, jnp.zeros(())), jnp.asarray(times))[1]

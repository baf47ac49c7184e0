"""Where the effective dynamics comes to rest, and how stably."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._types import Index, State
from sgdlimits.dynamics.model import Model, Vector, as_state, coordinates
from sgdlimits.dynamics.stability import FLAT, linearisation, null_space, residual, spectrum_at
from sgdlimits.tasks.base import Task

RESIDUAL = 1e-9  # a root: every component of the drift is below this
APART = 1e-5  # roots closer than this are the same
NEWTON_STEPS = 100  # enough for the slow convergence to roots of high order
NEARBY = 0.02  # how far to look for other rest points around one
STRIDE, WALK_STEPS = 0.15, 60  # a walk along a set of rest points
MOST_GROUPS = 24  # do not try to connect more groups of rest points than these


@dataclass(frozen=True)
class FixedPoint:
    """A state at which the drift vanishes, alone or one of a connected set of them.

    Attributes:
        state: the rest point.
        residual: largest component of the drift there.
        eigenvalues: of the Jacobian in the limit's coordinates (on the sphere, along it), by
            falling real part.
        stability: "stable" if all directions decay, "unstable" if one grows, else "marginal": to
            first order nothing grows, but something is neutral, as along a ring of rest points.
        kernel_dimension: dimension of the manifold of rest points through it; 0 for a point.
        unstable_directions: a dict from statistic to component for every growing direction.
        representatives: other rest points found on the same connected set.
    """

    state: State
    residual: float
    eigenvalues: np.ndarray
    stability: str
    kernel_dimension: int
    unstable_directions: list[dict[str, float]]
    representatives: list[State]


@eqx.filter_jit
def polish(model: Model, starts: Float[Array, "runs n"]) -> Float[Array, "runs n"]:
    """Damped Gauss–Newton steps of least norm towards h = 0 from every start.

    Steps of least norm do not move along directions in which the drift is flat, so that a start
    near a ring of rest points ends on the ring, wherever it is closest.
    """

    def one(start: Vector) -> Vector:
        drift, project = model.branch(start)

        def residual(vector: Vector) -> Float[Array, " m"]:
            return jnp.concatenate([drift(vector), model.constraint(vector)])

        def step(_: Index, vector: Vector) -> Vector:
            slope, value = jax.jacfwd(residual)(vector), residual(vector)
            slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
            full = jnp.linalg.lstsq(slope, -value, rcond=1e-9)[0]
            shares = 0.5 ** jnp.arange(12)
            sizes = jax.vmap(lambda s: jnp.linalg.norm(residual(vector + s * full)))(shares)
            best = jnp.argmin(jnp.where(jnp.isfinite(sizes), sizes, jnp.inf))
            better = sizes[best] < jnp.linalg.norm(value)
            return jnp.where(better, vector + shares[best] * full, vector)

        return project(jax.lax.fori_loop(0, NEWTON_STEPS, step, project(start)))

    return jax.vmap(one)(starts)


@eqx.filter_jit
def _residuals(model: Model, vectors: Float[Array, "runs n"]) -> Float[Array, "runs m"]:
    return jax.vmap(lambda vector: residual(model, vector))(vectors)


def find(model: Model, starts: Float[Array, "runs n"]) -> list[FixedPoint]:
    """All rest points that the starts lead to, merged into points and connected sets."""
    roots: list[np.ndarray] = []
    polished = polish(model, starts)
    errors = np.asarray(jnp.max(jnp.abs(_residuals(model, polished)), axis=1))
    for vector, error in zip(np.asarray(polished), errors, strict=True):
        new = all(np.linalg.norm(vector - other) > APART for other in roots)
        if error < RESIDUAL and new and _is_state(model, vector):
            roots.append(vector)
    groups: dict[tuple[object, ...], list[np.ndarray]] = {}
    for vector in roots:
        singular = np.sum(np.linalg.svd(_slope(model, vector), compute_uv=False) < FLAT)
        signs = tuple(np.sign(np.where(np.abs(vector) > 1e-4, vector, 0)))
        # an isolated point is a group of its own
        key = (int(singular), signs) if singular else (0, len(groups))
        groups.setdefault(key, []).append(vector)
    found = [_describe(model, members) for members in _joined(model, list(groups.values()))]
    order = {"stable": 0, "marginal": 1, "unstable": 2}
    return sorted(found, key=lambda point: (order[point.stability], point.kernel_dimension))


def _joined(model: Model, groups: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
    """Join groups of roots with equal signs to larger sets, where a walk connects them."""
    sets: list[list[np.ndarray]] = []
    for group in groups:
        home = None
        if len(group) > 1 and len(groups) <= MOST_GROUPS:
            near = (members for members in sets if len(members) > 1)
            home = next((m for m in near if _connected(model, m[0], group[0])), None)
        if home is None:
            sets.append(list(group))
        else:
            home.extend(group)
    return sets


def _is_state(model: Model, vector: np.ndarray) -> bool:
    state = as_state(model.unravel(jnp.asarray(vector)))
    if "r2" in state:
        return bool(state["r2"] > -1e-9)
    return bool(np.min(np.linalg.eigvalsh(state["R"])) > -1e-9)


def _describe(model: Model, members: list[np.ndarray]) -> FixedPoint:
    vector = members[0]
    spectrum = spectrum_at(model, vector)
    names = coordinates(model.task)
    directions = [
        {n: float(x) for n, x in zip(names, column, strict=True) if abs(x) > 1e-6}
        for column in spectrum.growing.T
    ]
    return FixedPoint(
        state=as_state(model.unravel(jnp.asarray(vector))),
        residual=spectrum.residual,
        eigenvalues=spectrum.values,
        stability=spectrum.stability,
        kernel_dimension=_kernel_dimension(model, vector),
        unstable_directions=directions,
        representatives=[as_state(model.unravel(jnp.asarray(other))) for other in members[1:]],
    )


def _kernel_dimension(model: Model, vector: np.ndarray) -> int:
    """In how many directions there are rest points nearby: flatness alone is not enough."""
    flat = null_space(_slope(model, vector), FLAT)
    if flat.shape[1] == 0:
        return 0
    tried = jnp.asarray(vector + NEARBY * np.concatenate([flat.T, -flat.T]))
    moved = polish(model, tried)
    rest = np.asarray(jnp.max(jnp.abs(_residuals(model, moved)), axis=1)) < RESIDUAL
    shifts = (np.asarray(moved) - vector)[rest] / NEARBY
    return int(np.sum(np.linalg.svd(shifts, compute_uv=False) > 0.3)) if len(shifts) else 0


def _slope(model: Model, vector: np.ndarray) -> np.ndarray:
    _, jacobian, constraint = linearisation(model, jnp.asarray(vector))
    return np.concatenate([np.asarray(jacobian), np.asarray(constraint)])


def _connected(model: Model, start: np.ndarray, goal: np.ndarray) -> bool:
    """Walk from one rest point towards another along the flat directions, staying at rest."""
    here = start
    for _ in range(WALK_STEPS):
        way = goal - here
        if np.linalg.norm(way) < STRIDE / 2:
            return True
        flat = null_space(_slope(model, here), FLAT)
        along = flat @ (flat.T @ way)
        length = np.linalg.norm(along)
        if length < 1e-3 * np.linalg.norm(way):
            return False
        ahead = jnp.asarray(here + along * min(1.0, STRIDE / length))
        moved = polish(model, ahead[None])
        if float(jnp.max(jnp.abs(_residuals(model, moved)))) > RESIDUAL:
            return False
        here = np.asarray(moved[0])
    return False


def random_starts(task: Task, seed: int, count: int) -> State:
    """Random states with overlaps from microscopic to of order one."""
    generator = np.random.default_rng(seed)
    dims = [task.least_dim + 1, task.least_dim + 10, 1000]
    parts = [task.random_states(int(dims[i % 3]), seed, range(i, i + 1)) for i in range(count)]
    states = {name: np.concatenate([part[name] for part in parts]) for name in task.shapes}
    if "r2" in states:
        states["m"] = states["m"] + generator.uniform(-2, 2, size=count)
        states["r2"] = states["r2"] * generator.uniform(0, 2, size=count)
    return states

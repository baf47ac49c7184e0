"""Where the effective dynamics comes to rest, and how stably."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._types import State, StateLike, WholeNumber
from sgdlimits.dynamics.flow import follow, start_vectors
from sgdlimits.dynamics.model import Limit, Model, as_state
from sgdlimits.dynamics.rest.roots import are_roots, polish, polish_finely
from sgdlimits.dynamics.rest.sets import rest_sets
from sgdlimits.dynamics.rest.stability import FLAT, null_space, spectrum_at
from sgdlimits.dynamics.rest.walk import slope

LONG = 60.0  # how long random starts are followed to find where the dynamics takes them
NEARBY = 0.02  # how far to look for other rest points around one
ORDER = {"stable": 0, "marginal": 1, "unstable": 2}


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


class FixedPoints(list[FixedPoint]):
    """What a search found, stable ones first, and where it looked.

    Attributes:
        searched: in words, from where the search started and how many starts came to rest.
    """

    def __init__(self, points: Iterable[FixedPoint], searched: str):
        super().__init__(points)
        self.searched = searched

    def __repr__(self) -> str:
        if not self:
            return f"no fixed point found: {self.searched}"
        lines = [f"{len(self)} fixed points or sets: {self.searched}"]
        for point in self:
            entries = ", ".join(
                f"{name}={np.array2string(np.asarray(value), precision=4, suppress_small=True)}"
                for name, value in point.state.items()
            ).replace("\n", "")
            kind = (
                f"set of dimension {point.kernel_dimension}" if point.kernel_dimension else "point"
            )
            rate = point.eigenvalues[0].real if len(point.eigenvalues) else 0.0
            lines.append(f"  {point.stability:<8} {kind}, rate {rate:+.4g}: {entries}")
        return "\n".join(lines)


@double_precision
def fixed_points(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike | None = None,
    *,
    seed: WholeNumber = 0,
    count: WholeNumber = 64,
) -> FixedPoints:
    """Search for rest points from many starts; rings of them are reported as one object.

    Args:
        init: states to start from, along a leading axis; by default ``count`` random states
            of several sizes, and where the dynamics takes them.
        seed: of the random starts.
        count: how many random starts.

    Returns:
        A list, stable ones first; if it is empty, it says where the search looked.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> [point.stability for point in limit.fixed_points()]
    ['stable', 'stable', 'unstable', 'unstable']
    """
    if init is None:
        count = _checks.integer("count", count, least=1)
        seed = _checks.integer("seed", seed, least=0)
        vectors, _ = start_vectors(self.model, self.task, self.task.search_states(count, seed))
        ends, finished = follow(self.coarse, vectors, jnp.linspace(0.0, LONG, 2))
        vectors = jnp.concatenate([vectors, ends[finished, -1]])
        origin = f"{count} random states of seed {seed} and where they are at time {LONG:g}"
    else:
        vectors, _ = start_vectors(self.model, self.task, init)
        origin = "the starts that were given"
    return _search(self.model, self.coarse, np.asarray(vectors), origin)


def _search(model: Model, coarse: Model, starts: np.ndarray, origin: str) -> FixedPoints:
    """All rest points that the starts lead to, merged into points and connected sets.

    ``coarse`` is the model with fewer quadrature nodes, with which most of the search is done.
    """
    roots = polish_finely(model, coarse, starts)
    roots = roots[are_roots(model, roots)]
    searched = f"{len(roots)} of {len(starts)} starts came to rest; {origin}"
    sets = rest_sets(model, roots)[0] if len(roots) else []
    points = [describe(model, members) for members in sets]
    points.sort(key=lambda point: (ORDER[point.stability], point.kernel_dimension))
    return FixedPoints(points, searched)


def describe(model: Model, members: np.ndarray) -> FixedPoint:
    """A connected set of rest points, seen from the first of its members."""
    vector = members[0]
    spectrum = spectrum_at(model, vector)
    names = model.task.layout.coordinates
    directions = [
        {n: float(x) for n, x in zip(names, column, strict=True) if abs(x) > 1e-6}
        for column in spectrum.growing.T
    ]
    return FixedPoint(
        state=_state(model, vector),
        residual=spectrum.residual,
        eigenvalues=spectrum.values,
        stability=spectrum.stability,
        kernel_dimension=_kernel_dimension(model, vector),
        unstable_directions=directions,
        representatives=[_state(model, other) for other in members[1:]],
    )


def _state(model: Model, vector: np.ndarray) -> State:
    """A root as a state: rounding may have left r2 = -1e-100."""
    return as_state(model.unravel(model.retract(jnp.asarray(vector))))


def _kernel_dimension(model: Model, vector: np.ndarray) -> int:
    """In how many directions there are rest points nearby: flatness alone is not enough."""
    flat = null_space(slope(model, vector), FLAT)
    if flat.shape[1] == 0:
        return 0
    moved = polish(model, vector + NEARBY * np.concatenate([flat.T, -flat.T]))
    shifts = (moved - vector)[are_roots(model, moved)] / NEARBY
    return int(np.sum(np.linalg.svd(shifts, compute_uv=False) > 0.3)) if len(shifts) else 0

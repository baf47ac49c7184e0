"""Where the effective dynamics comes to rest, and how stably."""

from collections.abc import Iterable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from sgdlimits._types import State
from sgdlimits.dynamics.model import Model, as_state, coordinates
from sgdlimits.dynamics.rest_sets import rest_sets, slope
from sgdlimits.dynamics.roots import are_roots, polish, polish_finely
from sgdlimits.dynamics.stability import FLAT, null_space, spectrum_at

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


def find(model: Model, coarse: Model, starts: np.ndarray, origin: str) -> FixedPoints:
    """All rest points that the starts lead to, merged into points and connected sets.

    ``coarse`` is the model with fewer quadrature nodes, with which most of the search is done.
    """
    roots = polish_finely(model, coarse, starts)
    roots = roots[are_roots(model, roots)]
    searched = f"{len(roots)} of {len(starts)} starts came to rest; {origin}"
    sets = rest_sets(model, roots)[0] if len(roots) else []
    found = [describe(model, members) for members in sets]
    found.sort(key=lambda point: (ORDER[point.stability], point.kernel_dimension))
    return FixedPoints(found, searched)


def describe(model: Model, members: np.ndarray) -> FixedPoint:
    """A connected set of rest points, seen from the first of its members."""
    vector = members[0]
    spectrum = spectrum_at(model, vector)
    names = coordinates(model.task)
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

r"""Curves of rest points h(u; p) = 0, followed through their folds by pseudo-arclength.

With x = (u, position of p in its range), a step of length s along the unit tangent t predicts
x + s·t; Gauss–Newton steps of least norm then solve

    h(u; p) = 0,  constraint(u) = 0,  t · (x′ − x − s·t) = 0,

which is regular where p turns back. On a ring of rest points the equations have more solutions, of
which the one of least norm stays where it is along the ring: one member of it is followed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._compiled import compiled
from sgdlimits._newton import least_norm_step
from sgdlimits._types import Index
from sgdlimits.dynamics.branches.moving import MovingModel
from sgdlimits.dynamics.rest.stability import FLAT, residual

FIRST, LONGEST, SHORTEST = 0.01, 0.04, 1e-9  # lengths of steps; statistics are of order one
BLUR = 1e-3  # steps towards an end that are shorter than this are not worth a point of their own
STRAIGHT, BENT = 0.9985, 0.994  # cosines of turns: above, steps may grow; below, they fail
AT_BOUND = 1e-9  # closer to an end of the range than this is there
NEWTON_STEPS = 12
CONVERGED = 1e-13  # a Gauss–Newton step that is shorter than this is the last
SETTLED = 1e-9  # if it is longer than this, the steps did not converge: two curves are too close
RESIDUAL = 1e-9  # at rest: every component of the drift is below this
MOST_POINTS = 2000

Extended = Float[Array, " N"]  # statistics, and the position of the parameter in its range


class Solution(NamedTuple):
    """A rest point x = (u, position of p), its accuracy, and how the drift changes around it."""

    x: np.ndarray
    size: float  # largest component of the true drift
    change: float  # length of the last Gauss–Newton step
    margin: float  # least eigenvalue of R, or r2: not negative at a state
    slopes: np.ndarray  # singular values of ∂(h, constraint)/∂x, falling, with zeros for the rest
    directions: np.ndarray  # and the directions they belong to, as rows


class Point(NamedTuple):
    """A rest point on a curve of rest points, and the direction in which the curve goes on.

    ``slope`` is the least rate at which the drift changes in the directions across the curve (and
    across its rings): zero where another curve crosses.
    """

    x: np.ndarray
    tangent: np.ndarray
    slope: float


class Curve(NamedTuple):
    """Points in order; ``ends`` are why it stops: "range", "closed", "gone" or "long"."""

    points: list[Point]
    ends: tuple[str, str]


class Tracer:
    """Follows one curve of rest points of a family; ``kernel`` is the dimension of their rings."""

    def __init__(self, family: MovingModel, kernel: int):
        self.family = family
        self.kernel = kernel

    def solve(self, start: np.ndarray, guess: np.ndarray, across: np.ndarray) -> Solution | None:
        """The rest point near ``guess`` with across · (x − guess) = 0, on the branch of ``start``.

        None if there is none, or if it is not a state.
        """
        parts = _solve(self.family, *(jnp.asarray(array) for array in (start, guess, across)))
        x, size, change, margin, slopes, directions = (np.asarray(part) for part in parts)
        solution = Solution(x, float(size), float(change), float(margin), slopes, directions)
        at_rest = solution.size < RESIDUAL and solution.change < SETTLED
        blur = max(RESIDUAL, self.family.first.tolerance[0])  # as large as the error of the drift
        return solution if at_rest and solution.margin > -blur else None

    def start(self, x: np.ndarray) -> Point | None:
        """The rest point at this value of p, with the tangent along which rings stand still."""
        along_p = np.eye(len(x))[-1]
        solution = self.solve(x, x, along_p)
        # of all directions along which the drift stays zero, the one in which p moves fastest
        return None if solution is None else self._point(solution, along_p)

    def advance(self, point: Point, length: float) -> Point | None:
        """The next point at this distance; None if there is none or the curve bends too much."""
        guess = point.x + length * point.tangent
        solution = self.solve(point.x, guess, point.tangent)
        if solution is None or np.linalg.norm(solution.x - guess) > 0.5 * abs(length):
            return None
        after = self._point(solution, point.tangent)
        return after if after.tangent @ point.tangent > BENT else None

    def curve(self, x: np.ndarray) -> Curve:
        """Follow the curve through ``x`` both ways until it leaves the range, closes or ends."""
        first = self.start(x)
        if first is None:
            return Curve([], ("gone", "gone"))
        ahead, end = self._follow(first)
        if end == "closed":
            return Curve(ahead, (end, end))
        behind, begin = self._follow(first._replace(tangent=-first.tangent))
        turned = [point._replace(tangent=-point.tangent) for point in behind[:0:-1]]
        return Curve(turned + ahead, (begin, end))

    def _point(self, solution: Solution, along: np.ndarray) -> Point:
        flat = max(
            1 + self.kernel, int(np.sum(solution.slopes < FLAT * max(1.0, solution.slopes[0])))
        )
        kept = solution.directions[-flat:]
        tangent = (kept @ along) @ kept
        length = float(np.linalg.norm(tangent))
        tangent = tangent / length if length > FLAT else kept[-1]
        across = (
            solution.slopes[-2 - self.kernel] if len(solution.slopes) > 1 + self.kernel else np.inf
        )
        return Point(solution.x, tangent, float(across))

    def _follow(self, first: Point) -> tuple[list[Point], str]:
        points, length = [first], FIRST
        while len(points) < MOST_POINTS:
            point = points[-1]
            bound = float(point.tangent[-1] > 0)  # the end of the range that lies ahead
            if abs(bound - point.x[-1]) < AT_BOUND:
                return points, "range"
            last = self._at_bound(point, bound, length)
            if last is not None:
                return [*points, last], "range"
            after = self.advance(point, length)
            if after is None or not 0 <= after.x[-1] <= 1:
                length /= 2
                if length < SHORTEST:
                    return _thinned(points), "gone"
                continue
            points.append(after)
            if len(points) > 3 and self._between(point, after, first):
                return [*points[:-1], first], "closed"
            if after.tangent @ point.tangent > STRAIGHT:
                length = min(1.5 * length, LONGEST * max(1.0, float(np.linalg.norm(after.x))))
        return points, "long"

    def _at_bound(self, point: Point, bound: float, length: float) -> Point | None:
        """The point where the parameter leaves its range, if that is less than a step away."""
        away, speed = bound - point.x[-1], point.tangent[-1]
        if abs(away) > length * abs(speed):
            return None
        guess = point.x + point.tangent * away / speed
        solution = self.solve(point.x, guess, np.eye(len(guess))[-1])
        if solution is None or np.linalg.norm(solution.x - guess) > 0.5 * length:
            return None
        return self._point(solution, point.tangent)

    def _between(self, point: Point, after: Point, first: Point) -> bool:
        """Whether a step passed the first point, in the direction in which that was left."""
        way = after.x - point.x
        share = float((first.x - point.x) @ way / (way @ way))
        gap = float(np.linalg.norm(point.x + share * way - first.x))
        near = gap < 0.1 * float(np.linalg.norm(way))
        return 0 < share <= 1 and near and float(first.tangent @ after.tangent) > BENT


@compiled
def _solve(
    family: MovingModel, start: Extended, guess: Extended, across: Extended
) -> tuple[Array, ...]:
    def equations(x: Extended) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        model = family.at(x[-1])
        drift, _ = model.branch(start[:-1])
        value = jnp.concatenate([drift(x[:-1]), model.constraint(x[:-1])])
        return value, value

    def project(x: Extended) -> Extended:
        _, onto_domain = family.first.branch(start[:-1])
        return jnp.append(onto_domain(x[:-1]), x[-1])

    def step(now: _Iterate) -> _Iterate:
        slope, value = jax.jacfwd(equations, has_aux=True)(now.x)
        slope = jnp.nan_to_num(slope)
        below = jnp.append(value, across @ (now.x - guess))
        change = least_norm_step(jnp.concatenate([slope, across[None]]), below)
        return _Iterate(now.x + change, slope, jnp.linalg.norm(change), now.steps + 1)

    def unfinished(now: _Iterate) -> Array:
        return (now.change > CONVERGED) & (now.steps < NEWTON_STEPS)

    count = len(jax.eval_shape(equations, guess)[0])
    none = _Iterate(project(guess), jnp.zeros((count, len(guess))), jnp.asarray(jnp.inf), 0)
    last = jax.lax.while_loop(unfinished, step, none)
    x = project(last.x)
    _, values, directions = jnp.linalg.svd(last.slope, full_matrices=True)
    values = jnp.append(values, jnp.zeros(max(len(x) - len(values), 0)))
    size = jnp.max(jnp.abs(residual(family.at(x[-1]), x[:-1])))
    return x, size, last.change, family.first.margin(x[:-1]), values, directions


class _Iterate(NamedTuple):
    x: Array
    slope: Array  # where the last step began
    change: Array  # length of that step
    steps: Index


def _thinned(points: list[Point]) -> list[Point]:
    """Of the ever shorter steps towards an end, keep the last."""
    first, *between = points[:-1] or points
    last = points[-1]
    far = [point for point in between if np.linalg.norm(point.x - last.x) > BLUR]
    return [first, *far, last] if len(points) > 1 else points

"""Where the effective dynamics comes to rest, and how stably."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from sgdlimits import _checks
from sgdlimits._precision import double_precision
from sgdlimits._progress import progress
from sgdlimits._types import Number, State, StateLike, WholeNumber
from sgdlimits.dynamics.flow import follow, start_vectors
from sgdlimits.dynamics.model import Limit, Model, Table, as_state
from sgdlimits.dynamics.rest.roots import (
    RESIDUAL,
    SAME,
    are_near,
    are_roots,
    flat_dimensions,
    polish,
)
from sgdlimits.dynamics.rest.sets import in_same_set, one_per_signs, rest_sets
from sgdlimits.dynamics.rest.stability import FLAT, null_space, spectrum_at
from sgdlimits.dynamics.rest.symmetries import FAIR, Symmetry, images_of, symmetries
from sgdlimits.dynamics.rest.walk import slope

LONG = 60.0  # how long random starts are followed to find where the dynamics takes them
NEARBY = 0.02  # how far to look for other rest points around one
TOGETHER = 8  # starts at once where every drift is a sum over many nodes
QUIET = 4  # so many times in a row nothing new: a search that is not cheap is over
CLOSE = 0.02  # a start that ends closer than this to a rest point has come to it
ROUGH = 1e-3  # error of the drift that a search may have; roots are polished with another one
SHARP = 1e-5  # error of the drift at most where symmetries are looked for
EDGE = 1e-6  # eigenvalues of R below this are zero
GROWN = 1.05  # a distance that has grown by more has grown
ORDER = {"stable": 0, "marginal": 1, "unstable": 2}


@dataclass(frozen=True)
class FixedPoint:
    """A state at which the drift vanishes, alone or one of a connected set of them.

    Attributes:
        state: the rest point.
        residual: largest component of the drift there, by the rule that found it.
        error: of the drift there, by its own estimate; zero where expectations are exact.
        eigenvalues: of the Jacobian in the limit's coordinates (on the sphere, along it), by
            falling real part. Where the drift has no derivative, as where a neuron vanishes, and
            solutions leave that the Jacobian holds, the first is the rate at which they do.
        stability: "stable" if all directions decay, "unstable" if one grows, else "marginal": to
            first order nothing grows, but something is neutral, as along a ring of rest points.
        kernel_dimension: dimension of the manifold of rest points through it; 0 for a point.
        unstable_directions: a dict from statistic to component for every growing direction.
        representatives: other rest points found on the same connected set.
        orbit: a state of each of the points or sets that the symmetries of the task make of this
            one (neurons exchanged, signs changed), itself first.
    """

    state: State
    residual: float
    error: float
    eigenvalues: np.ndarray
    stability: str
    kernel_dimension: int
    unstable_directions: list[dict[str, float]]
    representatives: list[State]
    orbit: list[State]

    @property
    def multiplicity(self) -> int:
        """How many points or sets there are like this one, by symmetry."""
        return len(self.orbit)


class FixedPoints(list[FixedPoint]):
    """What a search found, stable ones first, and where it looked.

    Attributes:
        searched: in words, from where the search started, how many starts came to rest and how
            many did not, and why it ended.
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
            times = f"{point.multiplicity} × " if point.multiplicity > 1 else ""
            lines.append(f"  {point.stability:<8} {times}{kind}, rate {rate:+.4g}: {entries}")
        return "\n".join(lines)


@double_precision
def fixed_points(  # noqa: D417 - a method: self needs no word
    self: Limit,
    init: StateLike | None = None,
    *,
    seed: WholeNumber = 0,
    count: WholeNumber = 64,
    seconds: Number = 600.0,
) -> FixedPoints:
    """Search for rest points from many starts; rings of them are reported as one object.

    So are rest points that symmetries of the task make of one another: see ``orbit``. The search
    ends when several starts in a row lead to nothing new.

    Args:
        init: states to start from, along a leading axis; by default ``count`` random states
            of several sizes, and where the dynamics takes them.
        seed: of the random starts.
        count: how many random starts at most.
        seconds: no more starts are tried after this time.

    Returns:
        A list, stable ones first; if it is empty, it says where the search looked.

    >>> import sgdlimits as sl
    >>> limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=2, snr=2.0))
    >>> [(point.stability, point.multiplicity) for point in limit.fixed_points()]
    [('stable', 2), ('unstable', 1), ('unstable', 1)]
    """
    self.check_constant_step("fixed_points")
    seconds = _checks.positive("seconds", seconds)
    if init is None:
        count = _checks.integer("count", count, least=1)
        seed = _checks.integer("seed", seed, least=0)
        random, _ = start_vectors(self.model, self.task, self.task.search_states(count, seed))
        vectors = np.asarray(random)
        if Table(self.model).constraint(vectors[:1]).size == 0:
            vectors = np.concatenate([np.zeros_like(vectors[:1]), vectors])
        origin = f"zero and random states of seed {seed}, and where they are at time {LONG:g}"
    else:
        given, _ = start_vectors(self.model, self.task, init)
        vectors = np.asarray(given)
        origin = "the starts that were given"
    group = _symmetries(self)
    roots, words = _roots(self, vectors, group, seconds, follow_too=init is None)
    return _described(self, roots, group, f"{words}; {origin}")


def _symmetries(limit: Limit) -> list[Symmetry]:
    """Those of the task, found at two states in general position."""
    states = limit.task.search_states(2, seed=1)
    vectors = np.asarray(start_vectors(limit.model, limit.task, states)[0])
    model, _ = limit.suited(vectors, smooth=True, rtol=min(limit.rtol, SHARP))
    errors = np.concatenate([np.asarray(model.errors(u[None]).drift) for u in vectors])
    return symmetries(model, vectors, errors)


def _roots(
    limit: Limit,
    starts: np.ndarray,
    group: Sequence[Symmetry],
    seconds: float,
    *,
    follow_too: bool,
) -> tuple[np.ndarray, str]:
    """Zeros of the drift with few quadrature nodes, and in words how the search went."""
    begun = time.monotonic()
    model = limit.coarse
    if limit.nodes is None and not model.exact:
        model, _ = limit.suited(jnp.asarray(starts), smooth=True, rtol=ROUGH)
    roots, quiet, tried, lost, ending = np.zeros((0, starts.shape[1])), 0, 0, 0, ""
    known = roots
    with progress("searching rest points", len(starts)) as advance:
        together = len(starts) if model.exact else TOGETHER
        for first in range(0, len(starts), together):
            batch = starts[first : first + together]
            count = len(batch)
            if follow_too:
                ends, finished = follow(model, batch, np.array([0.0, LONG]))
                arrived = ends[finished, -1]
                fresh = arrived[~are_near(known, arrived, SAME)]
                tried += len(arrived) - len(fresh)
                batch = np.concatenate([batch, fresh])
            polished = polish(model, batch, known)
            at_rest = are_roots(model, polished)
            found = polished[at_rest & ~are_near(known, polished, SAME)]
            new = _news(model, known, found)
            for root in new:
                if not are_near(known, root[None], SAME)[0]:
                    known = np.concatenate([known, images_of(group, root, SAME)])
            # a cusp of the drift, as where all weights vanish, is reached by the flow alone
            lost += int(np.sum(~are_near(known, polished[~at_rest], CLOSE)))
            tried, roots = tried + len(batch), np.concatenate([roots, found])
            quiet = 0 if len(new) else quiet + 1
            advance(count)
            left = first + together < len(starts)
            if left and follow_too and not model.exact and quiet >= QUIET:
                ending = ", and it ended since nothing new appeared"
                break
            if left and time.monotonic() - begun > seconds:
                ending = f", and it ended after {seconds:g} seconds"
                break
    words = f"{tried - lost} of {tried} starts came to rest, {lost} did not{ending}"
    return roots, words


def _news(model: Model, known: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Those found that are not on a ring of which points are known."""
    if len(found) == 0 or len(known) == 0:
        return found
    on_ring = flat_dimensions(model, found) > 0
    old = [np.any(in_same_set(known, root, ring=True)) for root in found]
    return found[~(on_ring & np.array(old))]


def _described(
    limit: Limit, roots: np.ndarray, group: Sequence[Symmetry], searched: str
) -> FixedPoints:
    """Points and connected sets, one of each orbit, by a rule that is accurate there.

    Images of a ring may lie on it as well as on others like it: they join the rest points that were
    found, and are sorted with them.
    """
    model = limit.coarse
    if len(roots) and not model.exact:
        model, _ = limit.suited(jnp.asarray(roots), smooth=True)
        if limit.nodes is None:
            model = model.with_slopes(jnp.asarray(roots), limit.rtol)
        roots = polish(model, roots)
        roots = roots[are_roots(model, roots)]
    if len(roots) == 0:
        return FixedPoints([], searched)
    on_ring = flat_dimensions(model, roots) > 0
    images = [images_of(group, root, SAME) for root in one_per_signs(roots[on_ring])]
    more = one_per_signs(np.concatenate(images)) if images else roots[:0]
    roots = np.concatenate([roots, more])
    sets, home = rest_sets(model, roots, np.append(on_ring, np.ones(len(more), bool)))
    points, done = [], set()
    for number, members in enumerate(sets):
        if number in done:
            continue
        point = _followed(model, members[0], describe(model, members))
        # a symmetry that holds nearly may take a rest point elsewhere
        exact = [g for g in group if _rests(model, g(members[0]), point)]
        orbit = {number: members[0]}  # by number of the set, a new one if it was not found
        for image in images_of(exact, members[0], SAME)[1:]:
            there = _home(image, roots, home, ring=len(members) > 1)
            orbit.setdefault(-len(orbit) if there is None else there, image)
        done |= set(orbit)
        points.append(replace(point, orbit=[_state(model, u) for u in orbit.values()]))
    points.sort(key=lambda point: (ORDER[point.stability], point.kernel_dimension))
    return FixedPoints(points, searched)


def _rests(model: Model, vector: np.ndarray, like: FixedPoint) -> bool:
    """Whether the drift vanishes there as far as it does at a rest point that was found."""
    size = np.max(np.abs(Table(model).drift(vector[None])))
    return bool(size < RESIDUAL + 10 * like.residual + FAIR * like.error)


def _home(image: np.ndarray, roots: np.ndarray, home: np.ndarray, *, ring: bool) -> int | None:
    """The set that an image of a rest point is in, if it is one that was found."""
    alike = in_same_set(roots, image, ring=ring)
    return int(home[np.argmax(alike)]) if np.any(alike) else None


def describe(model: Model, members: np.ndarray) -> FixedPoint:
    """A connected set of rest points, seen from the first of its members."""
    vector = members[0]
    spectrum = spectrum_at(model, vector)
    directions = [_components(model, column) for column in spectrum.growing.T]
    state = _state(model, vector)
    return FixedPoint(
        state=state,
        residual=spectrum.residual,
        error=float(np.max(model.errors(vector[None]).drift)),
        eigenvalues=spectrum.values,
        stability=spectrum.stability,
        kernel_dimension=_kernel_dimension(model, vector),
        unstable_directions=directions,
        representatives=[_state(model, other) for other in members[1:]],
        orbit=[state],
    )


def _followed(model: Model, vector: np.ndarray, point: FixedPoint) -> FixedPoint:
    """The point, if starts beside it come back to it.

    At the edge of the states, as where a neuron vanishes, a drift may have no derivative, and one
    that decays along all lines through the point may still lead away from it.
    """
    table = Table(model)
    edge = not model.exact and table.margin(vector[None])[0] < EDGE
    if point.stability != "stable" or not edge:
        return point
    beside = np.random.default_rng(0).normal(size=(TOGETHER, len(vector))) * EDGE**0.5
    starts = table.retract(vector + beside * (1 + np.abs(vector)))
    first, _ = follow(model, starts, np.array([0.0, LONG]))
    second, finished = follow(model, first[:, -1], np.array([0.0, LONG]))
    before, after = (part[:, -1] - vector for part in (first, second))
    sizes = np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)
    relative, absolute = model.tolerance  # of the solver: what has decayed below it only trembles
    floor = max(RESIDUAL, FAIR * (absolute + relative * float(np.linalg.norm(vector))))
    grown = finished & (sizes[1] > GROWN * sizes[0]) & (sizes[1] > floor)
    if not np.any(grown):
        return point
    rates = np.log(sizes[1][grown] / sizes[0][grown]) / LONG
    values = np.concatenate([[np.max(rates)], point.eigenvalues[1:]])
    way = after[grown][np.argmax(rates)] / sizes[1][grown][np.argmax(rates)]
    return replace(
        point,
        eigenvalues=values,
        stability="unstable",
        unstable_directions=[_components(model, way)],
    )


def _components(model: Model, direction: np.ndarray) -> dict[str, float]:
    names = model.task.layout.coordinates
    return {n: float(x) for n, x in zip(names, direction, strict=True) if abs(x) > 1e-6}


def _state(model: Model, vector: np.ndarray) -> State:
    """A root as a state: rounding may have left r2 = -1e-100."""
    return as_state(model.task.layout.unravel(Table(model).retract(vector[None])[0]))


def _kernel_dimension(model: Model, vector: np.ndarray) -> int:
    """In how many directions there are rest points nearby: flatness alone is not enough."""
    flat = null_space(slope(model, vector), FLAT)
    if flat.shape[1] == 0:
        return 0
    moved = polish(model, vector + NEARBY * np.concatenate([flat.T, -flat.T]))
    shifts = (moved - vector)[are_roots(model, moved)] / NEARBY
    return int(np.sum(np.linalg.svd(shifts, compute_uv=False) > 0.3)) if len(shifts) else 0

"""From many rest points to the connected sets of them: points, and rings of points.

Rest points with the same signs on which the drift is flat are taken to lie on one ring. Rings meet
where the signs change: in a smooth drift anywhere, so that a walk must find the way; in the drift
of a noiseless ReLU network where a neuron is zero, so that switching neurons off finds it.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np

from sgdlimits.dynamics.model import Model
from sgdlimits.dynamics.rest.roots import are_roots, flat_dimensions, polish
from sgdlimits.dynamics.rest.walk import STRIDE, connected, traced

APART = 1e-5  # roots with the same signs that are closer than this are the same
ROUNDING = 1e-9  # whatever their signs
ZERO = 1e-3  # statistics below this have no sign; a root of third order is only known to 1e-4
SAME = 1e-3  # rest points that a symmetry relates are known to the error of the rule only
MOST_MEMBERS = 32  # kept of a set; more say nothing new
MOST_GROUPS = 24  # do not try to connect more groups of rest points than these by walks
NUDGE = 1e-2  # how far to switch a neuron on again

Signs = tuple[float, ...]


def rest_sets(
    model: Model, roots: np.ndarray, on_ring: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Distinct members of every connected set of roots, and for each root the set that it is in.

    Args:
        model: whose rest points they are.
        roots: the rest points.
        on_ring: at which of them the drift is flat in some direction.
    """
    groups: list[np.ndarray] = []
    labels = np.full(len(roots), -1)
    rings: dict[int, Signs] = {}
    for signs, indices in _by_signs(roots).items():
        kept = _distinct(roots[indices])
        distinct, flat = roots[indices][kept], on_ring[indices][kept]
        own = []
        if np.any(flat):
            rings[len(groups)] = signs
            own.append(len(groups))
            groups.append(distinct[flat])
        for point in distinct[~flat]:
            own.append(_known(groups, rings, point))  # signs differ by rounding: ZERO is no gap
            if own[-1] == len(groups):
                groups.append(point[None])
        for index in indices:  # nearest member decides
            gaps = [_gap(groups[number], roots[index]) for number in own]
            labels[index] = own[int(np.argmin(gaps))]
    if model.motion == "sliding":
        partition = _by_faces(model, groups, rings)
    else:
        partition = _by_walks(model, groups, rings)
    # the interior of a set first: its faces, where neurons are zero, are special
    for part in partition:
        part.sort(key=lambda g: (-np.count_nonzero(_signs(groups[g][0])), -len(groups[g])))
    members = [np.concatenate([groups[g] for g in part]) for part in partition]
    home = {g: number for number, part in enumerate(partition) for g in part}
    return members, np.array([home[label] for label in labels], dtype=int)


def on_rings(model: Model, roots: np.ndarray) -> np.ndarray:
    """At which roots the drift is flat in some direction; many of them may be the same."""
    flat = np.zeros(len(roots), bool)
    for indices in _by_signs(roots).values():
        own = roots[indices]
        kept = _distinct(own)
        flags = flat_dimensions(model, own[kept]) > 0
        nearest = np.linalg.norm(own[:, None] - own[kept], axis=2).argmin(axis=1)
        flat[indices] = flags[nearest]
    return flat


def in_same_set(members: np.ndarray, vector: np.ndarray, *, ring: bool) -> np.ndarray:
    """Which of the rest points that are known are in the same set as another one.

    On a ring, points with the same signs are taken to lie together, as in ``rest_sets``.
    """
    gaps = np.linalg.norm(members - vector, axis=1)
    if not ring:
        return gaps < SAME * (1 + float(np.max(np.abs(vector))))
    return (gaps < STRIDE) | np.all(_sign(members) == _sign(vector), axis=1)


def one_per_signs(vectors: np.ndarray) -> np.ndarray:
    """The first vector of every pattern of signs."""
    return vectors[[indices[0] for indices in _by_signs(vectors).values()]]


def _by_signs(vectors: np.ndarray) -> dict[Signs, list[int]]:
    """Numbers of the vectors with each pattern of signs."""
    result: dict[Signs, list[int]] = defaultdict(list)
    for index, vector in enumerate(vectors):
        result[_signs(vector)].append(index)
    return result


def _signs(vector: np.ndarray) -> Signs:
    return tuple(_sign(vector).tolist())


def _sign(vectors: np.ndarray) -> np.ndarray:
    return np.sign(np.where(np.abs(vectors) > ZERO, vectors, 0.0))


def _distinct(vectors: np.ndarray) -> np.ndarray:
    """Numbers of the first few of them that are apart."""
    kept: list[int] = []
    left = np.arange(len(vectors))
    while len(left) and len(kept) < MOST_MEMBERS:
        kept.append(int(left[0]))
        left = left[np.linalg.norm(vectors[left] - vectors[left[0]], axis=1) > APART]
    return np.array(kept)


def _known(groups: list[np.ndarray], rings: Collection[int], point: np.ndarray) -> int:
    """The number of the group that is this point, a new one if there is none."""
    single = (number for number in range(len(groups)) if number not in rings)
    return next((n for n in single if _gap(groups[n], point) < ROUNDING), len(groups))


def _gap(members: np.ndarray, vector: np.ndarray) -> float:
    return float(np.min(np.linalg.norm(members - vector, axis=1)))


class _Partition:
    """Sets that are joined one by one."""

    def __init__(self) -> None:
        self.parent: dict[Hashable, Hashable] = {}

    def find(self, key: Hashable) -> Hashable:
        while (above := self.parent.setdefault(key, key)) != key:
            key = above
        return key

    def join(self, one: Hashable, other: Hashable) -> None:
        self.parent[self.find(other)] = self.find(one)

    def parts(self, keys: Iterable[int]) -> list[list[int]]:
        parts: dict[Hashable, list[int]] = defaultdict(list)
        for key in keys:
            parts[self.find(key)].append(key)
        return list(parts.values())


# --- noiseless ReLU networks ----------------------------------------------------------------------


def _by_faces(model: Model, groups: list[np.ndarray], rings: dict[int, Signs]) -> list[list[int]]:
    """Join what shares a face: rest points at which one more neuron is zero.

    A ring ends where one of its neurons reaches zero. The rest point there is also the end of other
    rings, on which this neuron has another sign, and may have been found as a point of its own.
    """
    neurons = model.units
    partition = _Partition()
    todo = {signs: groups[number][0] for number, signs in rings.items()}
    for number, signs in rings.items():
        partition.join(signs, number)
    points = [number for number in range(len(groups)) if number not in rings]
    known = set(todo)
    while todo:
        balanced = polish(model, np.array([_balanced(u, neurons) for u in todo.values()]))
        pairs = [
            (signs, u, own)
            for signs, u in zip(todo, balanced, strict=True)
            for own in neurons
            if _signs(u) == signs and _is_on(u[own])
        ]
        todo = {}
        if not pairs:
            break
        faces = polish(model, np.array([_without(u, own) for _, u, own in pairs]))
        nudged = faces + NUDGE * (np.array([u for _, u, _ in pairs]) - faces)
        back = polish(model, nudged)
        at_rest = are_roots(model, faces) & are_roots(model, back)
        for (signs, u, own), face, near, ok in zip(pairs, faces, back, at_rest, strict=True):
            close = np.linalg.norm(near - face) < 5 * NUDGE * np.linalg.norm(u - face)
            if not (ok and close and _is_on(near[own])):
                continue  # this neuron cannot be switched off without leaving the rest points
            edge = _signs(face)
            partition.join(signs, edge)
            for number in points:
                if _gap(groups[number], face) < APART:
                    partition.join(edge, number)
            if edge not in known:
                known.add(edge)
                todo[edge] = face
    return partition.parts(range(len(groups)))


def _is_on(own: np.ndarray) -> bool:
    return bool(np.max(np.abs(own)) > ZERO)


def _balanced(vector: np.ndarray, neurons: Sequence[np.ndarray]) -> np.ndarray:
    """All neurons that are on with equal norms: then none of them is about to be lost."""
    sizes = np.array([np.linalg.norm(vector[own]) for own in neurons])
    result = vector.copy()
    for own, size in zip(neurons, sizes, strict=True):
        if _is_on(vector[own]):
            result[own] *= np.max(sizes) / size
    return result


def _without(vector: np.ndarray, own: np.ndarray) -> np.ndarray:
    result = vector.copy()
    result[own] = 0.0
    return result


# --- smooth drifts --------------------------------------------------------------------------------


def _by_walks(model: Model, groups: list[np.ndarray], rings: dict[int, Signs]) -> list[list[int]]:
    """Join what lies on one curve of rest points; larger sets where a walk connects them."""
    partition = _Partition()
    long = [number for number in rings if len(groups[number]) > 1]
    if len(groups) > MOST_GROUPS:
        return partition.parts(range(len(groups)))
    for position, number in enumerate(long):
        if any(partition.find(number) == partition.find(other) for other in long[:position]):
            continue  # it is on a curve that was walked
        curve = traced(model, groups[number][0])
        for other in rings:
            if other != number and _gap(curve, groups[other][0]) < STRIDE:
                partition.join(number, other)
        if len(curve) > 1:
            continue
        for other in long[:position]:
            apart = partition.find(number) != partition.find(other)
            if apart and connected(model, groups[other][0], groups[number][0]):
                partition.join(other, number)
    return partition.parts(range(len(groups)))

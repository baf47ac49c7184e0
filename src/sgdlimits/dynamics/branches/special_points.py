"""Where along a curve of rest points something happens: folds, branch points, Hopf points, ends."""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from sgdlimits.dynamics.branches.continuation import Curve, Point, Tracer
from sgdlimits.dynamics.rest.stability import FLAT, Spectrum, flat_below, spectrum_at

ACCURACY = 1e-10  # of a place along the curve; at a fold the parameter's error is its square
GAP = 1e-3  # on both sides of a crossing, this is far enough from it
SAME = 1e-4  # closer than this along the curve, two events are one
CROSSED = 1e-5  # a slope below this is zero: another curve crosses


class Examined(NamedTuple):
    """A point of a curve, its linearisation, and what happens there, "" if nothing does."""

    point: Point
    spectrum: Spectrum
    kind: str


class _LostError(Exception):
    """The curve was not found between two of its points."""


def examine(tracer: Tracer, curve: Curve) -> list[Examined]:
    """The points of a curve with their stability, and in between them the points that are special.

    - "fold": the curve turns back in p, whose velocity along it changes sign;
    - "branch": a real eigenvalue passes zero, or p turns back where the drift's slope is singular
      also in the direction of p (a pitchfork, seen from its prongs): another curve crosses;
    - "hopf": a pair of eigenvalues crosses the imaginary axis;
    - "end": the curve ends inside the range, at the edge of the states or at a jump of the drift.
    """
    ordinary = [Examined(point, _spectrum(tracer, point), "") for point in curve.points]
    examined: list[Examined] = []
    for before, after in itertools.pairwise(ordinary):
        examined += [before, *_events(tracer, before, after)]
    examined += ordinary[-1:]
    for position, end in zip((0, -1), curve.ends, strict=True):
        if examined and end == "gone":
            examined[position] = examined[position]._replace(kind="end")
    return examined


def _spectrum(tracer: Tracer, point: Point) -> Spectrum:
    # with a Python number the model's numbers stay weakly typed, as in the search: one compilation
    return spectrum_at(tracer.family.at(float(point.x[-1])), point.x[:-1])


def _events(tracer: Tracer, before: Examined, after: Examined) -> list[Examined]:
    start = before.point
    length = float((after.point.x - start.x) @ start.tangent)

    def point_at(distance: float) -> Point:
        point = tracer.advance(start, distance) if distance > 0 else start
        return _bridge(tracer, start, distance) if point is None else point

    def rate_at(distance: float, index: int) -> float:
        return float(_rates(tracer, _spectrum(tracer, point_at(distance))).real[index])

    events: dict[float, str] = {}
    if start.tangent[-1] * after.point.tangent[-1] < 0:
        where = _root(lambda s: float(point_at(s).tangent[-1]), length)
        if where is not None:
            events[where] = "branch" if point_at(where).slope < CROSSED else "fold"
    growing = sorted(_growing(tracer, end.spectrum) for end in (before, after))
    for index in range(*growing):
        where = _root(lambda s: rate_at(s, index), length)
        if where is not None and all(abs(where - other) > SAME for other in events):
            rate = _rates(tracer, _spectrum(tracer, point_at(where)))[index]
            events[where] = "hopf" if abs(rate.imag) > FLAT else "branch"
    points = {where: point_at(where) for where in sorted(events)}
    return [Examined(p, _spectrum(tracer, p), events[where]) for where, p in points.items()]


def _bridge(tracer: Tracer, start: Point, distance: float) -> Point:
    """The point at a distance where two curves cross and Newton's method fails.

    By a cubic from one side to the other; its error is of fourth order in the gap.
    """
    sides = [tracer.advance(start, distance + side * GAP) for side in (-1, 1)]
    if None in sides:
        raise _LostError
    before, after = (side for side in sides if side is not None)
    # the distance is measured along the tangent at the start
    ends = [side.tangent / (side.tangent @ start.tangent) for side in (before, after)]
    x = (before.x + after.x) / 2 + GAP * (ends[0] - ends[1]) / 4
    way = 3 * (after.x - before.x) / (4 * GAP) - (ends[0] + ends[1]) / 4
    return Point(x, way / np.linalg.norm(way), slope=0.0)


def _root(function: Callable[[float], float], length: float) -> float | None:
    try:
        return float(brentq(function, 0.0, length, xtol=ACCURACY))
    except (_LostError, ValueError):  # ValueError: no change of sign
        return None


def _rates(tracer: Tracer, spectrum: Spectrum) -> np.ndarray:
    """Eigenvalues by falling real part, without the zeros that belong to a ring."""
    return np.delete(spectrum.values, np.argsort(np.abs(spectrum.values))[: tracer.kernel])


def _growing(tracer: Tracer, spectrum: Spectrum) -> int:
    rates = _rates(tracer, spectrum)
    return int(np.sum(rates.real > flat_below(rates)))

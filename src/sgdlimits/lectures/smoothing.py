"""Estimators that look at near points only, on drawn data: kernels with a pole, and neighbours."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from scipy.spatial import KDTree

from sgdlimits import _checks, results
from sgdlimits._types import Matrix, Number, Numbers, WholeNumber
from sgdlimits.lectures._sizes import affordable


@dataclass(frozen=True, eq=False)
class NadarayaWatson:
    """The weighted mean of labels within h, weights ‖x − X_i‖^(−a): it interpolates its data.

        f(x) = Σ_i Y_i w_i/Σ_i w_i,  w_i = (r/‖x − X_i‖)^a,  r the distance to the nearest point

    so that no weight is infinite, however near a point is; at a point the value is its label, the
    mean of labels if there are several, and where no point is within h it is 0.

    Args:
        points: X, one per row.
        values: their labels Y.
        bandwidth: h.
        exponent: a, in (0, d/2).

    >>> smooth = NadarayaWatson([[0.0], [1.0]], [1.0, 3.0], bandwidth=2.0, exponent=0.4)
    >>> smooth([[0.0], [0.5], [1e-300], [9.0]])
    array([1., 2., 1., 0.])
    """

    points: Matrix
    values: Numbers
    bandwidth: Number
    exponent: Number
    _tree: KDTree = field(init=False, repr=False)
    _labels: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        points, labels = _data(self.points, self.values)
        object.__setattr__(self, "_tree", KDTree(points))
        object.__setattr__(self, "_labels", labels)
        _checks.positive("bandwidth", self.bandwidth)
        _exponent(self.exponent, points.shape[1])

    def __call__(self, x: Matrix) -> np.ndarray:
        """The estimate at each row of x."""
        queries = _queries(x, self._tree.m)
        near = self._tree.query_ball_point(queries, self.bandwidth)
        estimates = np.zeros(len(queries))
        for row, (query, indices) in enumerate(zip(queries, near, strict=True)):
            if indices:
                distances = np.linalg.norm(self._tree.data[indices] - query, axis=1)
                estimates[row] = _weighted(distances, self._labels[indices], self.exponent)
        return estimates


@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """The mean of the labels of the k nearest points.

    Args:
        points: X, one per row.
        values: their labels Y.
        neighbours: k, at most the number of points.

    >>> NearestNeighbours([[0.0], [1.0], [5.0]], [1.0, 3.0, 0.0], neighbours=2)([[0.4]])
    array([2.])
    """

    points: Matrix
    values: Numbers
    neighbours: WholeNumber
    _tree: KDTree = field(init=False, repr=False)
    _labels: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        points, labels = _data(self.points, self.values)
        object.__setattr__(self, "_tree", KDTree(points))
        object.__setattr__(self, "_labels", labels)
        _neighbours(self.neighbours, len(points))

    def __call__(self, x: Matrix) -> np.ndarray:
        """The estimate at each row of x."""
        queries = _queries(x, self._tree.m)
        _, near = self._tree.query(queries, k=np.arange(1, int(self.neighbours) + 1))
        return np.asarray(self._labels[near].mean(axis=1))


def kernel_errors(
    dim: WholeNumber,
    samples: WholeNumber,
    bandwidths: Numbers,
    *,
    exponent: Number,
    smoothness: Number = 1.0,
    noise: Number = 1.0,
    runs: WholeNumber = 1,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Squared errors of :class:`NadarayaWatson` at the cusp of ‖x‖^β, where it has a hard time.

    Points are uniform in the unit ball around the cusp, labels have Gaussian noise.

    Args:
        dim: d.
        samples: n.
        bandwidths: h, the same data for all.
        exponent: a, in (0, d/2).
        smoothness: β, in (0, 1].
        noise: variance of the labels.
        runs: independent data sets.
        seed: run i is the same for any number of runs.

    Returns:
        ``error`` over run and bandwidth.

    >>> kernel_errors(1, 50, [0.1, 0.3], exponent=0.2, runs=4).error.shape
    (4, 2)
    """
    d = _checks.integer("dim", dim, least=1)
    a = _exponent(exponent, d)
    widths = _checks.array("bandwidths", bandwidths, (len(bandwidths),))
    if np.any(widths <= 0):
        raise _checks.InputError(
            f"bandwidths={_checks.shown(widths)} is not allowed: bandwidths must be positive"
        )

    def at_cusp(distances: np.ndarray, labels: np.ndarray) -> list[float]:
        within = [distances <= width for width in widths]
        return [
            _weighted(distances[near], labels[near], a) if near.any() else 0.0 for near in within
        ]

    size: dict[str, Any] = {"dim": d, "samples": samples, "exponent": a}
    return _errors(at_cusp, {"bandwidth": widths}, size, smoothness, noise, runs, seed)


def neighbour_errors(
    dim: WholeNumber,
    samples: WholeNumber,
    neighbours: Numbers,
    *,
    smoothness: Number = 1.0,
    noise: Number = 1.0,
    runs: WholeNumber = 1,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Squared errors of :class:`NearestNeighbours`, as :func:`kernel_errors`, over ``neighbours``.

    >>> neighbour_errors(1, 50, [1, 10], runs=4).error.shape
    (4, 2)
    """
    n = _checks.integer("samples", samples, least=1)
    counts = np.array([_neighbours(k, n) for k in neighbours])

    def at_cusp(distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
        sums = np.cumsum(labels[np.argsort(distances)])
        return np.asarray(sums[counts - 1] / counts)

    size = {"dim": _checks.integer("dim", dim, least=1), "samples": n}
    return _errors(at_cusp, {"neighbours": counts}, size, smoothness, noise, runs, seed)


def _errors(
    estimate: Callable[[np.ndarray, np.ndarray], Any],
    along: dict[str, np.ndarray],
    size: dict[str, Any],
    smoothness: Number,
    noise: Number,
    runs: WholeNumber,
    seed: WholeNumber,
) -> xr.Dataset:
    """Squared estimates at 0, the value at the cusp, over run and what the estimate is along."""
    beta = _checks.positive("smoothness", smoothness)
    if beta > 1:
        raise _checks.InputError(
            f"smoothness={smoothness!r} is not allowed: smoothness must lie in (0, 1]"
        )
    deviation = np.sqrt(_checks.nonnegative("noise", noise))
    n = _checks.integer("samples", size["samples"], least=1)
    count = _checks.integer("runs", runs, least=1)
    affordable(samples=n, dim=size["dim"])
    rows = []
    for run in range(count):
        rng = np.random.default_rng([_checks.integer("seed", seed, least=0), run])
        distances = np.linalg.norm(_ball(rng, n, size["dim"]), axis=1)
        labels = distances**beta + deviation * rng.standard_normal(n)
        rows.append(np.square(estimate(distances, labels)))
    (name,) = along
    coords = {"run": np.arange(count), **along}
    attrs = {"kind": "smoothing", **size, "smoothness": beta, "noise": noise, "seed": seed}
    return results.build({"error": rows}, {"error": ("run", name)}, coords, attrs)


def _ball(rng: np.random.Generator, samples: int, dim: int) -> np.ndarray:
    """Points uniform in the unit ball."""
    directions = rng.standard_normal((samples, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.random((samples, 1)) ** (1 / dim)


def _weighted(distances: np.ndarray, values: np.ndarray, exponent: float) -> float:
    nearest = distances.min()
    if nearest == 0:
        return float(values[distances == 0].mean())
    weights = (nearest / distances) ** exponent
    return float(weights @ values / weights.sum())


def _data(points: Matrix, values: Numbers) -> tuple[np.ndarray, np.ndarray]:
    X = _checks.array("points", points, None)
    if X.ndim != 2 or X.size == 0:
        raise _checks.InputError(
            f"points has shape {X.shape}, which is not allowed: points must be a matrix with a row "
            "for each point"
        )
    return X, _checks.array("values", values, (len(X),))


def _queries(x: Matrix, dim: int) -> np.ndarray:
    return _checks.array("x", x, (len(x), dim))


def _neighbours(value: WholeNumber, samples: int) -> int:
    k = _checks.integer("neighbours", value, least=1)
    if k > samples:
        raise _checks.InputError(
            f"neighbours={value!r} is not allowed: neighbours must be at most {samples}, the "
            "number of points"
        )
    return k


def _exponent(value: Number, dim: int) -> float:
    a = _checks.positive("exponent", value)
    if not a < dim / 2:
        raise _checks.InputError(
            f"exponent={value!r} is not allowed: exponent must lie in (0, {dim / 2:g}), half of "
            "the dimension, or the nearest point alone decides"
        )
    return a

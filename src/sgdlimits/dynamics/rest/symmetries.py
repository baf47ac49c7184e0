"""Symmetries of a drift: neurons or anchors exchanged, signs changed, found by trying them."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sgdlimits.dynamics.model import Model, Table
from sgdlimits.tasks.layout import Layout

FAIR = 8.0  # so many times the error of the drift is no difference
EXACT = 1e-9  # relative to the drift, where that is exact
MOST_IMAGES = 2**13  # of one rest point

Arrays = Mapping[str, np.ndarray]


class Symmetry(NamedTuple):
    """A map of the flat statistics: entry i of the image is sign[i] · u[source[i]]."""

    source: np.ndarray
    sign: np.ndarray

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """The image of a vector, or of many along leading axes."""
        return self.sign * vectors[..., self.source]


def symmetries(model: Model, states: np.ndarray, errors: np.ndarray) -> list[Symmetry]:
    """Those of the candidates that the drift respects: h(g u) = g h(u) at all of the states.

    Args:
        model: whose drift.
        states: some vectors in general position.
        errors: of the drift at each of them, in every component.
    """
    table = Table(model)
    drifts = table.drift(states)
    sizes = np.max(np.abs(drifts), axis=1, initial=0.0)
    allowed = FAIR * np.max(errors, axis=1) + EXACT * (1 + sizes)
    found = []
    for candidate in candidates(model.task.layout):
        images = table.drift(candidate(states))
        if np.all(np.max(np.abs(images - candidate(drifts)), axis=1) <= allowed):
            found.append(candidate)
    return found


def images_of(group: Sequence[Symmetry], vector: np.ndarray, apart: float) -> np.ndarray:
    """All images of a vector under products of symmetries, itself first; at most a few thousand.

    Entries that differ by less than ``apart`` are taken to be equal.
    """
    images: dict[bytes, np.ndarray] = {}  # by what it is after rounding
    fresh, merged = vector[None], _merged(vector, apart)[None]
    while len(fresh) and len(images) < MOST_IMAGES:
        keys, new = [row.tobytes() for row in merged + 0.0], []  # no -0.0
        for i, key in enumerate(keys):
            if key not in images:
                images[key] = fresh[i]
                new.append(i)
        fresh, merged = (
            np.concatenate([symmetry(x[new]) for symmetry in group]) if group else x[:0]
            for x in (fresh, merged)
        )
    return np.array(list(images.values()))


def _merged(vector: np.ndarray, apart: float) -> np.ndarray:
    """The vector with sizes of entries that are close made equal, and small ones zero."""
    result, level = np.zeros_like(vector), 0.0
    last = 0.0
    for i in np.argsort(np.abs(vector)):
        size = abs(vector[i])
        level = level if size - last < apart else size
        last = size
        result[i] = np.sign(vector[i]) * level
    return result


def candidates(layout: Layout) -> list[Symmetry]:
    """Exchanges of two neighbours along an axis, changes of sign, and both together.

    >>> import sgdlimits as sl
    >>> layout = sl.tasks.SpikedTensor(order=2, snr=2.0).layout
    >>> [one.sign.tolist() for one in candidates(layout)]
    [[-1.0, 1.0]]
    """
    size = len(layout.coordinates)
    numbers = {name: np.asarray(x) for name, x in layout.unravel(np.arange(1.0, size + 1)).items()}
    result = {}
    for state in _moved(layout, numbers):
        flat = np.asarray(layout.ravel(state))
        key = tuple(flat.tolist())
        if key != tuple(range(1, size + 1)):
            result[key] = Symmetry(np.abs(flat).astype(int) - 1, np.sign(flat))
    return list(result.values())


def _moved(layout: Layout, state: Arrays) -> Iterator[Arrays]:
    signed = [s.name for s in layout.statistics if not s.nonnegative]
    flips = [()] + [(name,) for name in signed] + [tuple(signed)]
    for moved, flip in itertools.product([state, *_along_axes(layout, state)], flips):
        yield {name: -x if name in flip else x for name, x in moved.items()}


def _along_axes(layout: Layout, state: Arrays) -> Iterator[Arrays]:
    axes = {s.dims[0]: s.shape[0] for s in layout.statistics if s.dims}
    axes |= {
        s.dims[1]: s.shape[1] for s in layout.statistics if len(s.dims) > 1 and not s.symmetric
    }
    for axis, size in axes.items():
        for i in range(size):
            sign = np.where(np.arange(size) == i, -1.0, 1.0)
            for least in (1, 2):  # of axes that a statistic must have to be changed
                yield _acted(layout, state, axis, np.arange(size), sign, least)
        for i in range(1, size):
            swapped = _swapped(layout, state, axis, i, size)
            yield swapped
            for other, length in axes.items():  # as classes, with their means and their neurons
                if other > axis and length == size:
                    yield _swapped(layout, swapped, other, i, size)


def _swapped(layout: Layout, state: Arrays, axis: str, i: int, size: int) -> Arrays:
    order = np.arange(size)
    order[[i - 1, i]] = i, i - 1
    return _acted(layout, state, axis, order, np.ones(size), 1)


def _acted(
    layout: Layout, state: Arrays, axis: str, order: np.ndarray, sign: np.ndarray, least: int
) -> Arrays:
    result = dict(state)
    for statistic in layout.statistics:
        x = result[statistic.name]
        for k, dim in enumerate(statistic.dims):
            if x.ndim >= least and axis in (dim, statistic.dims[0] if statistic.symmetric else dim):
                shape = [1] * x.ndim
                shape[k] = -1
                x = np.take(x, order, axis=k) * sign.reshape(shape)
        result[statistic.name] = x
    return result

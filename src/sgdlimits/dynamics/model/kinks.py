"""Where the gradient of a task's loss has kinks or jumps, and how labels depend on their noise.

Declared by the task, or found: candidates are read off the programs of loss and labels, and each is
examined on random lines. Many prove harmless, as the maximum inside a logarithm of a sum of
exponentials does: these, like the arguments of tanh, remain as bends.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._compiled import compiled, entry
from sgdlimits._switches import UnreadableError, switches
from sgdlimits._types import Index
from sgdlimits.tasks.multi_index import MultiIndexFamily

LINES = 64  # random lines on which candidates are examined, and as many in the noise alone
REACH, CELLS = 4.0, 48  # of each line, in units of its scale
EXAMPLES = 16  # zeros of each candidate that are examined, and as many in the noise
BISECTIONS = 40
CONTINUOUS = 1e-6  # a candidate that changes by more next to its zero jumps
POINTS = 1024  # looked at in one call
BESIDE = (1e-7, 1e-8)  # how far on either side of a zero gradients are compared
JUMP = 1e-5  # relative differences of gradients, or of their slopes, that are no rounding
SAME = 1e-9  # relative distance of proportional functions


class Kinks(NamedTuple):
    """Numbers of the candidates (see ``candidates``) at whose zeros something happens.

    Attributes:
        hard: the gradient jumps or has a kink there.
        soft: it bends there.
        noise: how labels depend on their noise: "none", "affine", "smooth", "steps" (constant
            between zeros of ``in_noise``), "pieces" (smooth between them) or "field" (where they
            switch depends on other fields as well).
        in_noise: the hard ones that depend on the noise alone.
        unknown: in words, why kinks could not be located; empty if they were.
    """

    hard: tuple[int, ...] = ()
    soft: tuple[int, ...] = ()
    noise: str = "none"
    in_noise: tuple[int, ...] = ()
    unknown: str = ""

    @property
    def smooth(self) -> bool:
        """Whether the gradient is analytic in the fields."""
        return not (self.hard or self.unknown)


def field_count(task: MultiIndexFamily) -> int:
    """Number of fields y that a gradient depends on: s, and the anchor fields if labels do."""
    return task.width + (len(task.anchors) if task.labels is None else 0)


def candidates(
    task: MultiIndexFamily,
    c: Index,
    y: Float[Array, " m"],
    noise: Float[Array, ""],
    readout: Float[Array, " K"],
) -> Float[Array, " n"]:
    """The fields, then whatever loss and labels compare, then what they put into saturating units.

    Args:
        task: what is learned.
        c: component of the sample.
        y: its fields, (a, s) or s.
        noise: that of its label.
        readout: ignored where it is not trained.
    """
    v = readout if task.trained else None
    s, label = _seen(task, c, y, noise)
    if task.labels is not None:
        return jnp.concatenate([y, *switches(lambda s: task.examined(s, v, label), [s])])
    of_loss = switches(lambda s, label: task.examined(s, v, label), [s, label])
    of_label = switches(lambda a, e: task.label(c, a, e), [y[: len(task.anchors)], noise])
    return jnp.concatenate([y, of_loss.hard, of_label.hard, of_loss.soft, of_label.soft])


def kinks_of(task: MultiIndexFamily) -> Kinks:
    """What is declared, and else what is found; the same for all values of real parameters."""
    return _kinks(jax.tree.structure(task), _Unseen(task))


def _seen(task: MultiIndexFamily, c: Index, y: Array, noise: Array) -> tuple[Array, Array]:
    """Fields s and label."""
    if task.labels is not None:
        return y, entry(task.labels, c)
    r = len(task.anchors)
    return y[r:], task.label(c, y[:r], noise)


def jumps_separately(task: MultiIndexFamily) -> bool:
    """Whether, without noise, each field can be held at zero without touching the others.

    True for ReLU networks whose means are orthogonal or opposite, as in the papers: then a solution
    may slide along the jump of one field independently of the others.
    """
    if task.labels is None or task.kinks != "zero" or not math.isinf(task.precision):
        return False
    products = task.means @ task.gram @ task.means.T
    lengths = np.sqrt(np.diag(products))
    cosines = np.abs(products) / np.maximum(np.outer(lengths, lengths), 1e-300)
    return bool(not task.spike.any() and np.all((cosines < 1e-12) | (cosines > 1 - 1e-12)))


class _Unseen:
    """Carries the task past a cache that looks at its structure alone."""

    def __init__(self, task: MultiIndexFamily):
        self.task = task

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unseen)

    def __hash__(self) -> int:
        return 0


@functools.lru_cache(maxsize=256)
def _kinks(structure: Any, unseen: _Unseen) -> Kinks:
    del structure
    task = unseen.task
    m = field_count(task)
    declared = {"none": (), "zero": tuple(range(m))}.get(task.kinks)
    trusted = task.labels is not None or task.affine_label_noise
    try:
        with jax.enable_x64(True):
            if declared is None or not trusted:
                return _examined(task, declared)
            soft = _different(task, declared)
    except UnreadableError as reason:
        known = task.labels is not None
        return Kinks(declared or (), noise="none" if known else "field", unknown=str(reason))
    noise = "none" if task.labels is not None else "affine"
    return Kinks(declared, soft, noise)


class _Look(NamedTuple):
    """What is seen at one point of a line."""

    values: Float[Array, " n"]  # of all candidates
    gradient: Float[Array, " g"]  # ∂ℓ/∂s, and ∂ℓ/∂v where it is trained
    slope: Float[Array, " g"]  # its derivative along the line
    by_fields: Float[Array, " n"]  # the largest derivative of each candidate in a field
    by_noise: Float[Array, " n"]
    label: Float[Array, " 2"]  # its first two derivatives in the noise


def _examined(task: MultiIndexFamily, declared: tuple[int, ...] | None) -> Kinks:
    m, rng = field_count(task), np.random.default_rng(0)
    scale = 10 ** rng.uniform(-0.5, 1.0, (2 * LINES, 1)) * np.ones(m + 1)
    scale[:, m] = 1.0  # that of the noise
    origin, way = scale * rng.normal(size=(2, 2 * LINES, m + 1))
    way[:LINES, m], way[LINES:, :m] = 0.0, 0.0
    readout = rng.normal(size=(2 * LINES, task.width)) * rng.choice([0.5, 2.0], (2 * LINES, 1))
    component = rng.integers(len(task.weights), size=2 * LINES)

    def look(lines: np.ndarray, t: np.ndarray) -> _Look:
        """At points t (lines, points) of some lines; sizes are padded so that all are one."""
        rows = np.repeat(lines, t.shape[1])
        points = origin[rows] + t.reshape(-1, 1) * way[rows]
        parts = (component[rows], points, way[rows], readout[rows])
        seen = []
        for start in range(0, len(rows), POINTS):
            chunk = np.minimum(np.arange(start, start + POINTS), len(rows) - 1)
            seen.append(_look(task, *(jnp.asarray(part[chunk]) for part in parts)))
        joined = jax.tree.map(lambda *x: np.concatenate(x)[: len(rows)], *seen)
        return jax.tree.map(lambda x: x.reshape(*t.shape, *x.shape[1:]), joined)

    grid = np.linspace(-REACH, REACH, CELLS + 1) + rng.uniform(0, 1e-3, CELLS + 1)
    seen = look(np.arange(2 * LINES), np.tile(grid, (2 * LINES, 1)))
    values = np.asarray(seen.values)
    different = _first_of_equals(values.reshape(-1, values.shape[-1]), m)
    lines, which, roots = _roots(look, grid, values, different)
    jumps = _jumps(look, lines, roots) if len(roots) else roots
    hard = [i for i in different if np.any(jumps[which == i] > JUMP)]
    if declared is not None:  # for the loss; labels are examined nonetheless
        hard = sorted({*declared, *(i for i in hard if _is_of_label(task, i))})
    by_noise, by_fields = (np.any(x != 0, axis=(0, 1)) for x in (seen.by_noise, seen.by_fields))
    in_noise = tuple(i for i in hard if by_noise[i] and not by_fields[i])
    noise = "none"
    if any(by_noise[i] and by_fields[i] for i in hard):
        noise = "field"
    elif in_noise:
        noise = "pieces" if np.any(seen.label[..., 0]) else "steps"
    elif np.any(seen.label[..., 0]):
        noise = "affine" if np.max(np.abs(seen.label[..., 1])) < SAME else "smooth"
    return Kinks(
        hard=tuple(i for i in hard if by_fields[i]),
        soft=_steepest(
            values.reshape(-1, values.shape[-1]), (i for i in different if i not in hard)
        ),
        noise="none" if task.labels is not None else noise,
        in_noise=in_noise,
    )


@compiled
def _look(
    task: MultiIndexFamily, components: Array, points: Array, ways: Array, readouts: Array
) -> _Look:
    def one(c: Array, x: Array, way: Array, readout: Array) -> _Look:
        def gradient(x: Array) -> Array:
            s, label = _seen(task, c, x[:-1], x[-1])
            v = readout if task.trained else None
            return jnp.concatenate(task.gradients(s, v, label)[::-1])

        def label(e: Array) -> Array:
            return jnp.asarray(_seen(task, c, x[:-1], e)[1], float)

        def both(x: Array) -> tuple[Array, Array]:
            values = candidates(task, c, x[:-1], x[-1], readout)
            return values, values

        slopes, values = jax.jacfwd(both, has_aux=True)(x)
        here, along = jax.jvp(gradient, (x,), (way,))
        slope = jax.jvp(label, (x[-1],), (jnp.ones(()),))[1]
        second = jax.jvp(jax.grad(label), (x[-1],), (jnp.ones(()),))[1]
        fields = jnp.max(jnp.abs(slopes[:, :-1]), axis=1)
        return _Look(values, here, along, fields, slopes[:, -1], jnp.stack([slope, second]))

    return jax.vmap(one)(components, points, ways, readouts)


def _roots(
    look: Any, grid: np.ndarray, values: np.ndarray, different: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines, candidates and places of some of their zeros, by bisection."""
    crossed = np.zeros(values.shape, bool)[:, :-1]
    crossed[..., different] = values[:, :-1, different] * values[:, 1:, different] < 0
    order = np.argwhere(crossed)
    order = order[np.random.default_rng(1).permutation(len(order))]
    of_noise = order[:, 0] >= LINES
    kept = [
        order[(order[:, 2] == i) & (of_noise == side)][:EXAMPLES]
        for i in different
        for side in (False, True)
    ]
    lines, cells, which = np.concatenate([np.zeros((0, 3), int), *kept]).T
    if len(lines) == 0:
        return lines, which, np.zeros(0)
    low, high = grid[cells], grid[cells + 1]
    sign = np.sign(values[lines, cells, which])
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        now = look(lines, middle[:, None]).values[np.arange(len(lines)), 0, which]
        low, high = np.where(now * sign > 0, middle, low), np.where(now * sign > 0, high, middle)
    ends = look(lines, np.stack([low, high], axis=1)).values[np.arange(len(lines)), :, which]
    real = np.abs(np.diff(ends, axis=1)[:, 0]) < CONTINUOUS  # else it jumps across zero
    return lines[real], which[real], (low + high)[real] / 2


def _jumps(look: Any, lines: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Gaps of gradient or slope across each zero that stay as one comes closer to it."""
    far, near = BESIDE
    seen = look(lines, roots[:, None] + np.array([-far, far, -near, near]))
    result = np.zeros(len(roots))
    for x in (seen.gradient, seen.slope):
        size = 1 + np.abs(x).max(axis=(1, 2), initial=0.0)
        wide, narrow = (np.abs(x[:, i + 1] - x[:, i]) / size[:, None] for i in (0, 2))
        stays = np.where(wide < 2 * narrow, narrow, 0.0)
        result = np.maximum(result, stays.max(axis=1, initial=0.0))
    return result


def _different(task: MultiIndexFamily, known: Sequence[int]) -> tuple[int, ...]:
    """Candidates that vary and are no multiples of known ones or one another at random points."""
    rng, K, m = np.random.default_rng(0), task.width, field_count(task)
    points, readout = rng.normal(size=(LINES, m + 1)), rng.normal(size=(LINES, K))
    component = rng.integers(len(task.weights), size=LINES)
    values = np.asarray(_values(task, *map(jnp.asarray, (component, points, readout))))
    return _steepest(values, (i for i in _first_of_equals(values, m) if i not in known))


@compiled
def _values(task: MultiIndexFamily, components: Array, points: Array, readouts: Array) -> Array:
    one = lambda c, x, v: candidates(task, c, x[:-1], x[-1], v)  # noqa: E731
    return jax.vmap(one)(components, points, readouts)


def _first_of_equals(values: np.ndarray, fields: int) -> list[int]:
    """Numbers of the columns that are finite, vary, and are no multiple of an earlier one.

    The first columns are ``fields``: they count only where a later one is a multiple of them.
    """
    kept: dict[int, bool] = {}  # and whether something is compared, or saturates, there
    for i in map(int, np.flatnonzero(np.all(np.isfinite(values), axis=0))):
        column = values[:, i]
        if np.ptp(column) == 0:
            continue
        for j in kept:
            if _proportional(column, values[:, j]):
                kept[j] = True
                break
        else:
            kept[i] = i >= fields
    return [i for i, counts in kept.items() if counts]


def _steepest(values: np.ndarray, chosen: Iterable[int]) -> tuple[int, ...]:
    """Of all multiples of each of the columns, the largest: what saturates first.

    Columns that do not change their sign have no zeros.
    """
    result = []
    for i in chosen:
        if np.min(values[:, i]) >= 0 or np.max(values[:, i]) <= 0:
            continue
        finite = np.flatnonzero(np.all(np.isfinite(values), axis=0))
        alike = [int(j) for j in finite if _proportional(values[:, j], values[:, i])]
        result.append(max(alike, key=lambda j: np.abs(values[:, j]).max()))
    return tuple(result)


def _proportional(column: np.ndarray, other: np.ndarray) -> bool:
    rest = column - other * (column @ other) / (other @ other)
    return bool(np.abs(rest).max() <= SAME * np.abs(column).max())


def _is_of_label(task: MultiIndexFamily, i: int) -> bool:
    """Whether candidate i comes from the labels: an anchor field, or compared by them."""
    r, m = len(task.anchors), field_count(task)
    if task.labels is not None:
        return False
    if i < m:
        return i < r
    zeros = jnp.zeros(m), jnp.zeros(()), jnp.zeros(task.width)
    s, label = zeros[0][r:], zeros[1]
    v = zeros[2] if task.trained else None
    of_loss = jax.eval_shape(lambda: switches(lambda s, y: task.examined(s, v, y), [s, label]).hard)
    return i >= m + of_loss.shape[0]

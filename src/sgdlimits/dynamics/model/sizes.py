"""Which quadrature rules suit a task: their kinds and sizes, cheap ones first."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdlimits import gaussian
from sgdlimits.dynamics.model.blocks import block_count, block_orders
from sgdlimits.dynamics.model.kinks import Kinks, field_count, kinks_of
from sgdlimits.tasks.multi_index import MultiIndexFamily

LEVELS = range(2, 11)  # orders of orthant rules
MANY, SPARSE_LEVELS = 4, range(2, 9)  # fields from which on sparse grids are tried, of these levels
BONUS = 3  # orthant rules may have so many times more nodes than others: few steps in size
STEEP = 3.0  # a saturating unit whose argument varies by more than this is nearly a jump
PLANE_ORDERS = (6, 12, 20)  # of the Gauss rule in each piece of one line, or of lines in a plane
ROOTS = 2  # zeros of each switch looked for on a line; more are rare
AROUND = 5  # breaks at each bend: two on either side too
PLANE_PIECES = 6  # of the second variable, where the kinks left in it are not known
PROBE_NODES = 2**13  # of a plain random rule to compare with, over all components
LEAST_PROBE, MOST_PROBE = 2**8, 2**11  # the same for each component
MOST_NODES = 2**14  # for each component
RANDOM_COUNTS = (2**10, 2**12, 2**14, 2**16)  # of random nodes
LEAST_RANDOM = 2**8  # the same where that is too much
GRIDS = (2**8, 2**10, 2**12, 2**14, 2**15)  # nodes of Gauss–Hermite grids
LEAST_HERMITE, MOST_HERMITE = 5, 80  # their largest orders


KINDS = ("none", "hermite", "sparse", "orthant", "lines", "sobol")


class Size(NamedTuple):
    """A kind of rule and how many nodes it may have for each component.

    A Gauss–Hermite grid has ``orders`` along the directions of the frame, a sparse grid levels. An
    orthant rule has orders for each of its blocks, lines in a plane one for each piece.
    """

    kind: str
    nodes: int
    bends: bool = False
    orders: tuple[Any, ...] = ()

    def as_numbers(self, fields: int) -> np.ndarray:
        """As many whole numbers for all rules of a task: no program hangs on them."""
        rows = np.zeros((fields, 3), int)
        for row, order in zip(rows, self.orders, strict=False):
            some = order if isinstance(order, tuple) else (order,)
            row[: len(some)] = some
        return np.array([KINDS.index(self.kind), self.nodes, self.bends, *rows.ravel()])

    @classmethod
    def of_numbers(cls, numbers: np.ndarray) -> "Size":
        """The same again.

        >>> size = Size("orthant", 40, orders=((2, 3, 3), (4,)))
        >>> Size.of_numbers(size.as_numbers(3)) == size
        True
        """
        kind, nodes, bends, *rest = map(int, numbers)
        rows = [tuple(n for n in rest[k : k + 3] if n) for k in range(0, len(rest), 3)]
        orders = [row if KINDS[kind] == "orthant" else row[0] for row in rows if row]
        return cls(KINDS[kind], nodes, bool(bends), tuple(orders))


def probe_size(task: MultiIndexFamily) -> Size:
    """That of a plain random rule which others are compared with: fewer nodes for many classes."""
    share = 2 ** math.floor(math.log2(PROBE_NODES / len(task.weights)))
    return Size("sobol", min(max(share, LEAST_PROBE), MOST_PROBE))


def sizes(
    task: MultiIndexFamily,
    most: int = MOST_NODES,
    *,
    smooth: bool = False,
    reach: Sequence[float] | None = None,
    bent: float = 0.0,
    dependence: Mapping[int, Sequence[float]] | None = None,
) -> list[Size]:
    """The rules that a task allows, those that mostly need fewest nodes first.

    None has many more nodes for a component than ``most``.

    Args:
        task: what is learned.
        most: nodes for each component.
        smooth: leave out random nodes that cross kinks, since then the drift jumps a little.
        reach: how far the fields move along each direction of their frame; directions in which
            they hardly move need few nodes. By default all count the same.
        bent: how far the arguments of saturating units move.
        dependence: numbers of pairs of fields with kinks that are nearly dependent at some states,
            with what is left of each field given those before it (see ``Arrangement``); by default
            fields are independent.
    """
    kinks, m = kinks_of(task), field_count(task)
    if task.labels is not None and math.isinf(task.precision) and not task.spike.any():
        return [Size("none", 1)]
    random = [count for count in RANDOM_COUNTS if count <= most] or [LEAST_RANDOM]
    sobol = [Size("sobol", count) for count in random]
    if kinks.unknown:
        return sobol
    reach = [1.0] * m if reach is None else reach
    if kinks.smooth:
        steep = kinks.soft and bent > STEEP
        grids = [grid for count in GRIDS if count <= 2 * most for grid in _grids(reach, count)]
        if steep:
            return [*dict.fromkeys(grids), *sobol, *_lines(kinks, m, random)]
        return [*_sparse(reach, most, smooth=smooth), *dict.fromkeys(grids), *sobol]
    lines = _lines(kinks, m, random)
    others = lines if smooth or m + (kinks.noise == "field") <= 2 else sobol
    if kinks.noise == "field" or any(i >= m for i in kinks.hard):
        return others
    return _orthants(len(whole_fields(kinks, m)), dependence or {0: [1.0] * m}, most) + others


def whole_fields(kinks: Kinks, m: int) -> list[int]:
    """Fields without kinks."""
    return [i for i in range(m) if i not in kinks.hard]


def _orthants(whole: int, dependence: Mapping[int, Sequence[float]], most: int) -> list[Size]:
    """Orthant rules that are not too large."""
    result = []
    for level, (pairs, left) in itertools.product(LEVELS, dependence.items()):
        orders = block_orders(level, pairs, left, whole)
        count = block_count(orders, whole)
        if count <= BONUS * most:
            result.append(Size("orthant", count, orders=orders))
    return sorted(result, key=lambda size: size.nodes)


def typical_error(size: Size) -> float:
    """What a rule mostly leaves at best: see docs/expectations.md. Else zero."""
    if size.kind == "sobol":
        return 1.0 / size.nodes**0.9
    if size.kind == "orthant":
        return 100.0 ** (1 - max(block[0] for block in size.orders))
    if size.kind == "sparse":
        return 1e-3 * 30.0 ** (1 - max(size.orders))
    return 0.0


def _lines(kinks: Kinks, m: int, random: Sequence[int]) -> list[Size]:
    """Along one line, in a plane, or along random lines."""
    cuts = (False, True) if kinks.soft else (False,)
    m += kinks.noise == "field"
    if m > 2:
        return [Size("lines", count, bends) for bends in cuts for count in random[1:] or random]
    return [
        Size("lines", order**m * math.prod(pieces_of(kinks, m, bends)), bends, (order,))
        for bends in cuts
        for order in PLANE_ORDERS
    ]


def pieces_of(kinks: Kinks, m: int, bends: bool) -> tuple[int, int]:
    """Of lines, and of the second of two variables."""
    parts = parts_of(kinks, m, bends)
    return breaks_of(kinks, m, bends) + parts, parts + 1 if m == 2 else 1


def parts_of(kinks: Kinks, m: int, bends: bool) -> int:
    """In which a line is cut wherever its kinks are: few if all of these are known."""
    return 2 if all(i < m for i in kinks.hard) and not bends else PLANE_PIECES


def grid_size(orders: Sequence[int]) -> Size:
    """That of a Gauss–Hermite grid."""
    return Size("hermite", math.prod(orders), orders=tuple(orders))


def _grids(reach: Sequence[float], count: int) -> list[Size]:
    """The largest Gauss–Hermite grid with so many nodes, if it is large enough to be of use.

    It has most nodes along the directions in which the fields move most.
    """
    order = np.arange(MOST_HERMITE, LEAST_HERMITE - 1, -1)[:, None]
    share = np.asarray(reach) / max(*reach, 1e-300)
    orders = np.minimum(order, 2 + np.ceil((order - 2) * share).astype(int))
    small = np.flatnonzero(np.prod(orders.astype(float), axis=1) <= count)
    return [Size("hermite", count, orders=tuple(orders[k].tolist())) for k in small[:1]]


def _sparse(reach: Sequence[float], most: int, *, smooth: bool) -> list[Size]:
    """Sparse grids where there are many fields, with a lower level along directions of short reach.

    Derivatives hang on these as on others.
    """
    m, largest = len(reach), max(*reach, 1e-300)
    short = [0 if smooth else math.floor(math.log10(largest / max(x, 1e-300))) for x in reach]
    result = []
    for level in SPARSE_LEVELS if m >= MANY else ():
        levels = tuple(max(1, level - less) for less in short)
        count = gaussian.sparse_count(levels)
        if count <= most:
            result.append(Size("sparse", count, orders=levels))
    return result


def breaks_of(kinks: Kinks, m: int, bends: bool) -> int:
    """How many breaks a line may have."""
    linear = all(i < m for i in kinks.hard)
    hard = len(kinks.hard) * (1 if linear else ROOTS)
    return hard + (AROUND * ROOTS * len(kinks.soft) if bends else 0)

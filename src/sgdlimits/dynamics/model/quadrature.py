"""Which quadrature rules suit a task, and how they are made."""

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import gaussian
from sgdlimits.dynamics.model.blocks import (
    arrangement,
    block_count,
    block_orders,
    blocks_of,
    shuffled,
)
from sgdlimits.dynamics.model.kinks import Kinks, field_count, kinks_of
from sgdlimits.tasks.multi_index import MultiIndexFamily

AFFINE_NOISE_ORDER = 5  # at least: exact up to its ninth power, as in every squared loss
SMOOTH_NOISE_ORDER = 20  # for labels that depend on noise in other ways
LEVELS = range(2, 11)  # orders of orthant rules
BONUS = 3  # orthant rules may have so many times more nodes than others: few steps in size
STEEP = 3.0  # a saturating unit whose argument varies by more than this is nearly a jump
LINE_ORDER = 8  # of the Gauss rule in each piece of a line
LEAST_ORDER, MOST_ORDER = 6, 20  # the same where there is one line, or a plane of lines
ROOTS = 2  # zeros of each switch looked for on a line; more are rare
AROUND = 5  # breaks at each bend: two on either side too
STRETCHED = (0.7, 1.4)  # pieces around bends, in rules whose spread is the error
PLANE_PIECES = 6  # of the second variable, where the kinks left in it are not known
MIRRORED = 3  # of the smallest directions are integrated with pairs of mirror images
REPLICATES, LOWER = 8, 3  # other rules whose spread is the error: random ones, Gauss rules
PROBES, PROBE_NODES = 8, 2**11  # plain random rules that any other one is compared with
MOST_NODES = 2**14  # for each component
OTHERWISE = 1000  # seeds of probes are not those of rules
GRIDS = (2**8, 2**10, 2**12, 2**14, 2**15)  # nodes of Gauss–Hermite grids
LEAST_HERMITE, MOST_HERMITE = 5, 80  # their largest orders
RANDOM = ("sobol", "lines")  # errors of different seeds are alike
BLOCK = 2**14  # nodes that are in memory at once


class Quadrature(eqx.Module):
    """A rule for the fields of a task.

    - "none": there is no noise to average over.
    - "hermite": the gradient is smooth; a Gauss–Hermite grid.
    - "orthant": it has kinks where a field is zero; ``blocks`` are rules for one field or two after
      the other, split there.
    - "lines": it has kinks or jumps at the zeros of known functions. Along the principal direction
      of the fields these are located, and ``line`` is a rule for every piece between two of them;
      ``nodes`` are for the other directions. Smooth in the state, as jumps never are between nodes.
    - "sobol": it is smooth in many fields, or its kinks are unknown; scrambled Sobol nodes.

    Random nodes have a set for every component, so that their errors do not add up.
    """

    kind: str = eqx.field(static=True)
    kinks: Kinks = eqx.field(static=True, default=Kinks())
    bends: bool = eqx.field(static=True, default=False)  # lines are cut around bends too
    nodes: Any = None  # (sets, blocks, variables, q)
    weights: Any = None  # (blocks, q)
    line: Any = None  # nodes and weights, (2, order)
    cuts: Any = None  # of each line, anywhere (q,); or of the second of two variables
    stretch: Any = None  # by which the pieces around bends are longer
    blocks: tuple[gaussian.Block, ...] = ()
    turned: Any = None  # a permutation of blocks that are alike
    orders: Any = None  # of a Gauss–Hermite grid along each direction
    noise: Any = None  # nodes and weights of the label noise, (2, order)

    @property
    def with_noise(self) -> bool:
        """Whether the label noise is one of the fields."""
        return self.kinks.noise == "field"

    def arranged(self, made_of: Float[Array, "m n"]) -> Int[Array, " m"]:
        """The order in which an orthant rule takes the fields made of these normals."""
        pairs = sum(isinstance(block, gaussian.Pair) for block in self.blocks)
        return arrangement(made_of, pairs, whole_fields(self.kinks, len(made_of))).order[
            self.turned
        ]


class Size(NamedTuple):
    """A kind of rule and how many nodes it may have for each component.

    A Gauss–Hermite grid has ``orders`` along the directions of the frame; it is padded with nodes
    of no weight to ``nodes`` of them, so that one program serves many grids. An orthant rule has
    them for each of its blocks.
    """

    kind: str
    nodes: int
    bends: bool = False
    orders: tuple[Any, ...] = ()


PROBE = Size("sobol", PROBE_NODES)


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
    random = [count for count in (2**10, 2**12, 2**14, 2**16) if count <= most]
    sobol = [Size("sobol", count) for count in random]
    if kinks.unknown:
        return sobol
    reach = [1.0] * m if reach is None else reach
    if kinks.smooth:
        grids = [grid for count in GRIDS if count <= 2 * most for grid in _grids(reach, count)]
        steep = kinks.soft and bent > STEEP
        return [*dict.fromkeys(grids), *sobol, *(_lines(kinks, m, random) if steep else ())]
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
    return 0.0


def _lines(kinks: Kinks, m: int, random: Sequence[int]) -> list[Size]:
    """Along one line, in a plane, or along random lines."""
    plane = m + (kinks.noise == "field") <= 2
    counts = ((2**7, 2**9) if m == 1 else (2**9, 2**12)) if plane else random[1:]
    cuts = (False, True) if kinks.soft else (False,)
    return [Size("lines", count, bends) for bends in cuts for count in counts]


def grid_size(orders: Sequence[int]) -> Size:
    """That of a Gauss–Hermite grid."""
    return Size("hermite", math.prod(orders), orders=tuple(orders))


def _grids(reach: Sequence[float], count: int) -> list[Size]:
    """The largest Gauss–Hermite grid with so many nodes, if it is large enough to be of use.

    It has most nodes along the directions in which the fields move most.
    """
    largest = max(*reach, 1e-300)
    for order in range(MOST_HERMITE, LEAST_HERMITE - 1, -1):
        orders = tuple(min(order, 2 + math.ceil((order - 2) * size / largest)) for size in reach)
        if math.prod(orders) <= count:
            return [Size("hermite", count, orders=orders)]
    return []


def quadrature(task: MultiIndexFamily, size: Size, seed: int = 0) -> Quadrature:
    """A rule of this kind with about so many nodes.

    Rules of different seeds have arrays of the same shapes, and errors that have little in common:
    random nodes are drawn anew; lines are cut elsewhere; Gauss rules are of lower order, turned, or
    take the fields in another order. So their spread is an estimate of the error.
    """
    kinks = kinks_of(task)
    m = field_count(task) + (kinks.noise == "field")
    return _made(size, kinks, m, len(task.weights), seed)


def variants(task: MultiIndexFamily, size: Size) -> Quadrature:
    """Rules of several seeds along a leading axis, that of seed 0 first."""
    count = REPLICATES if size.kind in RANDOM else LOWER
    return _together(task, size, range(count + 1))


def probes(task: MultiIndexFamily) -> Quadrature:
    """Plain random rules along a leading axis: whatever is wrong with another, it is not theirs."""
    return _together(task, PROBE, range(OTHERWISE, OTHERWISE + PROBES))


def _together(task: MultiIndexFamily, size: Size, seeds: Iterable[int]) -> Quadrature:
    rules = [quadrature(task, size, seed) for seed in seeds]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rules)


@functools.lru_cache(maxsize=128)
def _made(size: Size, kinks: Kinks, m: int, components: int, seed: int) -> Quadrature:
    if size.kind == "none":
        return Quadrature("none", kinks)
    rng = np.random.default_rng([seed, m])
    lower = seed if size.kind in ("hermite", "orthant") else 0
    noise = _noise_rule(kinks, size.nodes, lower)
    count = max(2, size.nodes // (1 if noise is None else noise.shape[1]))
    if size.kind == "hermite":
        fewer = [max(2, order - max(lower, order // 4 * (lower == LOWER))) for order in size.orders]
        grid = gaussian.gauss_hermite(m, fewer)
        turn = _turned(size.orders, rng) if seed else np.eye(m)
        nodes, weights = _padded(grid.nodes @ turn.T, grid.weights, size.nodes)
        nodes, weights = _blocks(nodes[None], weights)
        return Quadrature(
            "hermite", kinks, nodes=nodes, weights=weights, orders=size.orders, noise=noise
        )
    if size.kind == "orthant":
        whole = len(whole_fields(kinks, m))
        blocks = blocks_of(size.orders, whole, lower=lower == LOWER)
        turned = shuffled(size.orders, whole, rng) if lower not in (0, LOWER) else np.arange(m)
        return Quadrature("orthant", kinks, blocks=blocks, turned=turned, noise=noise)
    if size.kind == "sobol":
        nodes, weights = _sobol(components, m, count, seed, MIRRORED if kinks.smooth else 0)
        return Quadrature("sobol", kinks, nodes=nodes, weights=weights, noise=noise)
    pieces = 2 + breaks_of(kinks, m, size.bends)
    stretch = rng.uniform(*STRETCHED) if seed else 1.0
    if m <= 2:
        parts = 2 if all(i < m for i in kinks.hard) and not size.bends else PLANE_PIECES
        cuts = (np.arange(1, parts) + rng.uniform(-0.3, 0.3, parts - 1)) / parts
        each = (count / (pieces + parts - 2) / (parts + 1 if m == 2 else 1)) ** (1 / m)
        line = gaussian.legendre(int(np.clip(each, LEAST_ORDER, MOST_ORDER)))
        return Quadrature(
            "lines", kinks, size.bends, line=line, cuts=cuts, stretch=stretch, noise=noise
        )
    line = gaussian.legendre(LINE_ORDER)
    each = pieces * LINE_ORDER
    lines = max(16, count // each)
    nodes, weights = _sobol(components, m - 1, lines, seed, MIRRORED, BLOCK // each)
    anywhere = rng.uniform(0.2, 0.8, nodes.shape[-1])
    return Quadrature(
        "lines", kinks, size.bends, nodes, weights, line, anywhere, stretch, noise=noise
    )


def _turned(orders: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """A random rotation among directions of the same order."""
    turn = np.zeros((len(orders), len(orders)))
    for order in set(orders):
        alike = [i for i, other in enumerate(orders) if other == order]
        turn[np.ix_(alike, alike)] = np.linalg.qr(rng.normal(size=(len(alike), len(alike))))[0]
    return turn


def breaks_of(kinks: Kinks, m: int, bends: bool) -> int:
    """How many breaks a line may have."""
    linear = all(i < m for i in kinks.hard)
    hard = len(kinks.hard) * (1 if linear else ROOTS)
    return hard + (AROUND * ROOTS * len(kinks.soft) if bends else 0)


def _sobol(
    components: int, dim: int, count: int, seed: int, mirrored: int, block: int = BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """A set of nodes for every component; the last few variables in pairs of mirror images."""
    flips = min(mirrored, dim, max(0, (count - 1).bit_length() - 3))
    signs = np.ones((2**flips, dim))
    for k in range(flips):
        signs[:, dim - 1 - k] = np.where(np.arange(2**flips) >> k & 1, -1.0, 1.0)
    size = max(2, count // 2**flips)
    rules = [gaussian.sobol(dim, size, seed * components + c) for c in range(components)]
    nodes = np.stack([(rule.nodes[:, None] * signs).reshape(-1, dim) for rule in rules])
    return _blocks(nodes, np.full(nodes.shape[1], 1 / nodes.shape[1]), block)


def _blocks(
    nodes: np.ndarray, weights: np.ndarray, block: int = BLOCK
) -> tuple[np.ndarray, np.ndarray]:
    """The same in blocks of equal size; some nodes of the last one have no weight."""
    q = len(weights)
    blocks = -(-q // max(1, block))
    size = -(-q // blocks)
    index = np.minimum(np.arange(blocks * size), q - 1).reshape(blocks, size)
    real = (np.arange(blocks * size) < q).reshape(blocks, size)
    return np.moveaxis(nodes[:, index], -1, -2), np.where(real, weights[index], 0.0)


def _padded(nodes: np.ndarray, weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """As many nodes as asked for: copies of the last one have no weight."""
    index = np.minimum(np.arange(size), len(weights) - 1)
    return nodes[index], np.where(np.arange(size) < len(weights), weights[index], 0.0)


def _noise_rule(kinks: Kinks, nodes: int, lower: int) -> np.ndarray | None:
    """Nodes and weights for the label noise, or for each of its pieces; None for one node.

    More of them where there are more for the fields too.
    """
    if kinks.noise in ("none", "field", "steps"):
        return None
    if kinks.noise == "pieces":
        return gaussian.legendre(SMOOTH_NOISE_ORDER)
    affine = max(AFFINE_NOISE_ORDER, nodes.bit_length() - 4)
    return _hermite_line(affine if kinks.noise == "affine" else SMOOTH_NOISE_ORDER, lower > 0)


def _hermite_line(order: int, lower: bool) -> np.ndarray:
    """Nodes and weights of a one-dimensional rule, of lower order but the same size if asked."""
    rule = gaussian.gauss_hermite(1, max(1, order - lower))
    nodes, weights = _padded(rule.nodes, rule.weights, order)
    return np.stack([nodes[:, 0], weights])

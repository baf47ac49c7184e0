"""How quadrature rules are made, and others to compare them with."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import gaussian
from sgdlimits._precision import as_arrays
from sgdlimits.dynamics.model.blocks import arrangement, blocks_of, shuffled
from sgdlimits.dynamics.model.kinks import Kinks, field_count, kinks_of
from sgdlimits.dynamics.model.sizes import (
    PLANE_ORDERS,
    Size,
    breaks_of,
    parts_of,
    pieces_of,
    probe_size,
    whole_fields,
)
from sgdlimits.tasks.multi_index import MultiIndexFamily

AFFINE_NOISE_ORDER = 5  # at least: exact up to its ninth power, as in every squared loss
SMOOTH_NOISE_ORDER = 20  # for labels that depend on noise in other ways
LINE_ORDER = 8  # of the Gauss rule in each piece of a line
STRETCHED = (0.7, 1.4)  # pieces around bends, in rules whose spread is the error
MIRRORED = 3  # of the smallest directions are integrated with pairs of mirror images
REPLICATES, LOWER = 8, 3  # other rules whose spread is the error: random ones, Gauss rules
FALL = 2  # levels by which sparse grids are lowered; those after that are turned
OTHERS = {"hermite": LOWER, "orthant": LOWER, "sparse": FALL + 2}
PROBES = 8  # plain random rules that any other one is compared with
OTHERWISE = 1000  # seeds of probes are not those of rules
RANDOM = ("sobol", "lines")  # errors of different seeds are alike
BLOCK = 2**14  # nodes that are in memory at once


class Quadrature(eqx.Module):
    """A rule for the fields of a task.

    - "none": there is no noise to average over.
    - "hermite": the gradient is smooth; a Gauss–Hermite grid.
    - "sparse": it is smooth in many fields that do not move far; a sparse grid.
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
    orders: Any = None  # of a Gauss–Hermite grid along each direction, or levels of a sparse one
    noise: Any = None  # nodes and weights of the label noise, (2, order)

    @property
    def with_noise(self) -> bool:
        """Whether the label noise is one of the fields."""
        return self.kinks.noise == "field"

    def arranged(self, made_of: Float[Array, "m n"]) -> Int[Array, " m"]:
        """The order in which an orthant rule takes the fields made of these normals."""
        pairs = sum(isinstance(block, gaussian.Pair) for block in self.blocks)
        whole = whole_fields(self.kinks, len(made_of))
        return arrangement(made_of, pairs, whole).order[self.turned]


def quadrature(task: MultiIndexFamily, size: Size, seed: int = 0) -> Quadrature:
    """A rule of this kind with about so many nodes.

    Rules of different seeds have arrays of the same shapes, and errors that have little in common:
    random nodes are drawn anew; lines are cut elsewhere; Gauss rules are of lower order, turned, or
    take the fields in another order. So their spread is an estimate of the error.
    """
    return _ready(size, *_needs(task), (seed,), stacked=False)


def variants(task: MultiIndexFamily, size: Size) -> Quadrature:
    """Rules of several seeds along a leading axis, that of seed 0 first."""
    count = REPLICATES if size.kind in RANDOM else OTHERS[size.kind]
    return _ready(size, *_needs(task), tuple(range(count + 1)), stacked=True)


def probes(task: MultiIndexFamily) -> Quadrature:
    """Plain random rules along a leading axis: whatever is wrong with another, it is not theirs."""
    seeds = tuple(range(OTHERWISE, OTHERWISE + PROBES))
    return _ready(probe_size(task), *_needs(task), seeds, stacked=True)


def _needs(task: MultiIndexFamily) -> tuple[Kinks, int, int]:
    """All that a rule has to know of a task: kinks, number of fields, of components."""
    kinks = kinks_of(task)
    return kinks, field_count(task) + (kinks.noise == "field"), len(task.weights)


@functools.lru_cache(maxsize=64)
def _ready(
    size: Size, kinks: Kinks, m: int, components: int, seeds: tuple[int, ...], *, stacked: bool
) -> Quadrature:
    """In JAX arrays, which take a while to make."""
    rules = [_made(size, kinks, m, components, seed) for seed in seeds]
    rule = jax.tree.map(lambda *leaves: np.stack(leaves), *rules) if stacked else rules[0]
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return as_arrays(rule)


def _made(size: Size, kinks: Kinks, m: int, components: int, seed: int) -> Quadrature:
    if size.kind == "none":
        return Quadrature("none", kinks)
    rng = np.random.default_rng([seed, m])
    lower = 0 if size.kind in RANDOM or (size.kind == "sparse" and seed > FALL) else seed
    noise = _noise_rule(kinks, size.nodes, lower)
    count = max(2, size.nodes // (1 if noise is None else noise.shape[1]))
    if size.kind in ("hermite", "sparse"):
        grid = _grid(size, lower)
        straight = FALL if size.kind == "sparse" else 0
        turn = _turned(size.orders, rng) if seed > straight else np.eye(m)
        nodes, weights = _padded(grid.nodes @ turn.T, grid.weights, size.nodes)
        nodes, weights = _blocks(nodes[None], weights)
        return Quadrature(
            size.kind, kinks, nodes=nodes, weights=weights, orders=size.orders, noise=noise
        )
    if size.kind == "orthant":
        whole = len(whole_fields(kinks, m))
        blocks = blocks_of(size.orders, whole, lower=lower == LOWER)
        turned = shuffled(size.orders, whole, rng) if lower not in (0, LOWER) else np.arange(m)
        return Quadrature("orthant", kinks, blocks=blocks, turned=turned, noise=noise)
    if size.kind == "sobol":
        nodes, weights = _sobol(components, m, count, seed, MIRRORED if kinks.smooth else 0)
        return Quadrature("sobol", kinks, nodes=nodes, weights=weights, noise=noise)
    stretch = rng.uniform(*STRETCHED) if seed else 1.0
    if m <= 2:
        parts = parts_of(kinks, m, size.bends)
        cuts = (np.arange(1, parts) + rng.uniform(-0.3, 0.3, parts - 1)) / parts
        each = (count / math.prod(pieces_of(kinks, m, size.bends))) ** (1 / m)
        order = int(np.clip(each, PLANE_ORDERS[0], PLANE_ORDERS[-1]))
        line = gaussian.legendre(size.orders[0] if size.orders else order)
        return Quadrature(
            "lines", kinks, size.bends, line=line, cuts=cuts, stretch=stretch, noise=noise
        )
    line = gaussian.legendre(LINE_ORDER)
    each = (2 + breaks_of(kinks, m, size.bends)) * LINE_ORDER
    lines = max(16, count // each)
    nodes, weights = _sobol(components, m - 1, lines, seed, MIRRORED, BLOCK // each)
    anywhere = rng.uniform(0.2, 0.8, nodes.shape[-1])
    return Quadrature(
        "lines", kinks, size.bends, nodes, weights, line, anywhere, stretch, noise=noise
    )


def _grid(size: Size, lower: int) -> gaussian.Rule:
    """A grid, or a lower one of the same kind."""
    if size.kind == "sparse":
        return gaussian.sparse_grid([max(0, level - lower) for level in size.orders])
    fewer = [max(2, order - max(lower, order // 4 * (lower == LOWER))) for order in size.orders]
    return gaussian.gauss_hermite(len(fewer), fewer)


def _turned(orders: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """A random rotation among directions of the same order."""
    turn = np.zeros((len(orders), len(orders)))
    for order in set(orders):
        alike = [i for i, other in enumerate(orders) if other == order]
        turn[np.ix_(alike, alike)] = np.linalg.qr(rng.normal(size=(len(alike), len(alike))))[0]
    return turn


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
    order = affine if kinks.noise == "affine" else SMOOTH_NOISE_ORDER
    return gaussian.padded(gaussian.hermite_line(max(1, order - (lower > 0))), order)

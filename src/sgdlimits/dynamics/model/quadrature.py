"""How quadrature rules are made, and others to compare them with."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import gaussian
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
MANY_NOISE_ORDER, MOST_NOISE_ORDER = 8, 12  # with more nodes for the fields
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
SMALL, SHARED = 2**8, 2**14  # rules up to so many nodes, and larger ones, are padded to this
FEW = 32  # numbers for each node
SPLIT = 2**14  # fields at nodes, over all components, from which on two threads take half of them
BLOCK = 2**12  # nodes of lines that are in memory at once
CHUNK = 2**10  # nodes whose gradients are in the fastest memory at once


class Quadrature(eqx.Module):
    """A rule for the fields of a task.

    Its nodes are

    - "none": there is no noise to average over.
    - "given": the gradient is smooth, or its kinks are unknown; ``nodes`` of a Gauss–Hermite or
      sparse grid, or scrambled Sobol nodes, for independent normals.
    - "orthant": it has kinks where a field is zero; ``orthants`` is a rule for one field or two
      after the other, split there.
    - "lines": it has kinks or jumps at the zeros of known functions. Along the principal direction
      of the fields these are located, and ``line`` is a rule for every piece between two of them;
      ``nodes`` are for the other directions. Smooth in the state, as jumps never are between nodes.

    Random nodes have a set for every component, so that their errors do not add up. Nodes are in
    blocks, of which the first few are used: rules of different sizes share one program.
    """

    placing: str = eqx.field(static=True)
    kinks: Kinks = eqx.field(static=True)
    bends: bool = eqx.field(static=True, default=False)  # lines are cut around bends too
    numbers: Any = None  # the size in numbers
    among: Any = None  # sums are over components from the first to before the second of these
    used: Any = None  # blocks, the others are empty
    nodes: Any = None  # (sets, blocks, variables, q)
    weights: Any = None  # (blocks, q)
    line: Any = None  # nodes and weights, (2, order)
    cuts: Any = None  # of each line, anywhere (q,); or of the second of two variables
    stretch: Any = None  # by which the pieces around bends are longer
    orthants: gaussian.OrthantRule | None = None
    turned: Any = None  # a permutation of blocks of fields that are alike
    noise: Any = None  # nodes and weights of the label noise, (2, order)

    @property
    def size(self) -> Size:
        """Which rule it is; not known where rules are traced."""
        return Size.of_numbers(np.asarray(self.numbers))

    @property
    def blocks(self) -> int:
        """Of nodes, used or not."""
        if self.orthants is not None:
            return len(self.orthants.choices.weights)
        return 1 if self.weights is None else len(self.weights)

    def thinned(self, part: int) -> "Quadrature":
        """One in so many nodes of a random rule, where little accuracy is enough.

        Those at the start of every block: of powers of two of them, a rule of its own.
        """
        few = max(1, self.weights.shape[-1] // part)
        nodes, weights = self.nodes[..., :few], self.weights[..., :few]
        weights = weights * (self.weights.sum() / weights.sum())
        return dataclasses.replace(self, nodes=nodes, weights=weights)

    @property
    def with_noise(self) -> bool:
        """Whether the label noise is one of the fields."""
        return self.kinks.noise == "field"

    def arranged(self, made_of: Float[Array, "m n"]) -> Int[Array, " m"]:
        """The order in which an orthant rule takes the fields made of these normals."""
        assert self.orthants is not None
        pairs = sum(kind is gaussian.Pair for kind in self.orthants.kinds)
        whole = whole_fields(self.kinks, len(made_of))
        return arrangement(jax.lax.stop_gradient(made_of), pairs, whole).order[self.turned]

    def with_tables_of(self, other: "Quadrature") -> "Quadrature":
        """The same with large arrays that all orthant rules share, if it has none."""
        if self.orthants is None or self.orthants.table is not None:
            return self
        assert other.orthants is not None
        shared = other.orthants.table
        return eqx.tree_at(lambda rule: rule.orthants.table, self, shared, is_leaf=_is_none)


def quadrature(task: MultiIndexFamily, size: Size, seed: int = 0) -> Quadrature:
    """A rule of this kind with about so many nodes.

    Rules of different seeds have arrays of the same shapes, and errors that have little in common:
    random nodes are drawn anew; lines are cut elsewhere; Gauss rules are of lower order, turned, or
    take the fields in another order. So their spread is an estimate of the error.
    """
    return _ready(size, *_needs(task), (seed,), stacked=False)


def variants(task: MultiIndexFamily, size: Size) -> Quadrature:
    """Rules of several seeds along a leading axis, that of seed 0 first."""
    return _variants(size, *_needs(task))


def halves(task: MultiIndexFamily, size: Size) -> tuple[Quadrature, ...]:
    """The same for the first half of the components, and for the others.

    None where there is only one, or sums over them take no longer than to hand one over. Nor of
    lines: inside a condition, as a component is that may be left out, XLA for the CPU cuts them at
    other places, and probabilities were 1e-4 off.
    """
    components = len(task.weights)
    long = components > 1 and size.nodes * components * task.width >= SPLIT
    return _halves(size, *_needs(task)) if long and size.kind != "lines" else ()


def probes(task: MultiIndexFamily) -> Quadrature:
    """Plain random rules along a leading axis: whatever is wrong with another, it is not theirs."""
    seeds = tuple(range(OTHERWISE, OTHERWISE + PROBES))
    return _ready(probe_size(task), *_needs(task), seeds, stacked=True)


def _needs(task: MultiIndexFamily) -> tuple[Kinks, int, int]:
    """All that a rule has to know of a task: kinks, number of fields, of components."""
    kinks = kinks_of(task)
    return kinks, field_count(task) + (kinks.noise == "field"), len(task.weights)


def _variants(size: Size, kinks: Kinks, m: int, components: int) -> Quadrature:
    count = REPLICATES if size.kind in RANDOM else OTHERS[size.kind]
    return _ready(size, kinks, m, components, tuple(range(count + 1)), stacked=True)


@functools.lru_cache(maxsize=64)
def _halves(size: Size, kinks: Kinks, m: int, components: int) -> tuple[Quadrature, Quadrature]:
    rules, middle = _variants(size, kinks, m, components), components // 2

    def of(*among: int) -> Quadrature:
        alike = np.broadcast_to(np.array(among), rules.among.shape)
        return dataclasses.replace(rules, among=jax.device_put(alike))

    with jax.enable_x64(True):
        return of(0, middle), of(middle, components)


@functools.lru_cache(maxsize=64)
def _ready(
    size: Size, kinks: Kinks, m: int, components: int, seeds: tuple[int, ...], *, stacked: bool
) -> Quadrature:
    """In JAX arrays, which take a while to make."""
    rules = [_made(size, kinks, m, components, seed) for seed in seeds]
    if stacked and rules[0].orthants is not None:
        rules = [eqx.tree_at(lambda rule: rule.orthants.table, rule, None) for rule in rules]
    rule = jax.tree.map(lambda *leaves: np.stack(leaves), *rules) if stacked else rules[0]
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        return jax.tree.map(jax.device_put, rule)


def _made(size: Size, kinks: Kinks, m: int, components: int, seed: int) -> Quadrature:
    made = functools.partial(
        Quadrature, kinks=kinks, numbers=size.as_numbers(m), among=np.array([0, components])
    )
    if size.kind == "none":
        return made("none", used=np.array(1))
    rng = np.random.default_rng([seed, m])
    lower = 0 if size.kind in RANDOM or (size.kind == "sparse" and seed > FALL) else seed
    noise = _noise_rule(kinks, size.nodes, lower)
    count = max(2, size.nodes // (1 if noise is None else noise.shape[1]))
    if size.kind in ("hermite", "sparse"):
        grid = _grid(size, lower)
        straight = FALL if size.kind == "sparse" else 0
        turn = _turned(size.orders, rng) if seed > straight else np.eye(m)
        nodes = np.broadcast_to(grid.nodes @ turn.T, (components, *grid.nodes.shape))
        room = bucket(size.nodes, components * m)
        return made("given", noise=noise, **_in_blocks(nodes, grid.weights, room, CHUNK))
    if size.kind == "orthant":
        whole = len(whole_fields(kinks, m))
        turned = shuffled(size.orders, whole, rng) if lower not in (0, LOWER) else np.arange(m)
        orthants, used = _orthants(size, whole, lower=lower == LOWER)
        return made("orthant", used=used, orthants=orthants, turned=turned, noise=noise)
    if size.kind == "sobol":
        nodes, weights = _sobol(components, m, count, seed, MIRRORED if kinks.smooth else 0)
        few = components * m <= FEW  # else as many as there are, a power of two
        room = bucket(len(weights), components * m) if few else len(weights)
        return made("given", noise=noise, **_in_blocks(nodes, weights, room, CHUNK))
    stretch = np.asarray(rng.uniform(*STRETCHED) if seed else 1.0)
    made = functools.partial(made, "lines", bends=size.bends, stretch=stretch, noise=noise)
    if m <= 2:
        parts = parts_of(kinks, m, size.bends)
        cuts = (np.arange(1, parts) + rng.uniform(-0.3, 0.3, parts - 1)) / parts
        each = (count / math.prod(pieces_of(kinks, m, size.bends))) ** (1 / m)
        order = int(np.clip(each, PLANE_ORDERS[0], PLANE_ORDERS[-1]))
        line = gaussian.legendre(size.orders[0] if size.orders else order)
        return made(line=line, cuts=cuts, used=np.array(1))
    line = gaussian.legendre(LINE_ORDER)
    each = (2 + breaks_of(kinks, m, size.bends)) * LINE_ORDER
    lines = max(16, count // each)
    nodes, weights = _sobol(components, m - 1, lines, seed, MIRRORED)
    room = len(weights)  # a power of two
    if components * m <= FEW:
        room = max(room, 2 ** math.ceil(math.log2(SHARED / each)))
    blocks = _in_blocks(nodes, weights, room, max(1, BLOCK // each))
    return made(line=line, cuts=rng.uniform(0.2, 0.8, blocks["nodes"].shape[-1]), **blocks)


def bucket(count: int, numbers: int) -> int:
    """The number of nodes that there is a program for.

    Few numbers for each node, over all components, take little room: many nodes are room for any
    rule but the smallest ones.
    """
    if SMALL < count <= SHARED and numbers <= FEW:
        return SHARED
    return max(SMALL, power_of_four(count))


def power_of_four(count: float) -> int:
    """The next one, from 1 on."""
    return 4 ** math.ceil(math.log(max(1.0, count), 4) - 1e-9)


def _in_blocks(nodes: np.ndarray, weights: np.ndarray, room: int, block: int) -> dict[str, Any]:
    """Nodes in blocks, as many as there is room for; those that are not used have no weight."""
    assert len(weights) <= room
    index = np.minimum(np.arange(room), len(weights) - 1)
    weights = np.where(np.arange(room) < len(weights), weights[index], 0.0)
    nodes, weights = _blocks(nodes[:, index], weights, min(room, block))
    used = np.flatnonzero(weights.any(axis=1))[-1] + 1
    return {"nodes": nodes, "weights": weights, "used": np.array(used)}


def _orthants(size: Size, whole: int, *, lower: bool) -> tuple[gaussian.OrthantRule, np.ndarray]:
    """A rule of these orders or lower ones, and how many of its blocks are used."""
    full = blocks_of(size.orders, whole)
    match full[-1]:
        case gaussian.Pair(_, along, between):
            last = 2 * along + between
        case gaussian.Split(order):
            last = 2 * order
        case gaussian.Whole(order):
            last = order
    each = min(max(1, CHUNK // last), power_of_four(size.nodes / last))
    most = power_of_four(size.nodes / last / each)
    orders = blocks_of(size.orders, whole, lower=lower)
    rule = gaussian.orthant_rule(orders, size=each, most=most, as_if=full)
    return rule, np.array(np.count_nonzero(rule.choices.weights.any(axis=1)))


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
    components: int, dim: int, count: int, seed: int, mirrored: int
) -> tuple[np.ndarray, np.ndarray]:
    """A set of nodes for every component; the last few variables in pairs of mirror images."""
    flips = min(mirrored, dim, max(0, (count - 1).bit_length() - 3))
    signs = np.ones((2**flips, dim))
    for k in range(flips):
        signs[:, dim - 1 - k] = np.where(np.arange(2**flips) >> k & 1, -1.0, 1.0)
    size = max(2, count // 2**flips)
    rules = [gaussian.sobol(dim, size, seed * components + c) for c in range(components)]
    nodes = np.stack([(rule.nodes[:, None] * signs).reshape(-1, dim) for rule in rules])
    return nodes, np.full(nodes.shape[1], 1 / nodes.shape[1])


def _blocks(nodes: np.ndarray, weights: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    """The same in blocks of equal size; some nodes of the last one have no weight."""
    q = len(weights)
    blocks = -(-q // block)
    size = -(-q // blocks)
    index = np.minimum(np.arange(blocks * size), q - 1).reshape(blocks, size)
    real = (np.arange(blocks * size) < q).reshape(blocks, size)
    return np.moveaxis(nodes[:, index], -1, -2), np.where(real, weights[index], 0.0)


def _noise_rule(kinks: Kinks, nodes: int, lower: int) -> np.ndarray | None:
    """Nodes and weights for the label noise, or for each of its pieces; None for one node.

    More of them where there are more for the fields too.
    """
    if kinks.noise in ("none", "field", "steps"):
        return None
    if kinks.noise == "pieces":
        return gaussian.legendre(SMOOTH_NOISE_ORDER)
    many = MANY_NOISE_ORDER if nodes <= SHARED else MOST_NOISE_ORDER
    affine = AFFINE_NOISE_ORDER if nodes <= SMALL else many
    order = affine if kinks.noise == "affine" else SMOOTH_NOISE_ORDER
    return gaussian.padded(gaussian.hermite_line(max(1, order - (lower > 0))), order)


def _is_none(x: Any) -> bool:
    return x is None

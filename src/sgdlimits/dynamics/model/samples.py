"""Quadrature nodes of a multi-index task at a state: fields, anchor fields, labels and weights."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float, Int

from sgdlimits._compiled import entry
from sgdlimits._types import Index
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.kinks import candidates, field_count
from sgdlimits.dynamics.model.quadrature import CHUNK, Quadrature
from sgdlimits.dynamics.model.sizes import ROOTS
from sgdlimits.gaussian import crossings, orthant_nodes, piecewise
from sgdlimits.gaussian.lines import NOWHERE, place_of
from sgdlimits.tasks.multi_index import MultiIndexFamily

T = TypeVar("T")

CELLS = 40  # of a line, in each of which a switch may be zero once
FAR = 8.5  # where lines end
BENT = 6.0  # arguments of tanh or logistic beyond this are in its flat part, but for a tail
TAIL = 4.0  # times that: beyond it nothing is left, exp(−24)


class Samples(NamedTuple):
    """Quadrature nodes of one component, seen through the network; nodes along the last axis.

    Given the fields s, the anchor fields are Gaussian: ``anchors`` holds their conditional mean.
    """

    fields: Float[Array, "K q"]
    anchors: Float[Array, "r q"]
    orthogonal: Float[Array, "K q"]
    labels: Float[Array, " q"]
    weights: Float[Array, " q"]


def still_samples(task: MultiIndexFamily, fields: Float[Array, "K k"]) -> Samples:
    """Without noise: all components at once, each with the fields of its mean."""
    return Samples(
        fields=fields,
        anchors=jnp.asarray(task.gram) @ jnp.asarray(task.means).T,
        orthogonal=jnp.zeros_like(fields),
        labels=jnp.asarray(task.labels),
        weights=jnp.asarray(task.weights),
    )


def samples_of(
    task: MultiIndexFamily, rule: Quadrature, frame: Frame, state: JaxState, c: Index, b: Index
) -> Samples:
    """The nodes of component ``c`` in block ``b`` of the rule."""
    K, r = task.width, len(task.anchors)
    center = jnp.asarray(task.gram) @ entry(task.means, c)  # mean of the anchor fields
    mean = frame.inward @ center
    if rule.placing == "none":
        still, label = jnp.zeros((K, 1)), entry(jnp.asarray(task.labels), c)
        return Samples(mean[:, None], center[:, None], still, label[None], jnp.ones(1))
    if task.labels is None:
        mean = jnp.concatenate([center, mean])
    if rule.with_noise:
        mean = jnp.append(mean, 0.0)
    y, z, weights = _place(_Component(task, rule, frame.factor, frame.order, mean, state, c, b))
    anchors, orthogonal = frame.parts(z)
    if task.labels is not None:
        labels = jnp.full(len(weights), entry(task.labels, c))
        return Samples(y, center[:, None] + anchors, orthogonal, labels, weights)
    if rule.with_noise:
        noise, noise_weights = y[-1:], jnp.ones(1)
    else:
        nodes, noise_weights = _noise(task, rule, state, c)
        noise = jnp.broadcast_to(nodes[:, None], (len(nodes), len(weights)))
    over_nodes = jax.vmap(task.label, (None, 1, 0))
    labels = jax.vmap(over_nodes, (None, None, 0))(c, y[:r], noise)
    fields, anchors, orthogonal = (
        jnp.tile(part, (1, len(noise))) for part in (y[r : r + K], y[:r], orthogonal)
    )
    weights = noise_weights[:, None] * weights
    return Samples(fields, anchors, orthogonal, labels.ravel(), weights.ravel())


def in_chunks(part: Callable[[Samples], T], samples: Samples) -> T:
    """What ``part`` makes of all nodes, a few at a time: much faster than one large array."""
    count = len(samples.weights)
    chunks = -(-count // CHUNK)
    if chunks == 1:
        return part(samples)
    missing = -count % chunks

    def cut(x: Array) -> Array:
        if missing:  # the last node again, without weight
            x = jnp.concatenate([x, jnp.repeat(x[..., -1:], missing, axis=-1)], axis=-1)
        return jnp.moveaxis(x.reshape(*x.shape[:-1], chunks, -1), -2, 0)

    rows = jax.tree.map(cut, samples)
    real = jnp.arange(chunks * rows.weights.shape[1]).reshape(chunks, -1) < count
    rows = rows._replace(weights=jnp.where(real, rows.weights, 0.0))
    parts = jax.lax.map(part, rows)
    return jax.tree.map(lambda x: jnp.sum(x, axis=0), parts)


Placed = tuple[Float[Array, "m q"], Float[Array, "m q"], Float[Array, " q"]]


class _Component(NamedTuple):
    """Whose nodes are placed: fields mean + F z of component c, and block b of the rule."""

    task: MultiIndexFamily
    rule: Quadrature
    F: Float[Array, "m m"]
    order: Int[Array, " m"] | None
    mean: Float[Array, " m"]
    state: JaxState
    c: Index
    b: Index


def _place(of: _Component) -> Placed:
    """Nodes y = mean + F z, z, and their weights."""
    rule, F, mean = of.rule, of.F, of.mean
    if rule.orthants is not None:
        assert of.order is not None
        y, z, weights = orthant_nodes(mean[of.order], F[of.order], rule.orthants, of.b)
        return y[jnp.argsort(of.order)], z, weights
    if rule.placing == "lines":
        return _on_lines(of)
    z, weights = entry(entry(rule.nodes, of.c), of.b), entry(rule.weights, of.b)
    y = mean[:, None] + F @ z
    if rule.kinks.unknown:
        # nodes that stay while their weights carry the likelihood ratio: the same value, and a
        # derivative that sees jumps move
        y = jax.lax.stop_gradient(y)
        z = jnp.linalg.solve(F, y - mean[:, None])
        density = -jnp.sum(z**2, axis=0) / 2 - jnp.linalg.slogdet(F)[1]
        weights = weights * jnp.exp(density - jax.lax.stop_gradient(density))
    return y, z, weights


def _on_lines(of: _Component) -> Placed:
    """Lines along the first direction, cut where something switches."""
    rule, F, mean = of.rule, of.F, of.mean
    m, way = len(mean), F[:, 0]
    line = jnp.asarray(rule.line)
    cuts = place_of(jnp.asarray(rule.cuts))
    if m == 1:
        others, other_weights = jnp.zeros((0, 1)), jnp.ones(1)
    elif m == 2:
        t, other_weights = piecewise(jnp.append(cuts, _vertex(F, mean)), line)
        others = t[None]
    else:
        others, other_weights = entry(entry(rule.nodes, of.c), of.b), entry(rule.weights, of.b)
    count = len(other_weights)
    each_cut = cuts[:, None] if m > 2 else jnp.tile(cuts, (count, 1))
    bases = mean[:, None] + F[:, 1:] @ others

    def one(base: Array, cuts: Array) -> tuple[Array, Array]:
        breaks = _breaks(of, base)
        return piecewise(jnp.concatenate([breaks, cuts]), line)

    t, weights = jax.vmap(one, (1, 0), 1)(bases, each_cut)  # (nodes of a line, lines)
    z = jnp.concatenate([t[None], jnp.broadcast_to(others[:, None], (m - 1, *t.shape))])
    y = bases[:, None] + way[:, None, None] * t
    return y.reshape(m, -1), z.reshape(m, -1), (other_weights * weights).ravel()


def _breaks(of: _Component, base: Float[Array, " m"]) -> Float[Array, " b"]:
    """Where on the line base + t·F₁ the gradient has kinks, and around its bends if asked for."""
    task, rule, way = of.task, of.rule, of.F[:, 0]
    m, count = field_count(task), len(base)
    readout = of.state["v"] if task.trained else jnp.zeros(task.width)
    grid = place_of(jnp.linspace(0.0, 1.0, CELLS + 1)[1:-1])
    grid = jnp.concatenate([jnp.array([-FAR]), grid, jnp.array([FAR])])

    def values(t: Array, chosen: Sequence[int]) -> Array:
        y = base + t * way
        noise = y[-1] if rule.with_noise else jnp.zeros(())
        return candidates(task, of.c, y[:m], noise, readout)[jnp.array(chosen)]

    hard, soft = rule.kinks.hard, rule.kinks.soft
    parts = [jnp.zeros(0)]
    if hard and max(hard) < count:
        chosen = jnp.array(hard)
        slope = way[chosen]
        flat = slope == 0
        parts.append(jnp.where(flat, NOWHERE, -base[chosen] / jnp.where(flat, 1.0, slope)))
    elif hard:
        parts.append(crossings(lambda t: values(t, hard), grid, ROOTS).ravel())
    if rule.bends and soft:
        roots = crossings(lambda t: values(t, soft), grid, ROOTS)
        slopes = jax.vmap(jax.vmap(jax.jacfwd(lambda t: values(t, soft))))(roots)
        steep = jnp.abs(jnp.diagonal(slopes, axis1=0, axis2=2).T)
        width = jax.lax.stop_gradient(BENT / jnp.maximum(steep, BENT / NOWHERE)) * rule.stretch
        parts.extend((roots + k * width).ravel() for k in (-TAIL, -1.0, 0.0, 1.0, TAIL))
    return jnp.concatenate(parts)


def _vertex(F: Float[Array, "2 2"], mean: Float[Array, " 2"]) -> Float[Array, ""]:
    """The second variable where both fields are zero: there kinks cross."""
    determinant = F[0, 0] * F[1, 1] - F[0, 1] * F[1, 0]
    flat = determinant == 0
    place = (F[1, 0] * mean[0] - F[0, 0] * mean[1]) / jnp.where(flat, 1.0, determinant)
    return jnp.where(flat, NOWHERE, jnp.clip(place, -NOWHERE, NOWHERE))


def _noise(
    task: MultiIndexFamily, rule: Quadrature, state: JaxState, c: Index
) -> tuple[Float[Array, " e"], Float[Array, " e"]]:
    """Nodes and weights of the label noise; between its breaks if it has some."""
    if rule.kinks.noise == "none":
        return jnp.zeros(1), jnp.ones(1)
    if rule.kinks.noise in ("affine", "smooth"):
        nodes, weights = jnp.asarray(rule.noise)
        return nodes, weights
    chosen = jnp.array(rule.kinks.in_noise)
    anywhere = jnp.zeros(field_count(task))
    readout = state["v"] if task.trained else jnp.zeros(task.width)
    breaks = crossings(
        lambda e: candidates(task, c, anywhere, e, readout)[chosen],
        jnp.linspace(-FAR, FAR, CELLS + 1),
        ROOTS,
    )
    if rule.kinks.noise == "pieces":
        return piecewise(breaks.ravel(), jnp.asarray(rule.noise))
    shares = jnp.concatenate([jnp.zeros(1), jnp.sort(ndtr(breaks.ravel())), jnp.ones(1)])
    return ndtri((shares[1:] + shares[:-1]) / 2), jnp.diff(shares)

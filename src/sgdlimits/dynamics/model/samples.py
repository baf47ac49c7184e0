"""Quadrature nodes of a multi-index task at a state: fields, anchor fields, labels and weights."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index
from sgdlimits.dynamics.model.quadrature import Quadrature
from sgdlimits.gaussian import orthant_nodes
from sgdlimits.tasks.multi_index import MultiIndexFamily

JITTER = 1e-13  # relative to each variance: keeps Cholesky factors of singular covariances finite
FLOOR = 1e-20  # the same for vanishing variances: above what rounding makes of its square root

JaxState = dict[str, Float[Array, "..."]]


class Samples(NamedTuple):
    """Quadrature nodes of one component, seen through the network.

    Given the fields s, the anchor fields are Gaussian: ``anchors`` holds their conditional mean and
    ``spread`` a square root of their conditional covariance (zero columns where they are nodes).
    """

    fields: Float[Array, "q K"]
    anchors: Float[Array, "q r"]
    orthogonal: Float[Array, "q K"]
    spread: Float[Array, "r m"]
    labels: Float[Array, " q"]
    weights: Float[Array, " q"]


def still_samples(task: MultiIndexFamily, fields: Float[Array, "k K"]) -> Samples:
    """Without noise: all components at once, each with the fields of its mean."""
    return Samples(
        fields=fields,
        anchors=jnp.asarray(task.means) @ jnp.asarray(task.gram),
        orthogonal=jnp.zeros_like(fields),
        spread=jnp.zeros((len(task.anchors), 0)),
        labels=jnp.asarray(task.labels),
        weights=jnp.asarray(task.weights),
    )


def samples_of(
    task: MultiIndexFamily,
    rule: Quadrature,
    state: JaxState,
    c: Index,
    *,
    fixed_fields: bool = False,
) -> Samples:
    """The nodes of component ``c`` at a state.

    With ``fixed_fields`` the nodes do not move with the state under differentiation: their weights
    carry the likelihood ratio instead, so that jumps of the gradient are differentiated through the
    density of the fields.
    """
    K, r = task.width, len(task.anchors)
    inward = state["M"] @ jnp.linalg.inv(task.gram)  # s = inward · a + s⊥
    center = jnp.asarray(task.gram) @ jnp.asarray(task.means)[c]  # mean of the anchor fields
    anchor_covariance = jnp.asarray(task.gram / task.precision + task.spike)
    orthogonal_covariance = state["R"] / task.precision
    nothing = jnp.zeros((r, 0))
    if task.labels is None:
        A, L = _factor(anchor_covariance), _factor(orthogonal_covariance)
        both = jnp.block([[A, jnp.zeros((r, K))], [inward @ A, L]])
        mean = jnp.concatenate([center, inward @ center])
        points, whitened, weights, noise = _place(rule, c, mean, both, fixed_fields)
        anchors, fields = points[:, :r], points[:, r:]
        labels = jax.vmap(lambda a, e: task.label(c, a, e))(anchors, noise)
        return Samples(fields, anchors, whitened[:, r:] @ L.T, nothing, labels, weights)
    label = jnp.asarray(task.labels)[c]
    if rule.kind == "none":
        still, fields = jnp.zeros((1, K)), (inward @ center)[None]
        return Samples(fields, center[None], still, nothing, label[None], jnp.ones(1))
    across = inward @ anchor_covariance  # covariance of the fields with the anchor fields
    L = _factor(across @ inward.T + orthogonal_covariance)
    fields, whitened, weights, _ = _place(rule, c, inward @ center, L, fixed_fields)
    onto_anchors = _solve(L, across)
    rest = anchor_covariance - onto_anchors.T @ onto_anchors
    return Samples(
        fields=fields,
        anchors=center + whitened @ onto_anchors,
        orthogonal=whitened @ _solve(L, orthogonal_covariance),
        spread=_factor(rest + JITTER * anchor_covariance),
        labels=jnp.full(len(fields), label),
        weights=weights,
    )


def _place(
    rule: Quadrature, c: Index, mean: Float[Array, " m"], L: Float[Array, "m m"], fixed_fields: bool
) -> tuple[Float[Array, "q m"], Float[Array, "q m"], Float[Array, " q"], Float[Array, " q"]]:
    """Nodes mean + Lη of a component, η, their weights, and the label noise at each."""
    if rule.kind == "sobol":
        nodes = jnp.asarray(rule.nodes)[c]
        eta, noise = nodes[:, : len(mean)], nodes[:, -1]
        points, weights = mean + eta @ L.T, jnp.asarray(rule.weights)
        if fixed_fields:
            points = jax.lax.stop_gradient(points)
            eta = _solve(L, (points - mean).T).T
            density = -jnp.sum(eta**2, axis=1) / 2 - jnp.sum(jnp.log(jnp.diag(L)))
            weights = weights * jnp.exp(density - jax.lax.stop_gradient(density))
        return points, eta, weights, noise
    if rule.kind == "orthant":
        points, eta, weights = orthant_nodes(mean, L, *jnp.asarray(rule.line))
    else:
        eta, weights = jnp.asarray(rule.nodes)[0], jnp.asarray(rule.weights)
        points = mean + eta @ L.T
    noise, noise_weights = jnp.asarray(rule.noise)
    each = len(noise)
    weights = (weights[:, None] * noise_weights).ravel()
    repeated = (jnp.repeat(array, each, axis=0) for array in (points, eta))
    return *repeated, weights, jnp.tile(noise, len(points))


def _factor(covariance: Float[Array, "m m"]) -> Float[Array, "m m"]:
    diagonal = jnp.diag(covariance)
    return jnp.linalg.cholesky(covariance + jnp.diag(JITTER * diagonal + FLOOR))


def _solve(L: Float[Array, "K K"], B: Float[Array, "K m"]) -> Float[Array, "K m"]:
    return jax.scipy.linalg.solve_triangular(L, B, lower=True)

"""The joint law of a block's weight D and of the data in the span F of anchors and weights.

In orthonormal coordinates of F a sample of component c is y = mean_c + √S ζ, ζ standard normal. D
is a function of the component and of a few combinations ξ of ζ (those that the fields see; all of
them, and the label noise, if labels depend on the anchor fields), so that

    E[f(D) y yᵀ] = Σ_c p_c (E[f(D) ȳ ȳᵀ] + E[f(D)] rest),   ȳ = mean_c + slope ξ,

and only integrals over ξ are done numerically.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits import gaussian
from sgdlimits._precision import as_arrays
from sgdlimits._types import State
from sgdlimits.spectra.blocks import Block, field_weights, readout_matrices
from sgdlimits.tasks import MultiIndexFamily

_FLAT = 1e-10  # directions of weights below this, relative to the largest, are not there


class Law(NamedTuple):
    """D at nodes of ξ for every component, and how y follows from them."""

    D: np.ndarray  # (components, nodes)
    probabilities: np.ndarray  # (components, nodes), of sum 1
    nodes: np.ndarray  # (nodes, p)
    means: np.ndarray  # (components, f)
    slope: np.ndarray  # (f, p)
    rest: np.ndarray  # (f, f)
    anchors: np.ndarray  # (r, f): unit vectors along the anchors
    rows: np.ndarray  # (K, f): the weights
    precision: float


class Fields(NamedTuple):
    """Samples of ξ with what the loss sees of them."""

    s: np.ndarray  # (components, nodes, K)
    labels: np.ndarray  # (components, nodes)
    probabilities: np.ndarray
    nodes: np.ndarray
    means: np.ndarray
    slope: np.ndarray
    rest: np.ndarray
    rows: np.ndarray  # (K, f)


def block_law(task: MultiIndexFamily, state: State, matrix: str, block: Block, nodes: int) -> Law:
    """The law of a block between rows of W at a state."""
    found = fields_at(task, state, nodes)
    readout = jnp.asarray(state["v"]) if task.trained else None
    s, labels = found.s.reshape(-1, task.width), found.labels.ravel()
    i, j = jnp.asarray(block.i), jnp.asarray(block.j)
    weights = field_weights(
        as_arrays(task), matrix, i, j, jnp.asarray(s), readout, jnp.asarray(labels)
    )
    D = np.asarray(weights)
    size = found.means.shape[1]
    anchors = np.zeros((len(task.anchors), size))
    L = np.linalg.cholesky(np.asarray(task.gram))
    anchors[:, : len(L)] = L / np.linalg.norm(L, axis=1, keepdims=True)
    return Law(
        D.reshape(found.labels.shape),
        found.probabilities,
        found.nodes,
        found.means,
        found.slope,
        found.rest,
        anchors,
        found.rows,
        float(task.precision),
    )


def readout_block(task: MultiIndexFamily, state: State, matrix: str, nodes: int) -> np.ndarray:
    """The population block vv at a state."""
    found = fields_at(task, state, nodes)
    return np.asarray(
        readout_matrices(
            as_arrays(task),
            matrix,
            jnp.asarray(found.s.reshape(-1, task.width)),
            jnp.asarray(state["v"]),
            jnp.asarray(found.labels.ravel()),
            jnp.asarray(found.probabilities.ravel()),
        )
    )


def fields_at(task: MultiIndexFamily, state: State, nodes: int) -> Fields:
    """Fields and labels at quadrature nodes, in coordinates of F: anchors first, then W⊥."""
    r = len(task.anchors)
    L = np.linalg.cholesky(np.asarray(task.gram))
    values, vectors = np.linalg.eigh(state["R"])
    kept = values > _FLAT * max(1.0, float(values[-1]))
    C = vectors[:, kept] * np.sqrt(values[kept])
    W = np.concatenate([state["M"] @ np.linalg.inv(L).T, C], axis=1)
    size = W.shape[1]
    means = np.zeros((len(task.means), size))
    means[:, :r] = np.asarray(task.means) @ L
    covariance = np.eye(size) / task.precision
    covariance[:r, :r] += np.linalg.solve(L, np.linalg.solve(L, np.asarray(task.spike)).T)
    root = np.linalg.cholesky(covariance)
    seen = np.eye(size) if task.labels is None else _row_space(W @ root)
    slope = root @ seen
    rest = covariance - slope @ slope.T
    # equal weights: Gauss–Hermite would put nodes of no weight far out, and edges feel every node
    rule = gaussian.sobol(seen.shape[1] + 1, nodes)  # the last variable is label noise
    xi, noise = rule.nodes[:, : seen.shape[1]], rule.nodes[:, -1]
    y = means[:, None] + xi @ slope.T
    labels = _labels(task, y[..., :r] @ L.T, noise)
    probabilities = np.asarray(task.weights)[:, None] * rule.weights
    return Fields(y @ W.T, labels, probabilities, xi, means, slope, rest, W)


def _row_space(matrix: np.ndarray) -> np.ndarray:
    _, sizes, rows = np.linalg.svd(matrix, full_matrices=False)
    return rows[sizes > _FLAT * max(1e-300, sizes[0])].T


def _labels(task: MultiIndexFamily, anchors: np.ndarray, noise: np.ndarray) -> np.ndarray:
    components = jnp.arange(len(anchors))
    if task.labels is not None:
        return np.repeat(np.asarray(task.labels)[:, None], anchors.shape[1], axis=1)
    each = jax.vmap(as_arrays(task).label, (None, 0, 0))
    normal = jnp.asarray(noise)
    return np.asarray(jax.vmap(each, (0, 0, None))(components, jnp.asarray(anchors), normal))

"""The joint law of what the loss sees and of the data in the span F of anchors and weights.

In orthonormal coordinates of F (the first r span the anchors) a sample of component c is

    y = μ_c + √Σ ζ,   ζ standard normal,   Σ = 1/λ + what the task's spike adds.

The fields are s = Wy, so they see a few combinations ξ of ζ only; if labels depend on the anchor
fields, all of ζ is taken for ξ. A block's weight D (:mod:`sgdlimits.spectra.derivatives`) is then a
function of the component, of ξ and of the label noise, and for every function f

    E[f(D) y yᵀ] = Σ_c p_c (E_c[f(D) ȳ ȳᵀ] + E_c[f(D)] rest),   ȳ = μ_c + slope ξ,

where ``rest`` is the covariance of y given ξ: only integrals over ξ are done numerically.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits import gaussian
from sgdlimits._precision import as_arrays
from sgdlimits._types import State
from sgdlimits.spectra.blocks import Block
from sgdlimits.spectra.derivatives import field_weights
from sgdlimits.tasks import MultiIndexFamily

_FLAT = 1e-10  # singular values below this, relative to the largest, are zeros that were rounded


class Law(NamedTuple):
    """Fields and labels at quadrature nodes of ξ for every component, and how y follows from ξ.

    f is the dimension of F, p that of ξ.
    """

    fields: np.ndarray  # (components, nodes, K)
    labels: np.ndarray  # (components, nodes)
    probabilities: np.ndarray  # (components, nodes), of sum 1
    nodes: np.ndarray  # (nodes, p)
    means: np.ndarray  # (components, f)
    slope: np.ndarray  # (f, p)
    rest: np.ndarray  # (f, f)
    anchors: np.ndarray  # (r, f): unit vectors along the anchors
    rows: np.ndarray  # (K, f): the weights


def law_at(task: MultiIndexFamily, state: State, nodes: int) -> Law:
    """The law at a state, with so many quadrature nodes for every component."""
    r = len(task.anchors)
    L = np.linalg.cholesky(np.asarray(task.gram))
    values, vectors = np.linalg.eigh(state["R"])
    kept = values > _FLAT * max(1.0, float(values[-1]))
    W_perp = vectors[:, kept] * np.sqrt(values[kept])
    W = np.concatenate([state["M"] @ np.linalg.inv(L).T, W_perp], axis=1)
    size = W.shape[1]
    means = np.zeros((len(task.means), size))
    means[:, :r] = np.asarray(task.means) @ L
    covariance = np.eye(size) / task.precision
    covariance[:r, :r] += np.linalg.solve(L, np.linalg.solve(L, np.asarray(task.spike)).T)
    root = np.linalg.cholesky(covariance)
    seen = np.eye(size) if task.labels is None else _row_space(W @ root)
    slope = root @ seen
    # equal weights: Gauss–Hermite would put nodes of no weight far out, and edges feel every node
    rule = gaussian.sobol(seen.shape[1] + 1, nodes)  # the last variable is label noise
    xi, noise = rule.nodes[:, :-1], rule.nodes[:, -1]
    y = means[:, None] + xi @ slope.T
    anchors = np.zeros((r, size))
    anchors[:, :r] = L / np.linalg.norm(L, axis=1, keepdims=True)
    return Law(
        fields=y @ W.T,
        labels=_labels(task, y[..., :r] @ L.T, noise),
        probabilities=np.asarray(task.weights)[:, None] * rule.weights,
        nodes=xi,
        means=means,
        slope=slope,
        rest=covariance - slope @ slope.T,
        anchors=anchors,
        rows=W,
    )


def block_weights(
    task: MultiIndexFamily, state: State, matrix: str, block: Block, law: Law
) -> np.ndarray:
    """D of a block between rows of W at every node of the law, (components, nodes)."""
    weights = field_weights(
        as_arrays(task),
        matrix,
        jnp.asarray(block.i),
        jnp.asarray(block.j),
        jnp.asarray(law.fields.reshape(-1, task.width)),
        jnp.asarray(state["v"]) if task.trained else None,
        jnp.asarray(law.labels.ravel()),
    )
    return np.asarray(weights).reshape(law.labels.shape)


def _row_space(matrix: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the rows of a matrix."""
    _, sizes, rows = np.linalg.svd(matrix, full_matrices=False)
    return rows[sizes > _FLAT * max(1e-300, sizes[0])].T


def _labels(task: MultiIndexFamily, anchors: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Labels (components, nodes), from anchor fields (components, nodes, r) and label noise."""
    components = jnp.arange(len(anchors))
    each = jax.vmap(as_arrays(task).label, (None, 0, 0))
    normal = jnp.asarray(noise)
    return np.asarray(jax.vmap(each, (0, 0, None))(components, jnp.asarray(anchors), normal))

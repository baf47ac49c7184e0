"""One step of SGD as it is defined, in NumPy, for many samples at once: nothing is averaged.

By rotation invariance the part of the data orthogonal to anchors, weights and velocities enters
through its Gram matrix alone, which is a Wishart matrix drawn by Bartlett's triangle. So a step in
dimension 10⁶ is a step in a few coordinates, exactly in law.
"""

from typing import Any, NamedTuple

import numpy as np

from sgdlimits._types import State
from sgdlimits.tasks import MultiIndexFamily
from tests.dynamics.sampled import gradients

DIM = 10**6


class Sgd(NamedTuple):
    """How it moves."""

    step: float
    batch: int = 1
    readout_step: float = 1.0
    normalised: bool = False
    friction: float | None = None

    @property
    def words(self) -> dict[str, Any]:
        """What ``effective_dynamics`` is told."""
        momentum = 0.0 if self.friction is None else ("slow", self.friction)
        named = {name: value for name, value in self._asdict().items() if name != "friction"}
        return named | {"momentum": momentum}


def increments(
    task: MultiIndexFamily, state: State, sgd: Sgd, draws: int, seed: int = 0
) -> np.ndarray:
    """Changes of the flat statistics over δ in one step, in as many independent steps."""
    rng, K, r, b = np.random.default_rng(seed), task.width, len(task.anchors), sgd.batch
    delta, m = sgd.step / DIM, r + 2 * K
    L = np.linalg.cholesky(task.gram)
    zeros = {name: np.zeros(shape) for name, shape in _shapes(task).items()}
    now = zeros | {name: np.asarray(value, float) for name, value in state.items()}

    # weights and velocities side by side, in coordinates of the anchors and 2K more
    R, X, S = now["R"], now["cross_R"], now["velocity_R"]
    values, vectors = np.linalg.eigh(np.block([[R, X], [X.T, S]]))
    both = vectors * np.sqrt(np.maximum(values, 0.0))
    W = np.concatenate([np.linalg.solve(L, now["M"].T).T, both[:K]], axis=1)
    U = np.concatenate([np.linalg.solve(L, now["velocity_M"].T).T, both[K:]], axis=1)

    c = rng.choice(len(task.weights), p=task.weights, size=(draws, b))
    x = rng.normal(size=(draws, b, m + b)) / np.sqrt(task.precision)
    x[..., m:] = _triangles(rng, draws, b, DIM - m) / np.sqrt(task.precision)
    x[..., :r] += (task.means @ L)[c]
    values, vectors = np.linalg.eigh(task.spike)
    spike = vectors * np.sqrt(np.maximum(values, 0.0))
    x[..., :r] += rng.normal(size=(draws, b, r)) @ np.linalg.solve(L, spike).T

    readout, g = _gradients(task, now["v"], c, x[..., :r] @ L.T, x[..., :m] @ W.T, rng)
    G_v, G = readout.mean(1), np.einsum("nbk,nbm->nkm", g, x) / b
    if sgd.normalised:
        norm = np.sqrt(np.sum(G**2, axis=(1, 2)) + np.sum(G_v**2, axis=1))
        size = np.sqrt(DIM) / np.where(norm > 0, norm, 1.0)
        G_v, G = size[:, None] * G_v, size[:, None, None] * G
    W, U = (np.pad(some, ((0, 0), (0, b))) for some in (W, U))
    G_v, G = G_v + task.ridge * now["v"], G + task.ridge * W
    if sgd.friction is None:
        moved_v, moved = G_v, G
    else:
        keep = 1 - sgd.friction * delta
        moved_v, moved = keep * now["velocity_v"] + delta * G_v, keep * U + delta * G
    new = W - delta * moved
    if task.spherical:
        new /= np.linalg.norm(new, axis=2, keepdims=True)

    after = {"v": now["v"] - sgd.readout_step * delta * moved_v, "M": new[..., :r] @ L.T}
    after["R"] = new[..., r:] @ np.swapaxes(new[..., r:], 1, 2)
    names = [name for name in ("v", "M", "R") if name != "v" or task.trained]
    if sgd.friction is not None:
        after |= {"velocity_v": moved_v, "velocity_M": moved[..., :r] @ L.T}
        after["velocity_R"] = moved[..., r:] @ np.swapaxes(moved[..., r:], 1, 2)
        after["cross_R"] = new[..., r:] @ np.swapaxes(moved[..., r:], 1, 2)
        names += [f"velocity_{name}" for name in names] + ["cross_R"]
    upper = np.triu_indices(K)
    columns = []
    for name in names:
        change = (after[name] - now[name]) / delta
        flat = change[:, *upper] if name in ("R", "velocity_R") else change.reshape(draws, -1)
        columns.append(flat)
    return np.concatenate(columns, axis=1)


def _shapes(task: MultiIndexFamily) -> dict[str, tuple[int, ...]]:
    K, r = task.width, len(task.anchors)
    square = dict.fromkeys(("velocity_R", "cross_R"), (K, K))
    return {"v": (K,), "velocity_v": (K,), "velocity_M": (K, r), **square}


def _triangles(rng: np.random.Generator, draws: int, b: int, freedom: int) -> np.ndarray:
    T = np.tril(rng.normal(size=(draws, b, b)), -1)
    diagonal = np.arange(b)
    T[:, diagonal, diagonal] = np.sqrt(rng.chisquare(freedom - diagonal, size=(draws, b)))
    return T


def _gradients(
    task: MultiIndexFamily,
    v: np.ndarray,
    c: np.ndarray,
    anchors: np.ndarray,
    fields: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """∂ℓ/∂v and ∂ℓ/∂s of every sample."""
    draws, b, K = fields.shape
    noise = rng.normal(size=draws * b)
    flat = c.ravel(), anchors.reshape(draws * b, -1), noise, fields.reshape(-1, K)
    g, readout = gradients(task, *flat, v)
    readout = readout if task.trained else np.zeros_like(g)
    return readout.reshape(draws, b, K), g.reshape(draws, b, K)

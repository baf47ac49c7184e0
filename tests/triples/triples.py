"""Problems written only as JAX functions, each with its twin among the tasks of the library."""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import sgdlimits as sl
from sgdlimits.tasks import Task
from sgdlimits.triples.triple import Triple

SNR, PRECISION, RIDGE = 2.0, 4.0, 0.1


class Twin(NamedTuple):
    """A triple, its task, and the task's state at the triple's parameters."""

    triple: Triple
    task: Task
    state: Callable[[Any], dict[str, Any]]
    step: float


def gaussian(key: jax.Array, dim: int) -> jax.Array:
    """x ~ N(0, I/dim)."""
    return jax.random.normal(key, (dim,)) / jnp.sqrt(dim)


# --- matrix PCA: the spike is the first axis ----------------------------------------------------


def pca_loss(x: jax.Array, Y: jax.Array) -> jax.Array:
    return -2 * x @ (Y @ x) + (x @ x) ** 2


def pca_sample(key: jax.Array, dim: int) -> jax.Array:
    # single precision for the noise: twice as fast, and its law is accurate to 1e-7
    return jax.random.normal(key, (dim, dim), dtype=jnp.float32).at[0, 0].add(SNR)


@functools.cache  # one triple, one compilation
def pca(*names: str) -> Triple:
    """Matrix PCA with some of the statistics m and r2."""

    def statistics(x: jax.Array, dim: int) -> jax.Array:
        found = {"m": x[0], "r2": x[1:] @ x[1:]}
        return jnp.stack([found[name] for name in names])

    return Triple(pca_loss, pca_sample, statistics, gaussian, names)


@functools.cache
def pca_twin() -> Twin:
    task = sl.tasks.SpikedTensor(order=2, snr=SNR)
    return Twin(pca("m", "r2"), task, lambda x: {"m": x[0], "r2": x[1:] @ x[1:]}, step=0.5)


# --- XOR: mu and nu are the first two axes ------------------------------------------------------


def xor_loss(params: dict[str, jax.Array], datum: dict[str, jax.Array]) -> jax.Array:
    h = params["v"] @ jax.nn.relu(params["W"] @ datum["x"])
    squares = jax.tree.map(lambda p: jnp.sum(p**2), params)
    return (
        -datum["y"] * h
        + jax.nn.softplus(h)
        + RIDGE / 2 * functools.reduce(operator.add, jax.tree.leaves(squares))
    )


def xor_sample(key: jax.Array, dim: int) -> dict[str, jax.Array]:
    which, noise = jax.random.split(key)
    c = jax.random.randint(which, (), 0, 4)
    mean = jnp.where(c % 2 == 0, 1.0, -1.0) * jax.nn.one_hot(c // 2, dim)
    x = mean + jax.random.normal(noise, (dim,)) / jnp.sqrt(PRECISION)
    return {"x": x, "y": (c < 2).astype(x.dtype)}


def xor_statistics(params: dict[str, jax.Array], dim: int) -> jax.Array:
    W = params["W"]
    R = W[:, 2:] @ W[:, 2:].T
    return jnp.concatenate([params["v"], W[:, :2].ravel(), R[jnp.triu_indices(len(W))]])


def xor_init(key: jax.Array, dim: int) -> dict[str, jax.Array]:
    one, two = jax.random.split(key)
    W = jax.random.normal(two, (4, dim)) / jnp.sqrt(dim)
    return {"v": jax.random.normal(one, (4,)), "W": W}


@functools.cache
def xor_twin() -> Twin:
    def state(params: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        W = params["W"]
        return {"v": params["v"], "M": W[:, :2], "R": W[:, 2:] @ W[:, 2:].T}

    task = sl.tasks.XorMixture(width=4, precision=PRECISION, ridge=RIDGE)
    return Twin(Triple(xor_loss, xor_sample, xor_statistics, xor_init), task, state, step=1.0)


# --- no paper's model: logistic regression of two classes, with ridge ---------------------------


def logistic_loss(w: jax.Array, datum: tuple[jax.Array, jax.Array]) -> jax.Array:
    x, y = datum
    return jax.nn.softplus(-y * (w @ x)) + RIDGE / 2 * w @ w


def logistic_sample(key: jax.Array, dim: int) -> tuple[jax.Array, jax.Array]:
    which, noise = jax.random.split(key)
    y = jax.random.rademacher(which, (), dtype=jnp.float64)
    return (y * jax.nn.one_hot(0, dim) + jax.random.normal(noise, (dim,)), y)


@functools.cache
def logistic_twin() -> Twin:
    def statistics(w: jax.Array, dim: int) -> jax.Array:
        return jnp.stack([w[0], w[1:] @ w[1:]])

    task = sl.tasks.MultiIndexTask(
        loss=lambda s, v, y: jax.nn.softplus(-y * s[0]),
        anchors=["mu"],
        means=[[1.0], [-1.0]],
        labels=[1, -1],
        ridge=RIDGE,
        kinks="none",
    )
    triple = Triple(logistic_loss, logistic_sample, statistics, gaussian)
    return Twin(triple, task, lambda w: {"M": [[w[0]]], "R": [[w[1:] @ w[1:]]]}, step=2.0)

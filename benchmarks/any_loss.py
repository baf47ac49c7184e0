"""The generator of any loss: its time is linear in the dimension and in the number of samples."""

import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import sgdlimits as sl
from benchmarks.row import Row

REPEATS, DIM, SAMPLES = 5, 1600, 10_000


def loss(x: jax.Array, y: jax.Array) -> jax.Array:
    return (x @ x) ** 2 / 4 - (x @ y) ** 2 / 2


def normal(key: jax.Array, dim: int) -> jax.Array:
    return jax.random.normal(key, (dim,))


def statistics(x: jax.Array, _: int) -> jax.Array:
    return jnp.stack([x[0], x @ x])


def seconds(dim: int, samples: int) -> float:
    triple = sl.Triple(loss, normal, statistics, normal)
    params = np.ones(dim) / np.sqrt(dim)
    start = time.perf_counter()
    sl.generator(triple, params, step=1.0, samples=samples)
    return time.perf_counter() - start


def linear_cost() -> Iterator[Row]:
    """Alternate the sizes, so that a noisy machine is noisy to both."""
    sizes = {"dim": (DIM // 4, SAMPLES), "samples": (DIM, SAMPLES // 4)}
    for name, small in sizes.items():
        large = (DIM, SAMPLES)
        for size in (small, large):
            seconds(*size)  # compile
        ratios = [seconds(*large) / seconds(*small) for _ in range(REPEATS)]
        what = f"generator, dim {DIM}, {SAMPLES} samples: time / time at a quarter of {name}"
        yield Row(what, float(np.median(ratios)), 4.6, False)

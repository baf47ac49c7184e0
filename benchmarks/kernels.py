"""The tangent kernel of a real network, layer by layer, against the one from its gradients."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import sgdlimits as sl
from benchmarks.row import Row

INPUTS, DIM, WIDTH, DEPTH = 500, 10, 512, 3
REPEATS = 3  # of ours; gradients take long enough to be timed once


def from_gradients(weights: Any, inputs: jax.Array) -> jax.Array:
    """All gradients as one matrix, times its transpose."""

    def output(weights: Any, x: jax.Array) -> jax.Array:
        for number, (W, b) in enumerate(weights):
            entering = x if number == 0 else jax.nn.relu(x)
            x = W @ entering / jnp.sqrt(W.shape[1]) + 0.0 * b
        return x[0]

    parts = jax.vmap(partial(jax.grad(output), weights))(inputs)
    jacobian = jnp.concatenate(
        [part.reshape(len(inputs), -1) for part in jax.tree.leaves(parts)], 1
    )
    return jacobian @ jacobian.T


def tangent_kernel() -> Iterator[Row]:
    """Time and peak memory of 500 inputs through three layers of width 512, in float64."""
    network = sl.lectures.networks.Network(DIM, width=WIDTH, depth=DEPTH)
    weights = network.random_weights()
    X = np.random.default_rng(0).standard_normal((INPUTS, DIM))
    with jax.enable_x64(True):
        on_device = jax.tree.map(jnp.asarray, (weights, X))
        theirs = jax.jit(from_gradients).lower(*on_device).compile()
        size = _scratch(theirs)
        expected, slow = _timed(lambda: np.asarray(theirs(*on_device)), 1)
        ours = jax.jit(lambda w, x: network.tangent_kernel_of(w, x, x)).lower(*on_device).compile()
        small = _scratch(ours)
    found, fast = _timed(lambda: network.tangent_kernel(weights, X), REPEATS)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    what = f"tangent kernel, {INPUTS} inputs, 3 layers of {WIDTH}: gradients / ours"
    yield Row(f"{what}, time", slow / fast, 10.0, True)
    yield Row(f"{what}, memory ({small / 1e6:.0f} MB)", size / small, 10.0, True)


def _scratch(program: Any) -> int:
    """Bytes that a compiled program needs beside its arguments and its result."""
    return int(program.memory_analysis().temp_size_in_bytes)


def _timed(compute: Callable[[], np.ndarray], repeats: int) -> tuple[np.ndarray, float]:
    value, spent = compute(), []
    for _ in range(repeats):
        begun = time.perf_counter()
        value = compute()
        spent.append(time.perf_counter() - begun)
    return value, min(spent)

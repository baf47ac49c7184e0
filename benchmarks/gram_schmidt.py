"""The chain as it was: a triangle by Gram and Schmidt at every step, normals by erf⁻¹ in blocks."""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sgdlimits._moves import moves
from sgdlimits.simulate.base import process_of
from sgdlimits.simulate.multi_index_chain import MultiIndexChain
from sgdlimits.tasks import MultiIndexFamily

LANES, BLOCK = 128, 32


def gram_schmidt_program(task: MultiIndexFamily, dim: int) -> Callable[[int], float]:
    """Seconds of processor time for one step of one run, as a function of their number."""
    with jax.enable_x64(True):
        chain: Any = process_of(task, method="chain", dim=dim, moves=moves(step=0.1), first_run=0)
        states = task.random_state(dim, 0, runs=LANES)
        v = jnp.asarray(states["v"].T) if task.trained else None
        M = jnp.asarray(np.moveaxis(states["M"], 0, -1))
        C = jnp.asarray(np.moveaxis(np.linalg.cholesky(states["R"]), 0, -1))
        program = jax.jit(lambda carry, blocks: _advance(chain, carry, blocks))

    def seconds(steps: int) -> float:
        with jax.enable_x64(True):
            begun = time.process_time()
            jax.block_until_ready(program((v, M, C), -(-steps // BLOCK)))
            return (time.process_time() - begun) / (-(-steps // BLOCK) * BLOCK) / LANES

    seconds(1)  # compile
    return seconds


def _advance(chain: MultiIndexChain, carry: Any, blocks: jax.Array) -> Any:
    def block(index: jax.Array, carry: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(0), index)
        noise = jax.random.normal(key, (BLOCK, chain.normals + 2, LANES))
        # the root of a chi-square number to leading order: the law does not matter for the time
        lengths = jnp.sqrt(chain.freedom[0]) + noise[:, -1] / jnp.sqrt(2.0)
        uniform = jax.scipy.special.ndtr(noise[:, -2])
        return jax.lax.fori_loop(
            0, BLOCK, lambda i, c: _step(chain, c, noise[i], uniform[i], lengths[i]), carry
        )

    return jax.lax.fori_loop(0, blocks, block, carry)


def _step(
    chain: MultiIndexChain, carry: Any, noise: jax.Array, uniform: jax.Array, rho: jax.Array
) -> Any:
    data, delta = chain.data, chain.clock(0.0)
    task = data.task
    K, r = task.width, len(task.anchors)
    v, M, C = carry
    scale = 1 / jnp.sqrt(task.precision)
    zeta, eta = noise[:r], noise[r : r + K]
    anchors = data.anchors(uniform, zeta)
    fields = jnp.sum(M * anchors[None], axis=1) + scale * jnp.sum(C * eta[None], axis=1)
    labels = data.labels(uniform, anchors, noise[-1])
    readout_gradient, g = data.gradients(fields, v, labels)
    g, rho = jax.lax.optimization_barrier((g, rho))
    keep, reach = 1 - delta * task.ridge, delta * scale
    if v is not None and readout_gradient is not None:
        v = keep * v - delta * readout_gradient
    M = keep * M - delta * g[:, None] * anchors[None]
    tail = jnp.concatenate([-reach * eta, (reach * rho)[None]])
    wide = jnp.concatenate([keep * C, jnp.zeros_like(C[:, :1])], axis=1)
    return v, M, _lower_triangle(wide + g[:, None] * tail[None])


def _lower_triangle(rows: jax.Array) -> jax.Array:
    """L with LLᵀ = BBᵀ by modified Gram–Schmidt on the rows of B."""
    K = rows.shape[0]
    columns = []
    for i in range(K):
        squared = jnp.sum(rows[0] ** 2, axis=0)
        unit = rows[0] * jnp.where(squared == 0, 0.0, jax.lax.rsqrt(squared))
        along = jnp.sum(rows * unit[None], axis=1)
        columns.append(jnp.concatenate([jnp.zeros((i, along.shape[1])), along]))
        rows = rows[1:] - along[1:, None] * unit[None]
    return jnp.stack(columns, axis=1)

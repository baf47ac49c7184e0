"""Parameters at which the conditions of the theorem are tested: such as SGD visits, and varied."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._pieces import Pieces
from sgdlimits.triples.triple import Params, Triple, draw_params

PATHS = 8  # independent runs of SGD
RECORDS = 4  # times at which each is looked at, after its start
SCALES = (0.5, 1.5)  # factors by which every array of the parameters is multiplied


def visited(
    triple: Triple, dim: int, step: float, time: float, count: int, seed: int, pure: int = 0
) -> Params:
    r"""Many different parameters of order one, along a leading axis.

    Each is x = s·X_t + c·(X'_{t'} − X'_0): a point X_t on one run of SGD at δ = step/dim, rescaled,
    plus a multiple of how far another, independent run has moved from its own start, X'_0. t and t'
    are among five equally spaced times up to ``time``; s is uniform in [½, 3/2] and c in [−1, 1],
    drawn for each array of the parameters on its own.

    Why so: SGD finds the directions in which the loss has structure, and random perturbations miss
    them in high dimension; but all runs follow one curve in the limit, which mixtures of two runs
    leave. At ``time = 0`` only rescaled draws of the initial law remain. Times and factors depend
    on ``seed`` alone, so that state i at one dim can be compared with state i at another. The first
    ``pure`` states are points of the runs themselves, s = 1 and c = 0, from their starts on.
    """
    generator = np.random.default_rng(seed)
    own, other = generator.integers(PATHS, size=(2, count))
    when, other_when = generator.integers(RECORDS + 1, size=(2, count))
    when[:pure] = np.linspace(0, RECORDS, pure + 1)[:-1].astype(int)
    own[:pure] = np.arange(pure) % PATHS
    key = jax.random.key(seed)
    if time > 0:
        steps = max(1, round(time * dim / step / RECORDS))
        delta = jnp.asarray(step / dim)  # an array: one compilation serves all step sizes
        path = _paths(triple, dim, delta, steps, key)
    else:
        own, when, other_when = np.arange(count), 0 * when, 0 * when
        starts = _starts(triple.init, dim, max(count, PATHS), key)
        path = jax.tree.map(lambda x: np.asarray(x)[None], starts)
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(path)):
        raise _checks.InputError(
            f"step={step} is not allowed: SGD diverges before time={time} at dim={dim}; "
            "take a smaller step or time"
        )

    def mixed(leaf: np.ndarray) -> Array:
        shape = (count,) + (1,) * (leaf.ndim - 2)
        scale, share = generator.uniform(*SCALES, count), generator.uniform(-1, 1, count)
        scale[:pure], share[:pure] = 1.0, 0.0
        scale, share = scale.reshape(shape), share.reshape(shape)
        moved = leaf[other_when, other] - leaf[0, other]
        return jnp.asarray(scale * leaf[when, own] + share * moved)

    return jax.tree.map(mixed, path)


def _paths(triple: Triple, dim: int, delta: Array, steps: int, key: Any) -> Params:
    """Runs of SGD at their start and after 1, …, RECORDS times ``steps`` steps: (record, path)."""
    params, pieces = _starts(triple.init, dim, PATHS, key), Pieces()
    records = [params]

    def some(first: int, last: int) -> None:
        nonlocal params
        span = done + jnp.asarray(first), done + jnp.asarray(last)
        params = _later(triple.loss, triple.sample, dim, params, delta, span, key)
        jax.block_until_ready(params)

    for record in range(RECORDS):
        done = record * steps
        pieces.of(steps, some)
        records.append(params)
    return jax.tree.map(lambda *rows: np.stack(rows), *records)


@compiled
def _starts(init: Any, dim: int, count: int, key: Any) -> Params:
    """Draws of the initial law, where ``count`` paths start."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))
    return draw_params(init, dim, keys)


@compiled
def _later(
    loss: Any,
    sample: Any,
    dim: int,
    params: Params,
    delta: Array,
    span: tuple[Array, Array],
    key: Any,
) -> Params:
    """The runs some steps later."""
    first, last = span

    def run(params: Params, path: Array) -> Params:
        own = jax.random.fold_in(key, path)

        def step(index: Array, params: Params) -> Params:
            datum = sample(jax.random.fold_in(own, index + 1), dim)
            gradient = jax.grad(loss)(params, datum)
            return jax.tree.map(lambda x, g: x - delta * g, params, gradient)

        return jax.lax.fori_loop(first, last, step, params)

    return jax.vmap(run)(params, jnp.arange(PATHS))

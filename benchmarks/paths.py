"""Sample paths against the plain scheme: Euler–Maruyama, with the diffusion by quadrature."""

import time
from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

import sgdlimits as sl
from benchmarks.row import Row
from sgdlimits.dynamics.model import Model

WIDTH, DIM, TIME, RUNS, NOISE = 2, 3000, 10.0, 64, 0.5
NODES = 7 ** (WIDTH + 1)  # integrate moments of degree 12
STEPS = 20  # of the plain scheme that are timed
REPEATS = 3


def plain_network() -> sl.tasks.MultiIndexTask:
    """The loss of phase retrieval, without its closed forms."""

    def loss(s: Array, _: Array | None, y: Array) -> Array:
        return (y - jnp.sum(s**2) / WIDTH) ** 2 / 2

    return sl.tasks.MultiIndexTask(
        loss=loss,
        width=WIDTH,
        anchors=["teacher"],
        labels=lambda _, a, e: a[0] ** 2 + NOISE**0.5 * e,
        spherical=True,
        kinks="none",
    )


@eqx.filter_jit
def euler(
    exact: Model,
    numerical: Model,
    vectors: Float[Array, "runs n"],
    key: Array,
    steps: Array,
    time_step: Array,
) -> Float[Array, "runs n"]:
    """So many steps of Euler–Maruyama: drift in closed form, diffusion by quadrature."""

    def one(vector: Array, noise: Array) -> Array:
        values, directions = jnp.linalg.eigh(numerical.diffusion(vector) * time_step / DIM)
        spread = directions * jnp.sqrt(jnp.maximum(values, 0.0))
        return exact.retract(vector + time_step * exact.drift(vector) + spread @ noise)

    def step(i: Array, vectors: Array) -> Array:
        noise = jax.random.normal(jax.random.fold_in(key, i), vectors.shape)
        return jax.vmap(one)(vectors, noise)

    return jax.lax.fori_loop(0, steps, step, vectors)


def sample_paths() -> Iterator[Row]:
    """Both take the same time steps; ours include the check of their error."""
    overlaps = np.full((WIDTH, 1), DIM**-0.5)
    start = {"M": overlaps, "R": np.eye(WIDTH) - overlaps @ overlaps.T}
    limit = sl.effective_dynamics(sl.tasks.PhaseRetrieval(width=WIDTH, noise=NOISE), step=0.05)
    numerical = sl.effective_dynamics(plain_network(), step=0.05, nodes=NODES).model

    def ours() -> float:
        paths = limit.sample_paths(start, dim=DIM, time=TIME, runs=RUNS)
        return float(paths.attrs["time_step"])

    time_step = ours()  # compile
    with jax.enable_x64(True):
        vectors = jnp.broadcast_to(limit.ravel(start), (RUNS, len(limit.coordinates)))
        arguments = limit.model, numerical, vectors, jax.random.key(0)
        counts = [jnp.asarray(count) for count in (0, STEPS)]
        size = jnp.asarray(time_step)
        euler(*arguments, counts[0], size).block_until_ready()
        seconds = []
        for _ in range(REPEATS):
            begun = time.perf_counter()
            ours()
            middle = time.perf_counter()
            euler(*arguments, counts[1], size).block_until_ready()
            per_step = (time.perf_counter() - middle) / STEPS
            seconds.append((middle - begun, per_step * TIME / time_step))
    new, old = np.min(seconds, axis=0)
    what = f"phase retrieval, width {WIDTH}, {RUNS} paths: Euler with {NODES} nodes / ours"
    yield Row(what, old / new, 20.0, True)

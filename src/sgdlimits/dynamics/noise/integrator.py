r"""Paths of an SDE whose noise is small: kicks of noise between steps along the drift.

For du = h dt + √(Σ/dim) dB a step of length τ is a Strang splitting: half a step along the drift,
a Gaussian kick of covariance τΣ/dim with Σ where the kick is given, half a step along the drift;
halves that meet are taken as one. The drift's steps are those of the classical Runge–Kutta method.

Let A = h·∇ and N/dim = Σ:∇²/(2 dim) be the generators of both parts. Up to third order in τ the
splitting errs by τ³ [·, [·, ·]] with A and N/dim in the brackets, and a kick differs from the flow
of N/dim at order (τ/dim)², since Σ moves by the noise itself meanwhile. So expectations err by

    O(τ⁴) + O(τ²/dim) + O(τ/dim²):

order four without noise, order two in effects of the noise as long as τ > 1/dim, where time is in
units of the drift's time scale. Euler–Maruyama errs by O(τ). Where noise pushes a path out of the
states (R not positive semidefinite) it is put back, at an error that is not smooth in τ.

Source: a scheme in the sense of Milstein and Tretyakov for small noise (MT97), by splitting.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._compiled import compiled
from sgdlimits._pieces import Pieces
from sgdlimits._segments import seed_words
from sgdlimits._types import Index
from sgdlimits.dynamics.model import Vector

RECORDS = 16  # in one call
PROBES = 16  # vectors at which the time scale is looked at
LEAST_RATE = 0.1
# added to correlations, so that those of degenerate noise have a Cholesky factor
JITTER = 1e-12


@runtime_checkable
class SDE(Protocol):
    """What is integrated: a model, or one in other coordinates."""

    @property
    def exact(self) -> bool:
        """Whether expectations are in closed form."""
        ...

    def drift(self, vector: Vector) -> Vector:
        """The velocity h."""
        ...

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """Σ."""
        ...

    def retract(self, vector: Vector) -> Vector:
        """The nearest vector that is allowed."""
        ...


class Grid(eqx.Module):
    """How paths are cut into steps; arrays, so that one program serves all.

    Args:
        steps: number of steps between two records.
        time_step: their length.
        merged: how many elementary increments of the Brownian motion make that of one step. Paths
            with other steps follow the same Brownian motion if merged/time_step is the same.
    """

    steps: Index
    time_step: Float[Array, ""]
    merged: Index

    @classmethod
    def of(cls, spacing: float, steps: int, merged: int = 1) -> "Grid":
        """So many steps in the time between two records."""
        return cls(jnp.asarray(steps), jnp.asarray(spacing / steps), jnp.asarray(merged))


def advance(
    model: SDE,
    vectors: Float[Array, "runs n"],
    keys: Array,
    kicks: Index,
    records: int,
    grid: Grid,
    dim: Float[Array, ""],
    pieces: Pieces,
) -> tuple[Float[Array, "runs n"], Float[np.ndarray, "records runs n"]]:
    """Follow paths for the time of so many records, at most ``RECORDS``, one key per path.

    Args:
        model: drift and diffusion.
        vectors: where the paths are.
        keys: of the randomness of each path.
        kicks: how many each has had.
        records: how many to make.
        grid: the steps between two of them.
        dim: the dimension, infinite for no noise.
        pieces: that the steps are taken in.

    Returns:
        Where they are, and where they were at each record.
    """
    # sums over many nodes run for so long that optimising them pays off
    follow = _brief if model.exact else _long
    both = vectors, jnp.zeros((RECORDS, *vectors.shape), vectors.dtype)

    def some(first: int, last: int) -> None:
        nonlocal both
        span = jnp.asarray(first), jnp.asarray(last)
        both = follow(model, both, keys, kicks, span, grid, dim)
        both[0].block_until_ready()

    pieces.of(records * (int(grid.steps) + 1), some)
    return both[0], np.asarray(both[1])[:records]


def _advance(
    model: SDE,
    both: tuple[Float[Array, "runs n"], Float[Array, "records runs n"]],
    keys: Array,
    kicks: Index,
    span: tuple[Index, Index],
    grid: Grid,
    dim: Float[Array, ""],
) -> tuple[Float[Array, "runs n"], Float[Array, "records runs n"]]:
    """Some of the moves along the drift, of which a record has one more than it has steps."""
    moves = grid.steps + 1

    def move(number: Index, both: tuple[Array, Array]) -> tuple[Array, Array]:
        (vectors, records), i, j = both, jax.lax.div(number, moves), jax.lax.rem(number, moves)
        index = kicks + i * grid.steps + j - 1
        kicked = lambda: _kick(model, vectors, keys, index, grid, dim)  # noqa: E731
        vectors = jax.lax.cond(j > 0, kicked, lambda: vectors)
        at_end = (j == 0) | (j == grid.steps)
        vectors = along_drift(model, vectors, grid.time_step * jnp.where(at_end, 0.5, 1.0))
        return vectors, records.at[i].set(vectors)  # the last of its moves is what remains

    return jax.lax.fori_loop(*span, move, both)


_brief, _long = compiled(_advance), eqx.filter_jit(_advance)


def along_drift(model: SDE, vectors: Float[Array, "runs n"], time: Array) -> Array:
    """A step of the classical Runge–Kutta method; a loop, so that the drift is compiled once."""
    places, weights = jnp.array([0.0, 0.5, 0.5, 1.0]), jnp.array([1.0, 2.0, 2.0, 1.0]) / 6

    def stage(s: Index, both: tuple[Array, Array]) -> tuple[Array, Array]:
        total, last = both
        slopes = jax.vmap(model.drift)(vectors + time * places[s] * last)
        return total + time * weights[s] * slopes, slopes

    return jax.lax.fori_loop(0, 4, stage, (vectors, jnp.zeros_like(vectors)))[0]


def _kick(
    model: SDE, vectors: Float[Array, "runs n"], keys: Array, index: Index, grid: Grid, dim: Array
) -> Float[Array, "runs n"]:
    """Add noise, and go back to the states."""
    return jax.vmap(model.retract)(vectors + kick(model, vectors, keys, index, grid, dim)[0])


def kick(
    model: SDE, vectors: Float[Array, "runs n"], keys: Array, index: Index, grid: Grid, dim: Array
) -> tuple[Float[Array, "runs n"], Float[Array, "runs n n"]]:
    """The noise of a step, and the square root of its covariance."""

    def increment(j: Index, total: Array) -> Array:
        here = jax.vmap(jax.random.fold_in, (0, None))(keys, index * grid.merged + j)
        return total + jax.vmap(lambda key: jax.random.normal(key, total.shape[1:]))(here)

    noise = jax.lax.fori_loop(0, grid.merged, increment, jnp.zeros_like(vectors))
    roots = square_roots(jax.vmap(model.diffusion)(vectors))
    size = jnp.sqrt(grid.time_step / (dim * grid.merged))
    return size * jnp.einsum("rij,rj->ri", roots, noise), jnp.sqrt(grid.merged) * size * roots


def square_roots(matrices: Float[Array, "runs n n"]) -> Float[Array, "runs n n"]:
    """Square roots of positive semidefinite matrices, singular ones included.

    By Cholesky's method where it works, else, a hundred times slower, by eigenvectors. What is not
    finite has the root zero.
    """
    finite = jnp.all(jnp.isfinite(matrices), axis=(1, 2), keepdims=True)
    matrices = jnp.where(finite, matrices, 0.0)
    variances = jnp.maximum(jnp.diagonal(matrices, axis1=1, axis2=2), 0.0)
    scale = jnp.sqrt(jnp.where(variances > 0, variances, 1.0))[:, :, None]
    # a statistic without noise has a row of zeros, whose correlation is set to one
    still = jax.vmap(jnp.diag)(jnp.where(variances > 0, JITTER, 1.0))
    factors = jnp.linalg.cholesky(matrices / scale / jnp.swapaxes(scale, 1, 2) + still)
    roots = jnp.where(variances[:, :, None] > 0, scale * factors, 0.0)
    failed = jnp.any(jnp.isnan(roots), axis=(1, 2), keepdims=True)

    def mended() -> Array:
        values, directions = jnp.linalg.eigh(matrices)
        by_directions = directions * jnp.sqrt(jnp.maximum(values, 0.0))[:, None, :]
        return jnp.where(failed, by_directions, roots)

    return jax.lax.cond(jnp.any(failed), mended, lambda: roots)


def path_keys(seed: int, first: int, count: int, segment: int = 0) -> Array:
    """Keys of randomness of so many paths from number ``first`` on."""
    key = jax.random.wrap_key_data(jnp.asarray(seed_words(seed, segment)), impl="threefry2x32")
    return _path_keys(key, jnp.asarray(np.arange(first, first + count)))


@compiled
def _path_keys(key: Array, indices: Array) -> Array:
    return jax.vmap(jax.random.fold_in, (None, 0))(key, indices)


def fastest_rate(model: SDE, vectors: np.ndarray) -> float:
    """The largest norm of the drift's Jacobian at ``PROBES`` of these vectors, finite ones."""
    finite = np.flatnonzero(np.all(np.isfinite(vectors), axis=1))
    if len(finite) == 0:
        return LEAST_RATE
    some = finite[np.linspace(0, len(finite) - 1, PROBES).round().astype(int)]
    jacobians = np.asarray(_jacobians(model, jnp.asarray(vectors[some])))
    jacobians = jacobians[np.all(np.isfinite(jacobians), axis=(1, 2))]
    return float(np.max(np.linalg.norm(jacobians, 2, axis=(1, 2)), initial=LEAST_RATE))


@compiled
def _jacobians(model: SDE, vectors: Float[Array, "p n"]) -> Float[Array, "p n n"]:
    return jax.lax.map(jax.jacfwd(model.drift), vectors)

"""The generator of any triple at given parameters, by automatic differentiation and sampling."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._precision import double_precision
from sgdlimits._types import Estimate, Number, WholeNumber
from sgdlimits.triples.averages import BATCHES, averages, batch_size
from sgdlimits.triples.triple import (
    Params,
    Triple,
    derivatives,
    statistics_at,
)

GROUP = 4  # samples of which derivatives of u are taken together
SIGNS = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / GROUP**0.5


class Generator(NamedTuple):
    r"""What drives the statistics u at given parameters, δ = step/dim (BGJ22, Theorem 2.2).

    Drifts and corrector are those that ``effective_dynamics`` gives for the tasks of the library.
    The matrices are covariance rates of u itself. ``effective_dynamics(...).diffusion`` is the
    covariance rate of √dim·u: ``dim`` times the total one. Errors are standard errors.
    """

    names: tuple[str, ...]
    statistics: np.ndarray  # u
    drift: Estimate  # h = −𝒜u + δ𝓛u
    population_drift: Estimate  # 𝒜u = ⟨∇Φ, ∇u⟩
    corrector: Estimate  # δ𝓛u = ½δ⟨V, ∇²u⟩
    covariance_rate: Estimate  # δJVJᵀ
    total_covariance_rate: Estimate  # δ·Cov(J∇L − ½δ⟨∇²u, ∇L⊗∇L⟩)


class Parts(NamedTuple):
    """𝒜u and ⟨V, ∇²u⟩ from every batch of samples at every state."""

    first: Float[Array, "batches states k"]
    second: Float[Array, "batches states k"]


@double_precision
def generator(
    triple: Triple,
    params: Any,
    step: Number,
    *,
    samples: WholeNumber = 10_000,
    seed: WholeNumber = 0,
    dim: WholeNumber | None = None,
) -> Generator:
    r"""Estimate 𝒜u, δ𝓛u and δJVJᵀ at given parameters, with standard errors.

    With g = ∇L(x, Y), Φ = E L, V = Cov(g) and J = ∇u,

    - 𝒜u = E[Jg] and δ𝓛u = ½δ⟨V, ∇²u⟩ = ½δ(E[gᵀ∇²u g] − ∇Φᵀ∇²u ∇Φ),
    - covariance rate = δ Cov(Jg) = δJVJᵀ,
    - total covariance rate = δ Cov(Jg − ½δ gᵀ∇²u g), which has the fluctuations of the
      second-order term too (BGJ22, Remark 2, with the factors −½ that its section 6 gives). For
      quadratic statistics of multi-index losses they are of the same order as δJVJᵀ.

    Each sample costs one gradient and two derivatives of u along it, forward over forward: no
    dim × dim matrix is formed, time is linear in ``samples`` and in the cost of loss and u, memory
    does not grow with ``samples``. Errors come from 20 independent batches of samples.

    Args:
        triple: the problem.
        params: where, of the form that ``triple.init`` gives.
        step: c in δ = c/dim; one unit of time is dim/step samples.
        samples: rounded up to a multiple of 20.
        seed: of the samples.
        dim: the dimension; the longest axis of ``params`` if left out.

    >>> from jax import numpy as jnp, random
    >>> pca = Triple(  # the leading eigenvector of E yyᵀ by a quartic loss
    ...     loss=lambda x, y: (x @ x) ** 2 / 4 - (x @ y) ** 2 / 2,
    ...     sample=lambda key, dim: random.normal(key, (dim,)),
    ...     statistics=lambda x, dim: jnp.stack([x[0], x @ x]),
    ...     init=lambda key, dim: random.normal(key, (dim,)) / jnp.sqrt(dim),
    ... )
    >>> x = np.zeros(50)
    >>> x[:2] = 1.0, 0.5  # |x|² = 5/4
    >>> estimates = generator(pca, x, step=1.0, samples=2000)
    >>> value, error = estimates.population_drift
    >>> bool(abs(value[0] - (5 / 4 - 1)) < 4 * error[0])
    True
    """
    if not isinstance(triple, Triple):
        raise _checks.InputError(
            f"triple={triple!r} is not allowed: triple must be an sgdlimits.Triple"
        )
    step = _checks.positive("step", step)
    samples = _checks.integer("samples", samples, least=2 * BATCHES)
    seed = _checks.integer("seed", seed, least=0)
    dim = longest_axis(params) if dim is None else _checks.integer("dim", dim, least=1)
    names = triple.statistic_names(dim)
    state = jax.tree.map(lambda x: x[None], triple.check_params(params, dim))
    mean, first, second, products = averages(_with_products, triple, dim, state, samples, seed)
    count, delta, k = batch_size(samples), step / dim, len(names)
    parts = _unbiased(triple, dim, state, mean, first, second, count)
    A, trace = (np.asarray(part)[:, 0] for part in parts)
    both = np.concatenate([np.asarray(first), np.asarray(second)], axis=-1)[:, 0]
    outer = both[:, :, None] * both[:, None, :]
    covariance = (np.asarray(products)[:, 0] - outer) * count / (count - 1)
    increment = np.concatenate([np.eye(k), -delta / 2 * np.eye(k)], axis=1)  # Jg − ½δ gᵀ∇²u g
    result = Generator(
        names=names,
        statistics=np.asarray(statistics_at(triple, dim, state))[0],
        drift=estimate(-A + delta / 2 * trace),
        population_drift=estimate(A),
        corrector=estimate(delta / 2 * trace),
        covariance_rate=estimate(delta * covariance[:, :k, :k]),
        total_covariance_rate=estimate(delta * increment @ covariance @ increment.T),
    )
    if not all(np.all(np.isfinite(part.value)) for part in result[2:]):
        raise _checks.InputError(
            f"params is not allowed: gradients of the loss or derivatives of the statistics there "
            f"are not finite (statistics {_checks.shown(result.statistics)})"
        )
    return result


def generator_parts(triple: Triple, dim: int, states: Params, samples: int, seed: int) -> Parts:
    """𝒜u and ⟨V, ∇²u⟩ at many states (along a leading axis), all seen through the same samples.

    Common samples make differences between states sharper than their values, and data, which may
    be large, are drawn only once. Batches are independent; ``samples`` is rounded up to a multiple
    of ``GROUP`` in each of them. No gradient is kept: a group of n is seen through n orthonormal
    sums w = Σ cᵢgᵢ of its gradients gᵢ, each of which is one pass backward. The first has equal
    weights, and J times it gives 𝒜u; the others are contrasts, Σ cᵢ = 0, of which
    E[wᵀ∇²u w] = ⟨V, ∇²u⟩.
    """
    grouped = eqx.tree_at(lambda t: t.sample, triple, _Group(triple.sample))
    first, second = averages(_parts, grouped, dim, states, math.ceil(samples / GROUP), seed)
    return Parts(first, second)


class _Group(eqx.Module):
    """A sampler of ``GROUP`` independent data, along a leading axis."""

    sample: Callable[..., Any]

    def __call__(self, key: Any, dim: int) -> Any:
        return jax.vmap(lambda k: self.sample(k, dim))(jax.random.split(key, GROUP))


def _parts(triple: Triple, dim: int, states: Params, data: Any) -> tuple[Array, Array]:
    def at(params: Params) -> tuple[Array, Array]:
        _, pull = jax.vjp(lambda x: jax.vmap(lambda datum: triple.loss(x, datum))(data), params)
        mean, *contrasts = (pull(row)[0] for row in jnp.asarray(SIGNS))
        mean = jax.tree.map(lambda g: g / GROUP**0.5, mean)
        first = jax.jvp(lambda x: triple.statistics(x, dim), (params,), (mean,))[1]
        squares = [derivatives(triple, dim, params, across)[1] for across in contrasts]
        return first, jnp.mean(jnp.stack(squares), axis=0)

    return jax.vmap(at)(states)


def estimate(batches: np.ndarray) -> Estimate:
    """The mean over independent batches, the first axis, and its standard error."""
    return Estimate(batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(batches.shape[0]))


def longest_axis(params: Any) -> int:
    """The dimension as it shows in the parameters."""
    axes = [size for leaf in jax.tree.leaves(params) for size in np.shape(leaf)]
    if not axes:
        raise _checks.InputError("params is not allowed: it must hold arrays, or dim must be given")
    return max(axes)


def _without_products(
    triple: Triple, dim: int, states: Params, datum: Any
) -> tuple[Params, Array, Array]:
    """One sample's gradient at every state, and what it does to u to first and second order."""

    def at(params: Params) -> tuple[Params, Array, Array]:
        gradient = jax.grad(triple.loss)(params, datum)
        return (gradient, *derivatives(triple, dim, params, gradient))

    return jax.vmap(at)(states)


def _with_products(
    triple: Triple, dim: int, states: Params, datum: Any
) -> tuple[Params, Array, Array, Array]:
    gradient, first, second = _without_products(triple, dim, states, datum)
    both = jnp.concatenate([first, second], axis=-1)
    return gradient, first, second, both[:, :, None] * both[:, None, :]


@compiled
def _unbiased(
    triple: Triple,
    dim: int,
    states: Params,
    mean: Params,
    first: Array,
    second: Array,
    count: int,
) -> Parts:
    """Subtract the mean gradient of each batch from its second-order term, n/(n−1) included."""

    def curvature(params: Params, gradient: Params) -> Array:
        return derivatives(triple, dim, params, gradient)[1]

    of_mean = jax.vmap(lambda batch: jax.vmap(curvature)(states, batch))(mean)
    return Parts(first, (second - of_mean) * count / (count - 1))

"""Numerical expectations over Gaussians: Gauss–Hermite rules and frozen scrambled Sobol nodes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats
from jaxtyping import Array, Float, Float64

from sgdlimits import _checks
from sgdlimits._types import Estimate, WholeNumber

SOBOL_REPLICATES = 8  # scrambles whose spread is the error bar


class Rule(NamedTuple):
    """Nodes and weights with Σ_q weights[q] f(nodes[q]) ≈ E f(z), z ~ N(0, I)."""

    nodes: Float64[np.ndarray, "q dim"]
    weights: Float64[np.ndarray, " q"]


def gauss_hermite(dim: WholeNumber, order: WholeNumber | Sequence[WholeNumber]) -> Rule:
    """The tensor product of Gauss–Hermite rules, for smooth integrands in few dimensions.

    Exact for polynomials of degree 2·order − 1 in each variable, which may have an order each.

    >>> rule = gauss_hermite(dim=1, order=3)
    >>> round(float(rule.weights @ rule.nodes[:, 0] ** 4), 12)  # E z⁴
    3.0
    """
    dim = _checks.integer("dim", dim, least=1)
    orders = order if isinstance(order, Sequence) else [order] * dim
    if len(orders) != dim:
        raise _checks.InputError(f"order={order!r} is not allowed: it must have {dim} entries")
    lines = [
        scipy.special.roots_hermitenorm(_checks.integer("order", one, least=1)) for one in orders
    ]
    grid = np.meshgrid(*(points for points, _ in lines), indexing="ij")
    nodes = np.stack([axis.ravel() for axis in grid], axis=-1)
    shares = (weights / weights.sum() for _, weights in lines)
    product = np.prod(np.meshgrid(*shares, indexing="ij"), axis=0).ravel()
    return Rule(nodes, product)


def sobol(
    dim: WholeNumber, count: WholeNumber, seed: WholeNumber = 0, *, mirrored: Any = ()
) -> Rule:
    """Scrambled Sobol points, for kinks and for higher dimension.

    Args:
        dim: number of Gaussian variables.
        count: number of nodes, rounded up to a power of two.
        seed: of the scramble; the nodes are the same for the same seed.
        mirrored: variables (their indices) in which half of the nodes are mirror images of the
            others. Their odd moments vanish exactly, so that derivatives with respect to their
            covariance stay right where it is singular; for integrands with jumps mirroring costs
            accuracy.

    >>> sobol(dim=2, count=1000).nodes.shape
    (1024, 2)
    """
    dim = _checks.integer("dim", dim, least=1)
    size = _checks.integer("count", count, least=2)
    seed = _checks.integer("seed", seed, least=0)
    flipped = _variables("mirrored", mirrored, dim)
    exponent = (size - 1).bit_length() - bool(flipped)
    engine = scipy.stats.qmc.Sobol(dim, scramble=True, rng=np.random.default_rng([seed, 1729]))
    nodes = scipy.special.ndtri(np.clip(engine.random_base2(exponent), 1e-16, 1 - 1e-16))
    if flipped:
        signs = np.ones(dim)
        signs[flipped] = -1
        nodes = np.concatenate([nodes, nodes * signs])
    return Rule(nodes, np.full(len(nodes), 1 / len(nodes)))


def product(first: Rule, second: Rule) -> Rule:
    """The tensor product of two rules: nodes of ``second`` vary fastest."""
    left = np.repeat(first.nodes, len(second.nodes), axis=0)
    right = np.tile(second.nodes, (len(first.nodes), 1))
    weights = np.outer(first.weights, second.weights).ravel()
    return Rule(np.concatenate([left, right], axis=1), weights)


def expectation(
    function: Callable[[Float[Array, " dim"]], Float[Array, "..."]],
    mean: Float[Array, " dim"],
    factor: Float[Array, "dim m"],
    *,
    smooth: bool,
    count: WholeNumber = 2**14,
) -> Estimate:
    """E f(mean + factor·z) for z ~ N(0, I), with an error estimate.

    Smooth functions of at most three variables use Gauss–Hermite, and the error is the change from
    a rule of half the order; the others use Sobol nodes, and the error is the standard error over
    independent scrambles. Call it inside ``jax.enable_x64(True)``.

    Args:
        function: maps one point to an array.
        mean: of the Gaussian.
        factor: any square root of its covariance.
        smooth: whether the function is analytic (no kinks, no jumps).
        count: total number of nodes.
    """

    def integrate(rule: Rule) -> Float[Array, "..."]:
        points = mean + jnp.asarray(rule.nodes) @ factor.T
        return jnp.tensordot(jnp.asarray(rule.weights), jax.vmap(function)(points), axes=1)

    dim = factor.shape[1]
    count = _checks.integer("count", count, least=2)
    if smooth and dim <= 3:
        order = hermite_order(dim, count)
        fine = integrate(gauss_hermite(dim, order))
        return Estimate(fine, jnp.abs(fine - integrate(gauss_hermite(dim, max(1, order // 2)))))
    replicate = max(2, count // SOBOL_REPLICATES)
    values = jnp.stack([integrate(sobol(dim, replicate, seed)) for seed in range(SOBOL_REPLICATES)])
    return Estimate(values.mean(0), values.std(0, ddof=1) / SOBOL_REPLICATES**0.5)


def mixture_expectation(
    function: Callable[[Float[Array, " dim"]], Float[Array, "..."]],
    weights: Float[Array, " k"],
    means: Float[Array, "k dim"],
    factors: Float[Array, "k dim m"],
    *,
    smooth: bool,
    count: WholeNumber = 2**14,
) -> Estimate:
    """E f(x) for x from a mixture of Gaussians; errors of the components add up.

    Args:
        function: maps one point to an array.
        weights: probability of each component.
        means: mean of each component.
        factors: a square root of each component's covariance.
        smooth: as for ``expectation``.
        count: nodes for each component.
    """
    parts = [
        expectation(function, mean, factor, smooth=smooth, count=count)
        for mean, factor in zip(means, factors, strict=True)
    ]
    total = sum(w * part.value for w, part in zip(weights, parts, strict=True))
    error = sum(w * part.error for w, part in zip(weights, parts, strict=True))
    return Estimate(jnp.asarray(total), jnp.asarray(error))


def hermite_line(order: WholeNumber) -> Float64[np.ndarray, "2 order"]:
    """Nodes and weights for one standard normal variable.

    >>> hermite_line(1).tolist()
    [[0.0], [1.0]]
    """
    rule = gauss_hermite(1, order)
    return np.stack([rule.nodes[:, 0], rule.weights])


def hermite_order(dim: WholeNumber, count: WholeNumber) -> int:
    """Order per variable of a Gauss–Hermite rule with about ``count`` nodes, at most 80."""
    _checks.integer("dim", dim, least=1)
    _checks.integer("count", count, least=1)
    return int(max(2, min(80, np.floor(count ** (1 / dim) + 1e-9))))


def _variables(name: str, value: Any, dim: int) -> list[int]:
    chosen = list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(i, int | np.integer) and 0 <= i < dim for i in chosen):
        raise _checks.InputError(
            f"{name}={value!r} is not allowed: {name} must be indices of variables in 0..{dim - 1}"
        )
    return [int(i) for i in chosen]

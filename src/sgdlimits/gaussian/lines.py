"""Integrals along lines: a normal variable integrated piece by piece between given breaks."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64

from sgdlimits import _checks
from sgdlimits._types import WholeNumber

WIDE = 2.0  # nodes are spread by the logistic law of this scale, wider than the normal one
NOWHERE = 60.0  # a break that does not exist is put here, where the density is zero
EDGE = 1e-12  # of the unit interval that nodes are spread over
REFINED = 32  # steps of the search for a zero in its cell: half of them halve it


def legendre(order: WholeNumber) -> Float64[np.ndarray, "2 order"]:
    """Nodes and weights of the Gauss–Legendre rule on [0, 1].

    >>> legendre(1).tolist()
    [[0.5], [1.0]]
    """
    nodes, weights = np.polynomial.legendre.leggauss(_checks.integer("order", order, least=1))
    return np.stack([(nodes + 1) / 2, weights / 2])


def padded(line: Float64[np.ndarray, "2 n"], size: int) -> Float64[np.ndarray, "2 size"]:
    """The same rule with more nodes: copies of the last one, without weight.

    >>> padded(legendre(1), 3).tolist()
    [[0.5, 0.5, 0.5], [1.0, 0.0, 0.0]]
    """
    copies = np.repeat(line[:, -1:] * [[1.0], [0.0]], size - line.shape[1], axis=1)
    return np.concatenate([line, copies], axis=1)


def piecewise(
    breaks: Float[Array, " b"], line: Float[Array, "2 order"]
) -> tuple[Float[Array, " q"], Float[Array, " q"]]:
    """Nodes and weights for a standard normal t, exact where smooth between the ``breaks``.

    With w = 1/(1 + exp(−t/2)) the integral becomes one over [0, 1] of a function that vanishes
    faster than any power at both ends; every piece gets the Gauss–Legendre rule ``line``. Nodes and
    weights are smooth in the breaks.

    Args:
        breaks: in any order; those beyond ±8 hardly matter.
        line: a rule on [0, 1].

    >>> with jax.enable_x64(True):
    ...     t, weights = piecewise(jnp.array([0.5]), jnp.asarray(legendre(10)))
    ...     jump = float(weights @ (t > 0.5))
    >>> round(jump, 7)  # 1 − Φ(0.5)
    0.3085375
    """
    cuts = jnp.sort(share_below(breaks))
    edges = jnp.concatenate([jnp.full(1, EDGE), cuts, jnp.full(1, 1 - EDGE)])
    lengths = jnp.diff(edges)[:, None]
    share, weights = line
    w = edges[:-1, None] + lengths * share
    t = place_of(w)
    density = WIDE / math.sqrt(2 * math.pi) * jnp.exp(-(t**2) / 2) / (w * (1 - w))
    return t.ravel(), (lengths * weights * density).ravel()


def share_below(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """The part w of the unit interval that is mapped to the left of t."""
    return jnp.clip(jax.nn.sigmoid(t / WIDE), EDGE, 1 - EDGE)


def place_of(w: Float[Array, "..."]) -> Float[Array, "..."]:
    """The t to whose left a part w of the unit interval is mapped."""
    return WIDE * (jnp.log(w) - jnp.log1p(-w))


def crossings(
    function: Callable[[Float[Array, ""]], Float[Array, " s"]],
    grid: Float[Array, " g"],
    most: int,
) -> Float[Array, "s most"]:
    """Zeros of each of the functions, at most so many, between points of the grid.

    Where there are fewer, the others are ``NOWHERE``. A zero is found in its cell by the Illinois
    method without derivatives, and by bisection in turn, since a function may be flat in most of
    the cell; one Newton step at the end makes it a smooth function of whatever ``function`` depends
    on.
    """
    values = jax.vmap(function)(grid)  # (g, s)
    finite = jnp.isfinite(values[:-1]) & jnp.isfinite(values[1:])
    change = finite & (jnp.sign(values[:-1]) * jnp.sign(values[1:]) < 0)
    cells = jnp.where(change, jnp.arange(len(grid) - 1)[:, None], len(grid))
    cells = jnp.sort(cells, axis=0)[:most].T  # (s, most)
    exists = cells < len(grid)
    left = jnp.where(exists, cells, 0)

    def one(index: Array, cell: Array) -> Float[Array, ""]:
        def value(t: Array) -> Array:
            return function(t)[index]

        def step(number: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            a, b, fa, fb = state
            halve = (fa == fb) | ((number % 2 == 0) & (fb != 0))
            t = jnp.where(halve, (a + b) / 2, b - fb * (b - a) / jnp.where(fa == fb, 1, fb - fa))
            ft = value(t)
            same = ft * fb > 0  # the zero stays with a: its value is halved so that b is not stuck
            return jnp.where(same, a, b), t, jnp.where(same, fa / 2, fb), ft

        ends = grid[cell], grid[cell + 1]
        start = (*ends, values[cell, index], values[cell + 1, index])
        root = jax.lax.stop_gradient(jax.lax.fori_loop(0, REFINED, step, start)[1])
        now, slope = jax.jvp(value, (root,), (jnp.ones_like(root),))
        slope = jax.lax.stop_gradient(slope)
        shift = jnp.where(slope == 0, 0.0, now / jnp.where(slope == 0, 1.0, slope))
        # the value of the step is negligible after the search; its derivative is not
        cell_size = grid[cell + 1] - grid[cell]
        return root - jnp.clip(shift, -cell_size, cell_size)

    index = jnp.arange(values.shape[1])[:, None] + jnp.zeros_like(left)
    roots = jax.vmap(jax.vmap(one))(index, left)
    return jnp.where(exists, roots, NOWHERE)

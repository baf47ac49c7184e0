"""Exact chains of SGD with batches, momentum, normalised or tangential gradients."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index
from sgdlimits.simulate import batch_noise, chi_square, noise
from sgdlimits.simulate.base import Moving, Process, Step, Words
from sgdlimits.simulate.kernel import as_one_kernel
from sgdlimits.simulate.rows import Block, Carry, Rows, Rule

_SAMPLES = 2**61  # from here on keys of a step are those of its samples,
_TRIANGLE = 2**61 - 1
BESIDE = 2**61 - 2  # the key of what else a gradient draws once in a step
_LENGTHS = 2**62  # and from here on those of its chi-square numbers


class MovedChain(Process):
    r"""Rows of coordinates that a gradient moves, in law those of SGD in dimension d.

    Of the d − r directions beyond the anchors, N are those that the N rows span, weights and
    velocities: there a gradient has normal coordinates. In the n = d − r − N that are left, K rows
    of it are TZ with T K × q and Z q × n, of independent normal numbers, and as only inner products
    matter Z may be the triangle of Bartlett (1933): lower triangular, with roots of chi-square
    numbers with n, n − 1, … degrees of freedom on its diagonal and normal numbers below.
    """

    rule: eqx.AbstractVar[Rule]
    first_run: eqx.AbstractVar[Index]
    freedom: eqx.AbstractVar[Float[Array, " q"]]  # n, n − 1, …, at least zero; empty if n is zero

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def along(self) -> int:
        """How many coordinates are those along anchors, r."""

    @abc.abstractmethod
    def gradient(self, weights: Rows, key: noise.Key, triangle: Block | None) -> Rows:
        """A gradient; ``triangle`` is Z, None where no direction is beyond."""

    # --- given ----------------------------------------------------------------------------------

    def advance(self, moving: Moving, words: Words, first: Index, last: Index) -> Moving:
        """As one function of machine code."""
        return as_one_kernel(Process.advance)(self, moving, words, first, last)

    @property
    def runs_last(self) -> bool:
        """So that a step is elementwise over them."""
        return True

    def stepper(self, words: Words) -> Step:
        """A step of a run draws from the key of its number."""
        key = noise.derived((words[0], words[1]), self.first_run // self.lanes)
        coefficients = jax.vmap(chi_square.series)(self.freedom) if len(self.freedom) else None

        def step(number: Index, carry: Carry, delta: Float[Array, ""]) -> Carry:
            own = noise.derived(key, number)
            triangle = None if coefficients is None else self._triangle(own, coefficients)
            gradient = self.gradient(carry.weights, own, triangle)
            return self.rule.move(carry, gradient, delta, self.along)

        return step

    def _triangle(self, key: noise.Key, coefficients: Float[Array, "q powers"]) -> Block:
        """Z; its columns beyond the n-th vanish."""
        q = len(self.freedom)
        own, half = noise.derived(key, _TRIANGLE), (q + 1) // 2
        count = 1 if q == 1 else q + half * q
        normals, _ = batch_noise.normals_and_uniforms(own, count, 0, self.lanes)

        def length(given: tuple[Array, ...]) -> Float[Array, " runs"]:
            number, z, dof, series = given
            return jnp.sqrt(chi_square.draw(noise.derived(key, number), z, dof, series))

        numbers = _LENGTHS + np.arange(q)
        given = jnp.asarray(numbers), normals[:q], self.freedom, coefficients
        if q == 1:
            return length(tuple(part[0] for part in given))[None, None]
        diagonal = jax.lax.map(length, given)
        below = np.tri(q, k=-1)[:, :, None] * jnp.where(self.freedom > 0, 1.0, 0.0)[:, None]
        # the same numbers once more, turned by a half turn: below the diagonal each is there once
        upper = normals[q:].reshape(half, q, -1)
        both = jnp.concatenate([upper, upper[: q // 2][::-1, ::-1]])
        return np.eye(q)[:, :, None] * diagonal + below * both


def sample_key(key: noise.Key, number: Index) -> noise.Key:
    """That of a sample, or of a block of them, of the step with this key."""
    return noise.derived(key, _SAMPLES + number)


def times(T: Float[Array, "K q runs"], Z: Float[Array, "q m runs"]) -> Float[Array, "K m runs"]:
    """The product TZ for every run."""
    q = len(Z)
    if not q:
        return jnp.zeros((T.shape[0], *Z.shape[1:]))
    if q <= 12:
        return sum((T[:, j, None] * Z[j] for j in range(1, q)), start=T[:, 0, None] * Z[0])

    def onward(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        return total + pair[0][:, None] * pair[1], None

    start = jnp.zeros((T.shape[0], *Z.shape[1:]))
    return jax.lax.scan(onward, start, (jnp.swapaxes(T, 0, 1), Z))[0]


def rule_of(moves: Moves, dim: int, ridge: float, *, spherical: bool) -> Rule:
    """How these moves take a step in dimension ``dim``."""
    return Rule(
        dim=staged(float(dim)),
        ridge=staged(ridge),
        readout_step=staged(moves.readout_step),
        retained=staged(moves.momentum),
        friction=staged(0.0 if moves.friction is None else moves.friction),
        normalised=moves.normalised,
        tangential=moves.tangential,
        spherical=spherical,
        slow=moves.friction is not None,
    )


def freedom_of(directions: int, columns: int, most: int) -> np.ndarray:
    """Degrees of freedom on the diagonal of a triangle with at most so many rows.

    Args:
        directions: how many there are beyond the anchors, d − r.
        columns: how many of them rows are kept in.
        most: q.
    """
    left = directions - columns
    return np.maximum(left - np.arange(most if left > 0 else 0), 0).astype(float)

"""The exact chain: SGD in any dimension at a cost that does not depend on it."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index
from sgdlimits.simulate import chi_square
from sgdlimits.simulate.base import Carry, Process

LANES = 128  # runs that share a stream of noise and are advanced together
BLOCK = 32  # steps whose noise is drawn at once: it must fit into the cache


class Freedom(eqx.Module):
    """Degrees of freedom of the chi-square numbers of a step.

    >>> Freedom.of(40, 1000).few
    (40, None)
    """

    dof: Float[Array, " blocks"]
    few: tuple[int | None, ...] = eqx.field(static=True)  # those that are small, else None

    @classmethod
    def of(cls, *dof: int) -> "Freedom":
        """From whole numbers."""
        few = tuple(number if number < chi_square.FEW else None for number in dof)
        return cls(jnp.asarray(dof, dtype=float), few)


class Chain(Process):
    """A Markov chain of summary statistics with exactly the law they have under SGD.

    Runs lie along the last axis, so that a step is elementwise over them. A step consumes
    ``normals`` standard normal numbers per run, and the lengths of the noise in the directions that
    neither the weights nor the anchors span: for each block of directions with a variance of its
    own the root of a chi-square number. Most tasks have one block.
    """

    lanes: ClassVar[int] = LANES
    delta: eqx.AbstractVar[Float[Array, ""]]  # δ = step/dim
    first_run: eqx.AbstractVar[Index]
    freedom: eqx.AbstractVar[Freedom]

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def normals(self) -> int:
        """How many standard normal numbers a step consumes."""

    @abc.abstractmethod
    def step(
        self, carry: Carry, noise: Float[Array, "j runs"], lengths: Float[Array, "blocks runs"]
    ) -> Carry:
        """One step of SGD."""

    # --- given ----------------------------------------------------------------------------------

    def advance(self, carry: Carry, key: Array, first: Index, last: Index) -> Carry:
        """Draw noise block by block, each from the key of its own position in the run."""
        key = jax.random.fold_in(key, self.first_run // LANES)

        def block(index: Index, carry: Carry) -> Carry:
            noise, lengths = self._noise(jax.random.fold_in(key, index))
            start = index * BLOCK
            return jax.lax.fori_loop(
                jnp.maximum(first - start, 0),
                jnp.minimum(last - start, BLOCK),
                lambda i, carry: self.step(carry, noise[i], lengths[i]),
                carry,
            )

        return jax.lax.fori_loop(first // BLOCK, -(-last // BLOCK), block, carry)

    def _noise(
        self, key: Array
    ) -> tuple[Float[Array, "block j runs"], Float[Array, "block blocks runs"]]:
        blocks = len(self.freedom.few)
        noise = jax.random.normal(key, (BLOCK, self.normals + blocks, LANES))
        squares = []
        for number, few in enumerate(self.freedom.few):
            if few is None:
                normal = noise[:, self.normals + number]
                squares.append(chi_square.from_normal(normal, self.freedom.dof[number]))
            else:
                other = jax.random.fold_in(key, number)
                squares.append(chi_square.from_uniforms(other, few, (BLOCK, LANES)))
        return noise[:, : self.normals], jnp.sqrt(jnp.stack(squares, axis=1))

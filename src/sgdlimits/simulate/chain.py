"""The exact chain: SGD in any dimension at a cost that does not depend on it."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from sgdlimits._types import Index
from sgdlimits.simulate import chi_square, noise
from sgdlimits.simulate.base import Carry, Process
from sgdlimits.simulate.kernel import as_one_kernel

LANES = 128  # runs that share a stream of noise and are advanced together
_LENGTHS = 2**62  # from here on keys of a step are those of its chi-square numbers


class Noise(NamedTuple):
    """What a step consumes."""

    normals: Float[Array, "j runs"]
    uniform: Float[Array, " runs"]  # in (0, 1): which component a sample belongs to
    lengths: Float[Array, "blocks runs"]  # roots of chi-square numbers


class Chain(Process):
    """A Markov chain of summary statistics with exactly the law they have under SGD.

    Runs lie along the last axis, so that a step is elementwise over them. A step consumes
    ``normals`` standard normal numbers per run, and the lengths of the noise in the directions that
    neither the weights nor the anchors span: for each block of directions with a variance of its
    own the root of a chi-square number. Most tasks have one block.
    """

    delta: eqx.AbstractVar[Float[Array, ""]]  # δ = step/dim
    first_run: eqx.AbstractVar[Index]
    freedom: eqx.AbstractVar[Float[Array, " blocks"]]  # degrees of freedom of each length

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def normals(self) -> int:
        """How many standard normal numbers a step consumes."""

    @abc.abstractmethod
    def step(self, carry: Carry, noise: Noise) -> Carry:
        """One step of SGD."""

    # --- given ----------------------------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """As many as share a stream of noise."""
        return LANES

    def advance(self, carry: Carry, key: Array, first: Index, last: Index) -> Carry:
        """Step i of a run draws from the key of its number: no state but the statistics."""
        words = jax.random.key_data(key)
        return as_one_kernel(_steps)(self, carry, words, first, last)

    def noise(self, key: noise.Key, coefficients: list[Float[Array, " powers"]]) -> Noise:
        """That of one step; ``coefficients`` are those of the chi-square numbers."""
        blocks = len(coefficients)
        normals, uniform = noise.normals_and_uniform(key, self.normals + blocks, self.lanes)
        squares = [
            chi_square.draw(noise.derived(key, _LENGTHS + number), z, dof, series)
            for number, (z, dof, series) in enumerate(
                zip(normals[self.normals :], self.freedom, coefficients, strict=True)
            )
        ]
        return Noise(normals[: self.normals], uniform, jnp.sqrt(jnp.stack(squares)))


def _steps(
    process: Chain, carry: Carry, words: UInt32[Array, " 2"], first: Index, last: Index
) -> Carry:
    key = noise.derived((words[0], words[1]), process.first_run // process.lanes)
    coefficients = [chi_square.series(dof) for dof in process.freedom]

    def step(number: Index, carry: Carry) -> Carry:
        return process.step(carry, process.noise(noise.derived(key, number), coefficients))

    return jax.lax.fori_loop(first, last, step, carry)

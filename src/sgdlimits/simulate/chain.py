"""The exact chain: SGD in any dimension at a cost that does not depend on it."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index
from sgdlimits.simulate import chi_square, noise
from sgdlimits.simulate.base import Carry, Moving, Process, Step, Words
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

    first_run: eqx.AbstractVar[Index]
    freedom: eqx.AbstractVar[Float[Array, " blocks"]]  # degrees of freedom of each length

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def normals(self) -> int:
        """How many standard normal numbers a step consumes."""

    @abc.abstractmethod
    def step(self, carry: Carry, noise: Noise, delta: Float[Array, ""]) -> Carry:
        """One step of SGD with learning rate δ."""

    # --- given ----------------------------------------------------------------------------------

    @property
    def lanes(self) -> int:
        """As many as share a stream of noise."""
        return LANES

    def advance(self, moving: Moving, words: Words, first: Index, last: Index) -> Moving:
        """As one function of machine code."""
        return as_one_kernel(Process.advance)(self, moving, words, first, last)

    @property
    def runs_last(self) -> bool:
        """So that a step is elementwise over them."""
        return True

    def stepper(self, words: Words) -> Step:
        """A step of a run draws from the key of its number: no state but the statistics."""
        key = noise.derived((words[0], words[1]), self.first_run // self.lanes)
        coefficients = [chi_square.series(dof) for dof in self.freedom]

        def step(number: Index, carry: Carry, delta: Float[Array, ""]) -> Carry:
            return self.step(carry, self.noise(noise.derived(key, number), coefficients), delta)

        return step

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

"""The exact chain: SGD in any dimension at a cost that does not depend on it."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits._types import Index
from sgdlimits.simulate import chi_square
from sgdlimits.simulate.process import Carry, Process

LANES = 128  # runs that share a stream of noise and are advanced together
BLOCK = 32  # steps whose noise is drawn at once: it must fit into the cache


class Chain(Process):
    """A Markov chain of summary statistics with exactly the law they have under SGD.

    Runs lie along the last axis, so that a step is elementwise over them. A step consumes
    ``normals`` standard normal numbers per run and one chi-square number: the squared length of the
    noise in the ``dof`` directions that neither the weights nor the anchors span.
    """

    delta: eqx.AbstractVar[Float[Array, ""]]  # δ = step/dim
    dof: eqx.AbstractVar[Float[Array, ""]]
    few: eqx.AbstractVar[int | None]  # dof where it is small, else None

    # --- must implement -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def normals(self) -> int:
        """How many standard normal numbers a step consumes."""

    @abc.abstractmethod
    def step(
        self, carry: Carry, noise: Float[Array, "j runs"], rho: Float[Array, " runs"]
    ) -> Carry:
        """One step of SGD."""

    # --- given ----------------------------------------------------------------------------------

    def advance(self, carry: Carry, key: Array, first: Index, last: Index) -> Carry:
        """Draw noise block by block, each from the key of its own position in the run."""

        def block(index: Index, carry: Carry) -> Carry:
            noise, rho = self._noise(jax.random.fold_in(key, index))
            start = index * BLOCK
            return jax.lax.fori_loop(
                jnp.maximum(first - start, 0),
                jnp.minimum(last - start, BLOCK),
                lambda i, carry: self.step(carry, noise[i], rho[i]),
                carry,
            )

        return jax.lax.fori_loop(first // BLOCK, -(-last // BLOCK), block, carry)

    def _noise(self, key: Array) -> tuple[Float[Array, "block j runs"], Float[Array, "block runs"]]:
        noise = jax.random.normal(key, (BLOCK, self.normals + 1, LANES))
        if self.few is None:
            squared = chi_square.from_normal(noise[:, -1], self.dof)
        else:
            other = jax.random.fold_in(key, 0)
            squared = chi_square.from_uniforms(other, self.few, (BLOCK, LANES))
        return noise[:, :-1], jnp.sqrt(squared)


def degrees(dof: int) -> tuple[Float[Array, ""], int | None]:
    """The fields ``dof`` and ``few`` of a chain."""
    return jnp.asarray(float(dof)), dof if dof < chi_square.FEW else None

"""The exact chain of spiked tensors, and SGD on all their coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Index, State
from sgdlimits.simulate.base import Process, Step, Words, process_of, run_keys, take_only
from sgdlimits.simulate.chain import Chain, Noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.tasks import SpikedTensor

Carry = tuple[Float[Array, " runs"], Float[Array, " runs"]]  # m and r = √r2


class SpikedTensorChain(Chain):
    """x = mv + ru; the noise √A z + √B ξ x is drawn along v, along u, and across both."""

    task: SpikedTensor
    clock: Clock
    first_run: Index
    freedom: Float[Array, " 1"]

    @property
    def normals(self) -> int:
        """Along v, along u, and the common factor of x."""
        return 3

    def start(self, states: State) -> Carry:
        """Keep r, not r2: a sum of squares loses nothing."""
        return staged(states["m"]), staged(np.sqrt(states["r2"]))

    def step(self, carry: Carry, noise: Noise, delta: Float[Array, ""]) -> Carry:
        """One step of SGD for (m, r)."""
        (m, r), (rho,) = carry, noise.lengths
        task = self.task
        along, across, common = noise.normals
        squared = m**2 + r**2
        isotropic, radial = task.noise_variances(squared)
        amplitude = delta * jnp.sqrt(isotropic)
        pull = 2 * task.order * squared ** (task.order - 1) + task.ridge
        keep = 1 - delta * (pull + jnp.sqrt(radial) * common)
        push = 2 * delta * task.snr * task.order * m ** (task.order - 1)
        beside = keep * r - amplitude * across
        return keep * m + push - amplitude * along, jnp.hypot(beside, amplitude * rho)

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics m and r2."""
        return {"m": carry[0], "r2": carry[1] ** 2}


class SpikedTensorDirect(Process):
    """All coordinates of x, of which v is the first; the noise is a vector, not a tensor."""

    task: SpikedTensor
    clock: Clock
    dim: int = eqx.field(static=True)
    offset: Index  # number of the first run

    @property
    def lanes(self) -> int:
        """Runs that fit into a core's cache in most dimensions."""
        return 32

    def start(self, states: State) -> Float[Array, "runs d"]:
        """A vector with the given m and r2."""
        x = np.zeros((len(states["m"]), self.dim))
        x[:, 0], x[:, 1] = states["m"], np.sqrt(states["r2"])
        return staged(x)

    def stepper(self, words: Words) -> Step:
        """Step i of run j uses key (j, i)."""

        def one(x: Float[Array, " d"], key: Array, delta: Float[Array, ""]) -> Float[Array, " d"]:
            normal = jax.random.normal(key, (self.dim + 1,))
            isotropic, radial = self.task.noise_variances(x @ x)
            noise = jnp.sqrt(isotropic) * normal[1:] + jnp.sqrt(radial) * normal[0] * x
            gradient = jax.grad(lambda x: self.task.population_loss(x[0], x[1:] @ x[1:]))(x)
            return x - delta * (gradient + noise)

        def step(number: Index, carry: Float[Array, "runs d"], delta: Float[Array, ""]) -> Array:
            keys = run_keys(words, self.offset, carry.shape[0], number)
            return jax.vmap(one, (0, 0, None))(carry, keys, delta)

        return step

    def observe(self, carry: Float[Array, "runs d"]) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics m and r2."""
        return {"m": carry[:, 0], "r2": jnp.sum(carry[:, 1:] ** 2, axis=1)}


@process_of.register(SpikedTensor)
def spiked_tensor_process(
    task: SpikedTensor, *, method: str, dim: int, moves: Moves, first_run: int
) -> Process:
    """One process for each method."""
    take_only(task, method, moves)
    timed, first = clock(moves, dim), staged(first_run)
    if method == "direct":
        return SpikedTensorDirect(task=as_arrays(task), clock=timed, dim=dim, offset=first)
    return SpikedTensorChain(
        task=as_arrays(task), clock=timed, first_run=first, freedom=staged([dim - 2.0])
    )

"""The exact chain of spiked tensors, and SGD on all their coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Index, Real, State
from sgdlimits.simulate.base import Process, Step, Words, process_of, run_keys, take_only
from sgdlimits.simulate.chain import Chain, Noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.spiked_tensor_moves import make_moved
from sgdlimits.tasks import SpikedTensor

Vectors = Float[Array, "runs d"]
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
    moves: Moves
    clock: Clock
    dim: int = eqx.field(static=True)
    offset: Index  # number of the first run

    @property
    def lanes(self) -> int:
        """Runs that fit into a core's cache in most dimensions."""
        return 32

    def start(self, states: State) -> tuple[Vectors, Vectors]:
        """A vector with the given m and r2, and its velocity, zero."""
        x = np.zeros((len(states["m"]), self.dim))
        x[:, 0], x[:, 1] = states["m"], np.sqrt(states["r2"])
        return staged(x), staged(np.zeros_like(x))

    def stepper(self, words: Words) -> Step:
        """Step i of run j uses key (j, i)."""

        def step(
            number: Index, carry: tuple[Vectors, Vectors], delta: Float[Array, ""]
        ) -> tuple[Vectors, Vectors]:
            keys = run_keys(words, self.offset, len(carry[0]), number)
            return jax.vmap(self._step, (0, 0, 0, None))(*carry, keys, delta)

        return step

    def observe(self, carry: tuple[Vectors, Vectors]) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics m and r2."""
        x, _ = carry
        return {"m": x[:, 0], "r2": jnp.sum(x[:, 1:] ** 2, axis=1)}

    def _step(
        self, x: Float[Array, " d"], u: Float[Array, " d"], key: Array, delta: Float[Array, ""]
    ) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """As the steps at the top of ``sgdlimits._moves`` say it."""
        task, moves = self.task, self.moves
        isotropic, radial = task.noise_variances(x @ x)

        def loss(x: Float[Array, " d"]) -> Real:
            return task.population_loss(x[0], x[1:] @ x[1:])

        def sample(key: Array) -> Float[Array, " d"]:
            normal = jax.random.normal(key, (self.dim + 1,))
            return jnp.sqrt(isotropic) * normal[1:] + jnp.sqrt(radial) * normal[0] * x

        noise = jnp.mean(jax.vmap(sample)(jax.random.split(key, moves.batch)), axis=0)
        G = jax.grad(loss)(x) - task.ridge * x + noise
        if moves.normalised:
            G = self.dim**0.5 * G / jnp.linalg.norm(G)
        G = G + task.ridge * x
        if moves.friction is not None:
            u = (1 - moves.friction * delta) * u + delta * G
            return x - delta * u, u
        u = moves.momentum * u + delta * G
        return x - u, u


@process_of.register(SpikedTensor)
def spiked_tensor_process(
    task: SpikedTensor, *, method: str, dim: int, moves: Moves, first_run: int
) -> Process:
    """One process for each method."""
    take_only(task, method, moves, "batch", "momentum", "normalised")
    if method == "population":
        take_only(task, method, moves, "momentum", "normalised")
        return make_moved(task, dim, moves, first_run, noise=0.0)
    if method == "direct":
        return SpikedTensorDirect(
            task=as_arrays(task),
            moves=as_arrays(moves),
            clock=clock(moves, dim),
            dim=dim,
            offset=staged(first_run),
        )
    make = make_moved if moves.words else make_chain
    return make(task, dim, moves, first_run)


def make_chain(task: SpikedTensor, dim: int, moves: Moves, first_run: int) -> SpikedTensorChain:
    """The chain of a spiked tensor in dimension ``dim``."""
    return SpikedTensorChain(
        task=as_arrays(task),
        clock=clock(moves, dim),
        first_run=staged(first_run),
        freedom=staged([dim - 2.0]),
    )

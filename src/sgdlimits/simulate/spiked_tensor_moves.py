"""The exact chain of spiked tensors with batches, momentum and normalised gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays, staged
from sgdlimits._types import Index, State
from sgdlimits.simulate import noise
from sgdlimits.simulate.chain import LANES
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.moved_chain import MovedChain, freedom_of, rule_of
from sgdlimits.simulate.rows import Block, Carry, Rows, Rule, contracted
from sgdlimits.tasks import SpikedTensor


class SpikedTensorMoved(MovedChain):
    """One row x, its first coordinate m; the mean noise of b samples is √(A/b) z + √(B/b) ξ x."""

    task: SpikedTensor
    rule: Rule
    clock: Clock
    first_run: Index
    freedom: Float[Array, " q"]
    share: Float[Array, ""]  # of the noise of a sample: 1/√b
    columns: int = eqx.field(static=True)  # coordinates of a row beside m
    moving: bool = eqx.field(static=True)  # whether there is a velocity

    @property
    def lanes(self) -> int:
        """As many as share a stream of noise."""
        return LANES

    @property
    def along(self) -> int:
        """The signal."""
        return 1

    def start(self, states: State) -> Carry:
        """Nothing moves yet."""
        rows = np.zeros((1, 1 + self.columns, len(states["m"])))
        rows[0, 0], rows[0, 1] = states["m"], np.sqrt(states["r2"])
        weights = Rows(None, staged(rows))
        return Carry(weights, jax.tree.map(jnp.zeros_like, weights) if self.moving else None)

    def gradient(self, weights: Rows, key: noise.Key, triangle: Block | None) -> Rows:
        """That of the population loss without its ridge, and the mean noise of a batch."""
        task, x = self.task, weights.rows[0]
        squared = contracted(weights.rows, weights.rows)[0]
        isotropic, radial = task.noise_variances(squared)
        amplitude = self.share * jnp.sqrt(isotropic)
        normals, _ = noise.normals_and_uniform(key, len(x) + 1, x.shape[-1])
        pull = 2 * task.order * squared ** (task.order - 1)
        pull = pull + self.share * jnp.sqrt(radial) * normals[-1]
        rows = pull * x + amplitude * normals[:-1]
        push = 2 * task.snr * task.order * x[:1] ** (task.order - 1)
        parts = [rows[:1] - push, rows[1:]]
        if triangle is not None:
            parts.append(amplitude * triangle[0])
        return Rows(None, jnp.concatenate(parts)[None])

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics m and r2."""
        x = carry.weights.rows[0]
        return {"m": x[0], "r2": jnp.sum(x[1:] ** 2, axis=0)}


def make_moved(
    task: SpikedTensor, dim: int, moves: Moves, first_run: int, noise: float = 1.0
) -> SpikedTensorMoved:
    """The chain of a spiked tensor in dimension ``dim``, however SGD moves.

    Its noise is multiplied by ``noise``: without any it is descent on the population loss.
    """
    moving = moves.moving or moves.friction is not None
    columns = min(2 if moving else 1, dim - 1)
    return SpikedTensorMoved(
        task=as_arrays(task),
        rule=rule_of(moves, dim, task.ridge, spherical=False),
        clock=clock(moves, dim),
        first_run=staged(first_run),
        freedom=staged(freedom_of(dim - 1, columns, 1)),
        share=staged(noise * moves.batch**-0.5),
        columns=columns,
        moving=moving,
    )

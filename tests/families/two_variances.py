r"""A third family of tasks in one file: what it takes, and that it takes nothing in ``src``.

Ridge regression on data whose coordinates have two different variances: x = (σ₁z₁, σ₂z₂) with two
blocks of dim/2 coordinates, y = ⟨x, w⋆⟩ + √noise ε, loss ½(y − ⟨w, x⟩)² + (ridge/2)‖w‖². The
statistics are, per block b, the overlap m_b = ⟨w_b, w⋆_b⟩/‖w⋆_b‖ and r2_b = ‖w_b‖² − m_b².

With g = ⟨w, x⟩ − y, which is Gaussian with variance E = Σ_b σ_b²((m_b − s_b)² + r2_b) + noise,

    dm_b/dt  = −σ_b²(m_b − s_b) − α m_b
    dr2_b/dt = −2(σ_b² + α) r2_b + (c/2) σ_b² E.

The task, its model and its processes follow; the last two register themselves.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._moves import Moves
from sgdlimits._precision import as_arrays
from sgdlimits._types import Index, Metric, Number, State
from sgdlimits.dynamics.model import Mean, Model, Vector, model_of
from sgdlimits.simulate.base import Process, Step, Words, process_of, run_keys, take_only
from sgdlimits.simulate.chain import Chain, Noise
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.layout import Layout, Statistic

BLOCKS = ("narrow", "wide")


class TwoVariances(Task):
    """Linear regression of a teacher of strength ``signal`` in both blocks."""

    narrow: float
    wide: float
    signal: float
    noise: float
    ridge: float

    def __init__(
        self,
        *,
        narrow: Number = 0.5,
        wide: Number = 2.0,
        signal: Number = 1.0,
        noise: Number = 0.1,
        ridge: Number = 0.1,
    ):
        self.narrow = _checks.positive("narrow", narrow)
        self.wide = _checks.positive("wide", wide)
        self.signal = _checks.nonnegative("signal", signal)
        self.noise = _checks.nonnegative("noise", noise)
        self.ridge = _checks.nonnegative("ridge", ridge)

    @property
    def layout(self) -> Layout:
        """Two vectors over blocks; r2 holds squared norms."""
        m = Statistic("m", ("block",), (BLOCKS,))
        return Layout((m, Statistic("r2", ("block",), (BLOCKS,), nonnegative=True)))

    @property
    def least_dim(self) -> int:
        """Two directions in each block."""
        return 4

    @property
    def variances(self) -> Float[Array, " 2"]:
        """σ_b²."""
        return jnp.stack([jnp.asarray(self.narrow), jnp.asarray(self.wide)])

    def sizes(self, dim: int) -> tuple[int, int]:
        """Coordinates in each block."""
        return dim // 2, dim - dim // 2

    def draw_states(self, dim: int, generator: np.random.Generator, count: int) -> State:
        """The statistics of w ~ N(0, I/dim)."""
        freedom = np.array(self.sizes(dim)) - 1
        return {
            "m": generator.normal(size=(count, 2)) / dim**0.5,
            "r2": generator.chisquare(freedom, size=(count, 2)) / dim,
        }


class TwoVariancesModel(Model):
    """All expectations are moments of a Gaussian."""

    task: TwoVariances
    step: Float[Array, ""]

    def population_drift(self, vector: Vector) -> Vector:
        """Gradient flow on ½E."""
        m, r2, ridge = vector[:2], vector[2:], self.task.ridge
        variances = self.task.variances
        along = variances * (m - self.task.signal) + ridge * m
        return jnp.concatenate([along, 2 * (variances + ridge) * r2])

    def corrector(self, vector: Vector) -> Vector:
        """(c/2) σ_b² E[g²] in r2: half of the directions are in each block."""
        gain = self.step * self.task.variances / 2 * self._error(vector)
        return jnp.concatenate([jnp.zeros(2), gain])

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """c·Cov of (−g σ z, −2 g σ r z' + (c/2) σ² g²) by Isserlis' theorem."""
        m, r2 = vector[:2], vector[2:]
        deviations = jnp.sqrt(self.task.variances)
        r = jnp.sqrt(jnp.maximum(r2, 0.0))
        with_g = jnp.concatenate([deviations * (m - self.task.signal), deviations * r])  # Cov(g, z)
        E = self._error(vector)
        linear = -jnp.concatenate([deviations, 2 * deviations * r])  # of g z
        square = jnp.concatenate([jnp.zeros(2), self.step / 2 * self.task.variances])  # of g²
        covariance = E * jnp.eye(4) + jnp.outer(with_g, with_g)
        cross = jnp.outer(linear * 2 * E * with_g, square)
        both = jnp.outer(linear, linear) * covariance + 2 * E**2 * jnp.outer(square, square)
        return self.step * (both + cross + cross.T)

    def mean(self, metric: Metric) -> Mean:
        """The risk ½E; nothing else is known."""
        return TwoVariancesRisk(self.task) if metric == "risk" else super().mean(metric)

    def _error(self, vector: Vector) -> Float[Array, ""]:
        """E[g²]."""
        return 2 * TwoVariancesRisk(self.task).at(vector)


class TwoVariancesRisk(Mean):
    """½E[g²]."""

    task: TwoVariances

    def at(self, vector: Vector) -> Float[Array, ""]:
        gaps = (vector[:2] - self.task.signal) ** 2 + vector[2:]
        return (jnp.sum(self.task.variances * gaps) + self.task.noise) / 2


@model_of.register(TwoVariances)
def two_variances_model(task: TwoVariances, *, step: float, nodes: int) -> TwoVariancesModel:
    del nodes
    return TwoVariancesModel(task=as_arrays(task), step=jnp.asarray(step))


Carry = tuple[Float[Array, "2 runs"], Float[Array, "2 runs"]]  # m and r = √r2


class TwoVariancesChain(Chain):
    """Per block: noise along the teacher, along w⊥, and a chi-square across both."""

    task: TwoVariances
    clock: Clock
    first_run: Index
    freedom: Float[Array, " 2"]

    @property
    def normals(self) -> int:
        """Two for each block, and the label noise."""
        return 5

    def start(self, states: State) -> Carry:
        return jnp.asarray(states["m"].T), jnp.sqrt(jnp.asarray(states["r2"].T))

    def step(self, carry: Carry, noise: Noise, delta: Float[Array, ""]) -> Carry:
        m, r = carry
        task = self.task
        deviations = jnp.sqrt(task.variances)[:, None]
        normals = noise.normals
        teacher, across, label = normals[:2], normals[2:4], normals[4]
        g = jnp.sum(deviations * ((m - task.signal) * teacher + r * across), axis=0)
        g = g - jnp.sqrt(task.noise) * label
        keep, reach = 1 - delta * task.ridge, delta * g * deviations
        return keep * m - reach * teacher, jnp.hypot(
            keep * r - reach * across, reach * noise.lengths
        )

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        return {"m": carry[0].T, "r2": carry[1].T ** 2}


class TwoVariancesDirect(Process):
    """All coordinates; the teacher lies along the first of each block."""

    task: TwoVariances
    clock: Clock
    dim: int = eqx.field(static=True)
    first_run: Index

    @property
    def lanes(self) -> int:
        """Runs that fit into a core's cache in most dimensions."""
        return 32

    def start(self, states: State) -> Float[Array, "runs d"]:
        w = np.zeros((len(states["m"]), self.dim))
        for b, first in enumerate((0, self.task.sizes(self.dim)[0])):
            w[:, first] = states["m"][:, b]
            w[:, first + 1] = np.sqrt(states["r2"][:, b])
        return jnp.asarray(w)

    def stepper(self, words: Words) -> Step:
        half, rest = self.task.sizes(self.dim)
        deviations = jnp.repeat(
            jnp.sqrt(self.task.variances), np.array([half, rest]), total_repeat_length=self.dim
        )
        teacher = jnp.zeros(self.dim).at[jnp.array([0, half])].set(self.task.signal)

        def one(w: Float[Array, " d"], key: Array, delta: Float[Array, ""]) -> Float[Array, " d"]:
            normal = jax.random.normal(key, (self.dim + 1,))
            x = deviations * normal[:-1]
            y = teacher @ x + jnp.sqrt(self.task.noise) * normal[-1]

            def loss(w: Float[Array, " d"]) -> Float[Array, ""]:
                return (y - w @ x) ** 2 / 2 + self.task.ridge / 2 * w @ w

            return w - delta * jax.grad(loss)(w)

        def step(number: Index, carry: Float[Array, "runs d"], delta: Float[Array, ""]) -> Array:
            keys = run_keys(words, self.first_run, carry.shape[0], number)
            return jax.vmap(one, (0, 0, None))(carry, keys, delta)

        return step

    def observe(self, carry: Float[Array, "runs d"]) -> dict[str, Float[Array, "runs ..."]]:
        half = self.task.sizes(self.dim)[0]
        blocks = carry[:, :half], carry[:, half:]
        return {
            "m": jnp.stack([block[:, 0] for block in blocks], axis=1),
            "r2": jnp.stack([jnp.sum(block[:, 1:] ** 2, axis=1) for block in blocks], axis=1),
        }


@process_of.register(TwoVariances)
def two_variances_process(
    task: TwoVariances, *, method: str, dim: int, moves: Moves, first_run: int
) -> Process:
    take_only(task, method, moves)
    timed, first = clock(moves, dim), jnp.asarray(first_run)
    if method == "direct":
        return TwoVariancesDirect(task=as_arrays(task), clock=timed, dim=dim, first_run=first)
    freedom = jnp.asarray([size - 2.0 for size in task.sizes(dim)])
    return TwoVariancesChain(task=as_arrays(task), clock=timed, first_run=first, freedom=freedom)

"""Gradient descent on the population loss of a multi-index task: SGD with endless batches."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._compiled import compiled
from sgdlimits._moves import Moves
from sgdlimits._precision import staged
from sgdlimits._types import Index, State
from sgdlimits.gaussian import Rule as Nodes
from sgdlimits.gaussian import gauss_hermite, product, sobol
from sgdlimits.simulate.base import Process, Step, Words
from sgdlimits.simulate.clock import Clock, clock
from sgdlimits.simulate.moved_chain import rule_of
from sgdlimits.simulate.multi_index_data import MultiIndexData, data_of
from sgdlimits.simulate.rows import Carry, Rows, Rule
from sgdlimits.simulate.square_roots import square_roots
from sgdlimits.simulate.velocity import observed, velocity_statistics
from sgdlimits.tasks import MultiIndexFamily
from sgdlimits.tasks.layout import Statistic

NODES = 2**14  # of a rule, at most; for each component
BLOCK = 2**11  # nodes that are summed at a time: they fit into a cache
NOISE_ORDER = 5  # of the rule for label noise, in which most losses have a polynomial gradient
TOLERANCE = 0.01


class Samples(NamedTuple):
    """Nodes in the place of samples, in blocks: coordinates z as in the chain, labels, weights."""

    z: Float[Array, "blocks m q"]
    labels: Float[Array, "blocks q"]
    weights: Float[Array, "blocks q"]


class PopulationDescent(Process):
    r"""Rows (M, C) as in the chain, and the mean E[g zᵀ] in place of that of a batch.

    The gradient lies in the span of anchors and weights, so there is no noise and no other
    direction: C keeps its columns. Expectations are those over nodes, a product of Gauss–Hermite
    rules or scrambled Sobol nodes, whichever differs less from a rule of its kind at a random
    state. The error of a gradient is that difference over √(E‖g‖²), the size of a sample's
    gradient: 1e-3 for kinks, 1e-4 for erf in four variables, rounding for polynomials.
    """

    data: MultiIndexData
    rule: Rule
    clock: Clock
    samples: Samples
    others: Samples  # a rule to compare with
    columns: int = eqx.field(static=True)
    moving: bool = eqx.field(static=True)

    @property
    def lanes(self) -> int:
        """Runs one by one: there are nodes enough to fill a cache."""
        return 1

    @property
    def runs_last(self) -> bool:
        """As in the chain."""
        return True

    def start(self, states: State) -> Carry:
        """Factor R and turn M to orthonormal coordinates; raises InputError if nodes are few."""
        error = self.error_at(states)
        if error > TOLERANCE:
            raise _checks.InputError(
                "method='population' is not allowed: at the start expectations over "
                f"{self.samples.weights.size} nodes are wrong by {error:.2g} of a sample's "
                f"gradient, more than {TOLERANCE}"
            )
        weights = self._weights(states)
        return Carry(weights, jax.tree.map(jnp.zeros_like, weights) if self.moving else None)

    def stepper(self, words: Words) -> Step:
        """Nothing is random."""
        del words

        def step(number: Index, carry: Carry, delta: Float[Array, ""]) -> Carry:
            del number
            gradient, _ = self._gradient(carry.weights, self.samples)
            return self.rule.move(carry, gradient, delta, len(self.data.task.anchors))

        return step

    def observe(self, carry: Carry) -> dict[str, Float[Array, "runs ..."]]:
        """The statistics v, M and R, and the overlaps of a slow velocity."""
        return observed(carry, self.data.root, slow=self.rule.slow)

    @property
    def further(self) -> tuple[Statistic, ...]:
        """Overlaps of a slow velocity."""
        return velocity_statistics(self.data.task) if self.rule.slow else ()

    def error_at(self, states: State) -> float:
        """The error of the gradient at the first of some states."""
        return float(_error_of(self, self._weights({n: x[:1] for n, x in states.items()})))

    def _weights(self, states: State) -> Rows:
        M = self.data.orthonormal(states["M"])
        C = np.moveaxis(square_roots(states["R"], self.columns), 0, -1)
        v = staged(states["v"].T) if self.data.task.trained else None
        return Rows(v, staged(np.concatenate([M, C], axis=1)))

    def error(self, weights: Rows) -> Float[Array, ""]:
        """How far the gradients of two rules are apart, in units of that of a sample."""
        (first, size), (second, _) = (
            self._gradient(weights, nodes) for nodes in (self.samples, self.others)
        )
        gaps = jax.tree.map(lambda x, y: jnp.sum((x - y) ** 2), first, second)
        gap = jnp.sqrt(sum(jax.tree.leaves(gaps), start=jnp.zeros(())))
        return jnp.where(gap > 0, gap / size, 0.0)

    def _gradient(self, weights: Rows, samples: Samples) -> tuple[Rows, Float[Array, ""]]:
        """Of the population loss without its ridge, and √(E‖g‖²)."""
        v, rows = weights

        def add(sums: Any, samples: Samples) -> tuple[Any, None]:
            fields = rows[..., 0] @ samples.z
            wide = None if v is None else jnp.broadcast_to(v, fields.shape)
            readout, g = self.data.gradients(fields, wide, samples.labels)
            weighted = samples.weights * g
            mean = None if readout is None else (readout @ samples.weights)[:, None]
            found = Rows(mean, (weighted @ samples.z.T)[..., None]), jnp.sum(weighted * g)
            return jax.tree.map(jnp.add, sums, found), None

        nothing = jax.tree.map(jnp.zeros_like, weights), jnp.zeros(())
        (gradient, squared), _ = jax.lax.scan(add, nothing, samples)
        return gradient, jnp.sqrt(squared)


def make_population(task: MultiIndexFamily, dim: int, moves: Moves) -> PopulationDescent:
    """Population descent with the steps of SGD in dimension ``dim``."""
    if moves.batch != 1:
        raise _checks.InputError(
            f"batch={moves.batch} is not allowed: method='population' has no samples"
        )
    data = data_of(task)
    columns = min(task.width, dim - len(task.anchors))
    still = math.isinf(task.precision) and not data.correlated
    size = 0 if still else len(task.anchors) + columns
    options = [_hermite(size)] if size == 0 else [_sobol(size)]
    if size and task.kinks == "none":
        options.append(_hermite(size))
    processes = [
        PopulationDescent(
            data=data,
            rule=rule_of(moves, dim, task.ridge, spherical=task.spherical),
            clock=clock(moves, dim),
            samples=_samples(data, columns, rule),
            others=_samples(data, columns, other),
            columns=columns,
            moving=moves.moving or moves.friction is not None,
        )
        for rule, other in options
    ]
    if len(processes) == 1:
        return processes[0]
    state = task.draw_states(dim, np.random.default_rng(0), 1)
    return min(processes, key=lambda process: process.error_at(state))


def _hermite(size: int) -> tuple[Nodes, Nodes]:
    """The rule of the highest order in so many variables, and the one below; none of none."""
    if size == 0:
        return (Nodes(np.zeros((1, 0)), np.ones(1)),) * 2
    order = min(40, int(NODES ** (1 / size) + 1e-9))
    return gauss_hermite(size, order), gauss_hermite(size, max(1, order - 1))


def _sobol(size: int) -> tuple[Nodes, Nodes]:
    return sobol(size, NODES), sobol(size, NODES, seed=1)


def _samples(data: MultiIndexData, columns: int, rule: Nodes) -> Samples:
    """The nodes of a rule at every component, and at every one of label noise if there is any."""
    task, r = data.task, len(data.task.anchors)
    if data.noisy:
        rule = product(rule, gauss_hermite(1, NOISE_ORDER))
    count, k = len(rule.weights), len(task.weights)
    chosen = np.asarray(task.weights)
    normals = np.zeros((r + columns + data.noisy, count * k))
    if rule.nodes.shape[1]:  # the last variables: where nothing else is random only label noise
        normals[-rule.nodes.shape[1] :] = np.tile(rule.nodes.T, k)
    weights = np.repeat(chosen, count) * np.tile(rule.weights, k)
    which = np.repeat(np.cumsum(chosen) - chosen / 2, count)  # in the middle of its interval
    missing = -len(weights) % BLOCK
    drawn = staged(np.pad(normals, [(0, 0), (0, missing)]))
    parts = staged(np.pad(which, (0, missing)))
    weights = np.pad(weights, (0, missing))
    return Samples(*_data_at(data, parts, drawn, columns), staged(weights.reshape(-1, BLOCK)))


@compiled
def _data_at(
    data: MultiIndexData, parts: Float[Array, " n"], drawn: Float[Array, "k n"], columns: int
) -> tuple[Float[Array, "blocks m q"], Float[Array, "blocks q"]]:
    """Coordinates and labels of samples that are made of these normals, in blocks."""
    r = len(data.task.anchors)
    anchors = data.anchors(parts, drawn[:r])
    inside = drawn[r : r + columns] / jnp.sqrt(jnp.asarray(data.task.precision))
    z = jnp.concatenate([anchors, inside]).reshape(r + columns, -1, BLOCK)
    return jnp.moveaxis(z, 1, 0), data.labels(parts, anchors, drawn[-1]).reshape(-1, BLOCK)


@compiled
def _error_of(process: PopulationDescent, weights: Rows) -> Float[Array, ""]:
    return process.error(weights)

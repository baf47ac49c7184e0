"""The effective dynamics of multi-index tasks, by automatic differentiation of their loss."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits import gaussian
from sgdlimits._precision import as_arrays
from sgdlimits._types import Index, Metric
from sgdlimits.dynamics.model.accuracy import (
    average_error,
    diffusion_errors,
    jacobian_errors,
    surveys,
)
from sgdlimits.dynamics.model.base import Errors, Given, Model, Rows, Vector, model_of
from sgdlimits.dynamics.model.by_rule import REST, ByRule
from sgdlimits.dynamics.model.choice import chosen, with_slopes
from sgdlimits.dynamics.model.committee import committee_diffusion, committee_moments
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.kinks import jumps_separately
from sgdlimits.dynamics.model.mean import ERROR, RISK, Mean
from sgdlimits.dynamics.model.measured import Measured
from sgdlimits.dynamics.model.moments import Moments, motion
from sgdlimits.dynamics.model.population import CommitteeRisk, RuledMean
from sgdlimits.dynamics.model.quadrature import Quadrature, halves, quadrature, variants
from sgdlimits.dynamics.model.samples import Samples, still_samples
from sgdlimits.dynamics.model.sizes import Size, grid_size, sizes
from sgdlimits.dynamics.model.table import Table
from sgdlimits.tasks.multi_index import Committee, MultiIndexFamily

TINY = 1e-290  # a field on the positive side of zero
RARE = 5.0  # deviations beyond which a sample is rare and large
SMALL = 1e-20  # squared lengths of means below this are zero
PARALLEL = 1e-10  # one minus the correlation of fields below which they are


class MultiIndexModel(ByRule, Model):
    """Expectations over the mixture by ``rule``; where a task declares a closed form, exactly."""

    task: MultiIndexFamily
    step: Float[Array, ""]
    rule: Quadrature
    jumps_at_zero: bool = eqx.field(static=True)  # only there, and each field on its own
    still: Bool[Array, ""]  # whether the fields of neurons without weights are exactly zero

    def population_drift(self, vector: Vector) -> Vector:
        """f: minus the motion at vanishing step size."""
        return self.parts(vector)[0]

    def corrector(self, vector: Vector) -> Vector:
        """g: the motion at this step size minus the one at vanishing step size."""
        return self.parts(vector)[1]

    def parts(self, vector: Vector) -> tuple[Vector, Vector]:
        """Both in one pass over the nodes."""
        state = self.unravel(vector)
        moments = self.moments(state)
        slow, now = (
            self.ravel(self._motion(state, moments, step)) for step in (jnp.zeros(()), self.step)
        )
        return -slow, now - slow

    def drift(self, vector: Vector) -> Vector:
        """The velocity h = −f + g."""
        state = self.unravel(vector)
        return self.ravel(self._motion(state, self.moments(state), self.step))

    def _motion(self, state: JaxState, moments: Moments, step: Array) -> JaxState:
        """The motion by moments of all components, or of those that the rule is for."""
        begins = jnp.where(self.rule.among[0] == 0, 1.0, 0.0)
        return motion(self.task, state, moments, step, share=begins)

    @property
    def exact(self) -> bool:
        """Whether there is a closed form, or nothing to average over."""
        return self.task.committee is not None or self.rule.placing == "none"

    @property
    def tolerance(self) -> tuple[float, float]:
        """Not below the error of the expectations, beneath which jumps may be hidden."""
        if self.exact or self.size.kind == "hermite":
            return 1e-9, 1e-12
        return (1e-6, 1e-8) if self.smooth else (1e-4, 1e-5)

    def errors(self, vectors: Rows) -> Errors:
        """The distance from rules unlike this one."""
        if self.exact:
            return super().errors(vectors)
        rows = [jnp.asarray(row) for row in np.asarray(vectors)]
        seen = surveys(self, rows)
        errors = [average_error(self, *both) for both in zip(rows, seen, strict=True)]
        return Errors(np.stack(errors), np.stack([one.scale for one in seen]))

    def diffusion_error(self, vector: Given) -> Float[np.ndarray, "n n"]:
        """The same for the diffusion."""
        closed = self.rule.placing == "none" or self._squares is not None
        return super().diffusion_error(vector) if closed else diffusion_errors(self, vector)

    def slopes(self, vector: Given) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
        """The Jacobian, and the same for it."""
        return super().slopes(vector) if self.exact else jacobian_errors(self, vector)

    def suited(
        self, vectors: Rows, rtol: float, *, smooth: bool
    ) -> tuple["MultiIndexModel", float]:
        """The first rule whose error is at most rtol; else the best, whatever it costs."""
        return (self, 0.0) if self.exact else chosen(self, vectors, rtol, smooth=smooth)

    def by_every_rule(self, vector: Given) -> Float[np.ndarray, "rules n"]:
        """The drift by every variant of the rule."""
        return Table(self).drifts(np.asarray(vector)[None])[:, 0]

    def averages(self, vector: Vector) -> tuple[Vector, Float[Array, " 2"]]:
        """The drift; and of the gradient in the fields."""
        state = self.unravel(vector)
        moments, powers = self._summed(state)
        return self.ravel(self._motion(state, moments, self.step)), powers

    def scale(self, vector: Vector) -> Float[Array, ""]:
        """The size of what cancels in the drift: the largest mean of absolute values."""
        state = self.unravel(vector)

        def part(samples: Samples) -> Moments:
            return _average(samples, *self.gradients_at(state, samples), jnp.abs)

        absolute = self.over_mixture(state, self._frame(state), part)
        corrector = self.step / self.task.precision * absolute.square
        parts = (absolute.readout, absolute.anchors, 2 * absolute.orthogonal + corrector)
        return jnp.max(jnp.stack([jnp.max(part) for part in (*parts, jnp.abs(vector))]))

    def rule_variants(self) -> Quadrature | None:
        """Its rule and others whose spread is the error."""
        return None if self.exact else variants(self.task, self.size)

    def rule_halves(self) -> tuple[Quadrature, ...]:
        """Those for half of the components, where sums are long."""
        return () if self.exact else halves(self.task, self.size)

    def with_slopes(self, vectors: Rows, rtol: float) -> "MultiIndexModel":
        """The same rule, or for smooth losses one whose derivatives are as accurate as asked."""
        return self if self.exact else with_slopes(self, vectors, rtol)

    def infinite_rates(self, vector: Given) -> str:
        """Kinks of parallel neurons are at the same place, and part like the root of the angle."""
        pairs, _ = self._parallel(vector)
        if len(pairs) == 0:
            return ""
        first, second = pairs[0]
        return (
            f"neurons {first} and {second} are parallel at this state: the rate at which "
            "their kinks part is infinite, so that derivatives in R are large without meaning"
        )

    def parting(self, vector: Given) -> Float[np.ndarray, "k n"]:
        """The squared angles between parallel neurons."""
        pairs, covariance = self._parallel(vector)
        rows = []
        for i, j in pairs:
            n = np.zeros(self.task.width)
            n[[i, j]] = covariance[i, j] / covariance[i, i], -1.0
            # off its diagonal a symmetric matrix is in the vector once and in nᵀRn twice
            square = (2 - np.eye(len(n))) * np.outer(n, n)
            zeros = {name: np.zeros(shape) for name, shape in self.task.shapes.items()}
            rows.append(np.asarray(self.task.layout.ravel(zeros | {"R": square})))
        return np.array(rows).reshape(len(rows), len(vector))

    def _parallel(self, vector: Given) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of neurons that have kinks at the same place, and the covariance of all fields."""
        if self.exact or self.rule.kinks.smooth:
            return np.zeros((0, 2), int), np.eye(self.task.width)
        task, state = self.task, self.task.layout.unravel(np.asarray(vector))
        inward = state["M"] @ np.linalg.inv(task.gram)
        among = np.asarray(task.gram) / task.precision + task.spike
        covariance = inward @ np.asarray(among) @ inward.T + state["R"] / np.asarray(task.precision)
        length = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        alike = np.abs(covariance) > (1 - PARALLEL) * np.outer(length, length)
        pairs = np.argwhere(np.triu(alike, 1) & (length > REST**0.5))
        return pairs, np.asarray(covariance)

    def resting(self) -> "MultiIndexModel":
        """Fields of neurons without weights are zero, not tiny: a ReLU has no slope there."""
        return eqx.tree_at(lambda model: model.still, self, jnp.asarray(True))

    def mean(self, metric: Metric) -> Mean:
        """The risk of committees in closed form; else the loss, or what is measured, by a rule."""
        if metric == RISK and self.task.squared is not None:
            return CommitteeRisk(self.task)
        task = self.task if metric == RISK else Measured(self.task, metric)
        rule = quadrature(task, _fixed(task, self.size.nodes))
        return RuledMean(task, rule, still=jnp.asarray(True), counts=metric == ERROR)

    # --- without noise: jumps where a field is zero ---------------------------------------------

    @property
    def motion(self) -> str:
        """Without noise the gradient of a network with kinks jumps; with noise it is smooth."""
        if self.rule.placing != "none" or self.rule.kinks.smooth:
            return "smooth"
        return "sliding" if self.jumps_at_zero else "chattering"

    def switches(self, vector: Vector) -> Float[Array, "k K"]:
        """The field of every component's mean; there are no others where there is no noise."""
        if not self.jumps_at_zero:
            return jnp.zeros((0, self.task.width))
        return self._still_fields(vector)

    def onto_switches(self, vector: Vector, chosen: Bool[Array, "k K"]) -> Vector:
        """The nearest overlaps for which the chosen fields are exactly zero."""
        if not self.jumps_at_zero:
            return vector
        state = self.unravel(vector)
        M = state["M"]
        for mean, remove in zip(jnp.asarray(self.task.means), chosen, strict=True):
            share = jnp.where(remove, M @ mean, 0.0) / jnp.maximum(mean @ mean, SMALL)
            M = M - share[:, None] * mean
        return self.ravel(state | {"M": M})

    @property
    def units(self) -> Sequence[np.ndarray]:
        """The neurons."""
        return [self.task.layout.indices("neuron", i) for i in range(self.task.width)]

    def _still_fields(self, vector: Vector) -> Float[Array, "k K"]:
        return jnp.asarray(self.task.means) @ self.unravel(vector)["M"].T

    def drift_with_signs(self, vector: Vector, signs: Float[Array, "k K"]) -> Vector:
        """The drift without noise with the sign of every field held: it does not jump at zero."""
        if not self.jumps_at_zero:
            return self.drift(vector)
        state, fields = self.unravel(vector), self._still_fields(vector)
        positive, negative = jnp.maximum(fields, TINY), jnp.minimum(fields, -TINY)
        held = jnp.where(signs > 0, positive, jnp.where(signs < 0, negative, 0.0))
        # moved to its side of zero, a field still varies with the state as it did
        held = jnp.where(signs == 0, 0.0, fields + jax.lax.stop_gradient(held - fields))
        samples = still_samples(self.task, held.T)
        moments = _average(samples, *self.gradients_at(state, samples))
        return self.ravel(motion(self.task, state, moments, self.step))

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        r"""c·Cov of one sample's motion, second-order part included.

        The increment of R is −δ(g s⊥ᵀ + s⊥gᵀ) + δ²‖z⊥‖²ggᵀ/λ, and since ‖z⊥‖² ≈ dim both parts are
        of order 1/dim and both fluctuate with g. c·JVJᵀ alone (BGJ22, Theorem 2.2) misses the
        second one, which its Remark 2 puts back.
        """
        state = self.unravel(vector)
        if self._squares is not None:
            return committee_diffusion(self.task, self._squares, state, self.step)
        frame = self._frame(state)
        known = self.task.labels is not None and self.rule.placing != "none"
        spread = frame.spread() if known else jnp.zeros((frame.inward.shape[1], 0))

        def part(samples: Samples) -> tuple[Vector, Float[Array, "n n"]]:
            increments = self._increments(state, samples)
            mean = increments @ samples.weights
            second = (increments * samples.weights) @ increments.T
            for direction in spread.T:  # the increment is affine in the anchor fields
                # moving the anchor fields at fixed s moves s⊥ the other way
                moved = samples._replace(
                    anchors=samples.anchors + direction[:, None],
                    orthogonal=samples.orthogonal - (frame.inward @ direction)[:, None],
                )
                across = self._increments(state, moved) - increments
                second += (across * samples.weights) @ across.T
            return mean, second

        mean, second = self.over_mixture(state, frame, part)
        return self.step * (second - jnp.outer(mean, mean))

    @property
    def _squares(self) -> Committee | None:
        """The committee whose diffusion has a closed form; that of others has none."""
        committee = self.task.committee
        return committee if committee is not None and committee.activation == "square" else None

    def rare(self, vector: Vector) -> Vector:
        """Deviation of one sample's motion that is due to rare and large ones."""
        state = self.unravel(vector)
        frame = self._frame(state)

        def beyond(about: tuple[Vector, Vector], _: None) -> tuple[tuple[Vector, Vector], Vector]:
            center, usual = about

            def part(samples: Samples) -> tuple[Vector, Vector]:
                increments = self._increments(state, samples)
                squares = (increments - center[:, None]) ** 2
                large = squares > RARE**2 * usual[:, None]
                return increments @ samples.weights, jnp.where(
                    large, squares, 0.0
                ) @ samples.weights

            mean, squares = self.over_mixture(state, frame, part)
            return (mean, squares - (mean - center) ** 2), squares

        # first all of them, which gives their mean and variance, then what is large beside these
        every = (jnp.zeros_like(vector), jnp.full_like(vector, -1.0))
        _, squares = jax.lax.scan(beyond, every, length=2)
        return jnp.sqrt(jnp.maximum(squares[1], 0.0))

    # --- expectations ---------------------------------------------------------------------------

    def moments(self, state: JaxState) -> Moments:
        """The four expectations at a state."""
        committee = self.task.committee
        if committee is not None:
            return committee_moments(self.task, committee, state)
        return self._summed(state)[0]

    def _summed(self, state: JaxState) -> tuple[Moments, Float[Array, " 2"]]:
        """The expectations by the rule, and those of ‖g‖² and ‖g‖⁴."""

        def against_normals(samples: Samples, _: Index) -> tuple[Array, ...]:
            readout, g = self.gradients_at(state, samples)
            weighted, size = g * samples.weights, jnp.sum(g**2, axis=0)
            across, square = weighted @ samples.normals.T, weighted @ g.T
            powers = jnp.stack([size, size**2]) @ samples.weights
            return readout @ samples.weights, jnp.sum(weighted, axis=1), across, square, powers

        # anchor fields and s⊥ are linear in the normals: fewer sums over nodes than of these
        frame, p = self._frame(state), jnp.asarray(self.task.weights)
        readout, mean, across, square, powers = self.over_nodes(state, frame, against_normals)
        centers = jnp.asarray(self.task.means) @ jnp.asarray(self.task.gram)
        of_anchors, of_orthogonal = frame.maps()
        of_orthogonal = jnp.where(self.moving(state)[:, None], of_orthogonal, 0.0)
        across = jnp.tensordot(p, across, 1)
        moments = Moments(
            readout=p @ readout,
            anchors=(p[:, None] * mean).T @ centers + across @ of_anchors.T,
            orthogonal=across @ of_orthogonal.T,
            square=jnp.tensordot(p, square, 1),
        )
        return moments, p @ powers

    def frame(self, vector: Vector) -> Frame:
        """How the fields depend on independent normals."""
        return self._frame(self.unravel(vector))

    def _increments(self, state: JaxState, samples: Samples) -> Float[Array, "n q"]:
        """The motion by the sample at each node."""

        def one(readout: Array, g: Array, a: Array, orthogonal: Array) -> Vector:
            moments = Moments(readout, jnp.outer(g, a), jnp.outer(g, orthogonal), jnp.outer(g, g))
            return self.ravel(motion(self.task, state, moments, self.step))

        of_each = (*self.gradients_at(state, samples), samples.anchors, samples.orthogonal)
        return jax.vmap(one, 1, 1)(*of_each)

    def gradients_at(self, state: JaxState, samples: Samples) -> tuple[Array, Array]:
        """∂ℓ/∂v (zeros where the readout is fixed) and ∂ℓ/∂s at every node."""
        readout = state["v"] if self.task.trained else None
        of_each = jax.vmap(self.task.gradients, (1, None, 0), 1)
        return of_each(samples.fields, readout, samples.labels)


@model_of.register(MultiIndexFamily)
def multi_index_model(task: MultiIndexFamily, *, step: float, nodes: int) -> MultiIndexModel:
    """Expectations by the rule that suits the loss and the number of fields."""
    size = _fixed(task, nodes)
    return MultiIndexModel(
        task=as_arrays(task),
        step=jnp.asarray(step),
        rule=quadrature(task, size),
        jumps_at_zero=jumps_separately(task),
        still=jnp.asarray(False),
    )


def _fixed(task: MultiIndexFamily, nodes: int) -> Size:
    """A size with about so many nodes, of a kind whose drift is smooth."""
    allowed = [size for size in sizes(task, smooth=True) if size.kind != "sparse"]
    first = allowed[0]
    if first.kind == "hermite":
        m = len(first.orders)
        return grid_size([gaussian.hermite_order(m, nodes)] * m)
    if first.kind == "orthant":
        small = [size for size in allowed if size.kind == "orthant" and size.nodes <= nodes]
        return small[-1] if small else first
    return first._replace(nodes=nodes, orders=()) if first.nodes > 1 else first


def _average(
    samples: Samples, readout: Array, g: Array, of: Callable[[Array], Array] = jnp.asarray
) -> Moments:
    """Sums over nodes of the gradients times the data, or of ``of`` each of them."""
    g = of(g)
    weighted = g * samples.weights
    return Moments(
        readout=of(readout) @ samples.weights,
        anchors=weighted @ of(samples.anchors).T,
        orthogonal=weighted @ of(samples.orthogonal).T,
        square=weighted @ g.T,
    )

"""The effective dynamics of multi-index tasks, by automatic differentiation of their loss."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits._types import Index
from sgdlimits.dynamics.committee import committee_moments
from sgdlimits.dynamics.model import Model, Vector, VectorMap
from sgdlimits.dynamics.moments import Moments, motion
from sgdlimits.dynamics.quadrature import Quadrature
from sgdlimits.gaussian import orthant_nodes
from sgdlimits.tasks.multi_index import MultiIndexFamily

JITTER = 1e-13  # relative to each variance: keeps Cholesky factors of singular covariances finite
ON_SURFACE = 1e-9  # a field closer to zero than this is taken to be zero
TINY = 1e-290  # a field on the positive side of zero
FLOOR = 1e-20  # the same for vanishing variances: above what rounding makes of its square root

JaxState = dict[str, Float[Array, "..."]]


class Samples(NamedTuple):
    """Quadrature nodes of one component, seen through the network.

    Given the fields s, the anchor fields are Gaussian: ``anchors`` holds their conditional mean and
    ``spread`` a square root of their conditional covariance (zero columns where they are nodes).
    """

    fields: Float[Array, "q K"]
    anchors: Float[Array, "q r"]
    orthogonal: Float[Array, "q K"]
    spread: Float[Array, "r m"]
    labels: Float[Array, " q"]
    weights: Float[Array, " q"]


class MultiIndexModel(Model):
    """Expectations over the mixture by ``rule``; where a task declares a closed form, exactly."""

    task: MultiIndexFamily
    step: Float[Array, ""]
    rule: Quadrature
    tolerance: tuple[float, float] = eqx.field(static=True)
    jumps_at_zero: bool = eqx.field(static=True)  # only there, and each field on its own

    def population_drift(self, vector: Vector) -> Vector:
        """f: minus the motion at vanishing step size."""
        return -self._motion(vector, jnp.zeros(()))

    def corrector(self, vector: Vector) -> Vector:
        """g: the motion at this step size minus the one at vanishing step size."""
        return self._motion(vector, self.step) - self._motion(vector, jnp.zeros(()))

    def drift(self, vector: Vector) -> Vector:
        """The velocity h = −f + g in one pass over the nodes."""
        return self._motion(vector, self.step)

    def still_fields(self, vector: Vector) -> Float[Array, "k K"]:
        """The field of every component's mean; there are no others where there is no noise."""
        return jnp.asarray(self.task.means) @ self.unravel(vector)["M"].T

    def branch(self, start: Vector) -> tuple[VectorMap, VectorMap]:
        """Without noise, hold the signs that the fields have at ``start``; zeros stay zero."""
        if not self.jumps_at_zero:
            return super().branch(start)
        fields = self.still_fields(start)
        signs = jnp.where(jnp.abs(fields) < ON_SURFACE, 0.0, jnp.sign(fields))
        return (
            lambda vector: self.drift_with_signs(vector, signs),
            lambda vector: self.without_fields(vector, signs == 0),
        )

    def jump_directions(self, vector: Vector) -> list[Vector]:
        """Without noise: for every field that is zero, the overlaps of its neuron with its mean."""
        if not self.jumps_at_zero:
            return []
        zero = np.argwhere(np.abs(np.asarray(self.still_fields(vector))) < ON_SURFACE)
        if len(zero) == 0:
            return []
        shapes = self.task.shapes.items()
        state = {name: np.zeros((len(zero), *shape)) for name, shape in shapes}
        for direction, (component, neuron) in zip(state["M"], zero, strict=True):
            direction[neuron] = self.task.means[component]
        return list(jax.vmap(self.ravel)(state))

    def without_fields(self, vector: Vector, chosen: Bool[Array, "k K"]) -> Vector:
        """The nearest overlaps for which the chosen fields are exactly zero."""
        state = self.unravel(vector)
        M = state["M"]
        for mean, remove in zip(jnp.asarray(self.task.means), chosen, strict=True):
            share = jnp.where(remove, M @ mean, 0.0) / jnp.maximum(mean @ mean, FLOOR)
            M = M - share[:, None] * mean
        return self.ravel(state | {"M": M})

    def drift_with_signs(self, vector: Vector, signs: Float[Array, "k K"]) -> Vector:
        """The drift without noise with the sign of every field held: it does not jump at zero."""
        state, fields = self.unravel(vector), self.still_fields(vector)
        positive, negative = jnp.maximum(fields, TINY), jnp.minimum(fields, -TINY)
        held = jnp.where(signs > 0, positive, jnp.where(signs < 0, negative, 0.0))
        # moved to its side of zero, a field still varies with the state as it did
        held = jnp.where(signs == 0, 0.0, fields + jax.lax.stop_gradient(held - fields))
        moments = self._average(state, self._still(held))
        return self.ravel(motion(self.task, state, moments, self.step))

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        r"""c·Cov of one sample's motion, second-order part included.

        The increment of R is −δ(g s⊥ᵀ + s⊥gᵀ) + δ²‖z⊥‖²ggᵀ/λ, and since ‖z⊥‖² ≈ dim both parts are
        of order 1/dim and both fluctuate with g. c·JVJᵀ alone (paper 000, Theorem 2.2) misses the
        second one, which its Remark 2 puts back.
        """
        state = self.unravel(vector)

        def sample(readout: Array, g: Array, a: Array, orthogonal: Array) -> Vector:
            moments = Moments(readout, jnp.outer(g, a), jnp.outer(g, orthogonal), jnp.outer(g, g))
            return self.ravel(motion(self.task, state, moments, self.step))

        def component(c: Index) -> tuple[Vector, Float[Array, "n n"]]:
            samples = self._samples(state, c)
            readout, g = self._gradients(state, samples)
            inward = state["M"] @ jnp.linalg.inv(self.task.gram)

            def increment(shift: Array) -> Float[Array, "q n"]:
                # moving the anchor fields at fixed s moves s⊥ the other way
                anchors = samples.anchors + shift
                orthogonal = samples.orthogonal - inward @ shift
                return jax.vmap(sample)(readout, g, anchors, orthogonal)

            here = increment(jnp.zeros(inward.shape[1]))
            mean = samples.weights @ here
            second = (here * samples.weights[:, None]).T @ here
            for direction in samples.spread.T:  # the increment is affine in the anchor fields
                across = increment(direction) - here
                second += (across * samples.weights[:, None]).T @ across
            return mean, second

        means, seconds = jax.lax.map(component, jnp.arange(len(self.task.weights)))
        mean = self.task.weights @ means
        second = jnp.tensordot(self.task.weights, seconds, axes=1)
        return self.step * (second - jnp.outer(mean, mean))

    def constraint(self, vector: Vector) -> Float[Array, " m"]:
        """On the sphere, ‖W_i‖² − 1."""
        if not self.task.spherical:
            return jnp.zeros(0)
        state = self.unravel(vector)
        inside = jnp.sum(state["M"] @ jnp.linalg.inv(self.task.gram) * state["M"], axis=1)
        return inside + jnp.diag(state["R"]) - 1

    def retract(self, vector: Vector) -> Vector:
        """R is positive semidefinite; on the sphere rows have norm 1."""
        state = self.unravel(vector)
        values, vectors = jnp.linalg.eigh(state["R"])
        R = (vectors * jnp.maximum(values, 0.0)) @ vectors.T
        M = state["M"]
        if self.task.spherical:
            norms = jnp.sum(M @ jnp.linalg.inv(self.task.gram) * M, axis=1) + jnp.diag(R)
            scale = 1 / jnp.sqrt(norms)
            M, R = M * scale[:, None], R * jnp.outer(scale, scale)
        return self.ravel(state | {"M": M, "R": R})

    # --- expectations ---------------------------------------------------------------------------

    def jacobian(self, vector: Vector) -> Float[Array, "n n"]:
        """∂h/∂u; jumps of the gradient in s are differentiated through the density of s."""
        jumps = self.rule.kind == "sobol" and self.task.kinks != "none"
        return jax.jacfwd(lambda u: self._motion(u, self.step, fixed_fields=jumps))(vector)

    def moments(self, state: JaxState, *, fixed_fields: bool = False) -> Moments:
        """The four expectations at a state.

        Where g jumps, moving the nodes with the state misses the motion of the jump. With
        ``fixed_fields`` the nodes stay and their weights carry the likelihood ratio instead: the
        same value, the right derivative.
        """
        committee = self.task.committee
        if committee is not None:
            return committee_moments(self.task, committee, state)

        def component(c: Index) -> Moments:
            return self._average(state, self._samples(state, c, fixed_fields=fixed_fields))

        parts = jax.lax.map(component, jnp.arange(len(self.task.weights)))
        return jax.tree.map(lambda part: jnp.tensordot(self.task.weights, part, axes=1), parts)

    def _average(self, state: JaxState, samples: Samples) -> Moments:
        readout, g = self._gradients(state, samples)
        weighted = g * samples.weights[:, None]
        return Moments(
            readout=samples.weights @ readout,
            anchors=weighted.T @ samples.anchors,
            orthogonal=weighted.T @ samples.orthogonal,
            square=weighted.T @ g,
        )

    def _still(self, fields: Float[Array, "k K"]) -> Samples:
        """All components at once, each at its mean."""
        task = self.task
        return Samples(
            fields=fields,
            anchors=jnp.asarray(task.means) @ jnp.asarray(task.gram),
            orthogonal=jnp.zeros_like(fields),
            spread=jnp.zeros((len(task.anchors), 0)),
            labels=jnp.asarray(task.labels),
            weights=jnp.asarray(task.weights),
        )

    def _motion(
        self, vector: Vector, step: Float[Array, ""], *, fixed_fields: bool = False
    ) -> Vector:
        state = self.unravel(vector)
        moments = self.moments(state, fixed_fields=fixed_fields)
        return self.ravel(motion(self.task, state, moments, step))

    def _gradients(self, state: JaxState, samples: Samples) -> tuple[Array, Array]:
        """∂ℓ/∂v (zeros where the readout is fixed) and ∂ℓ/∂s at every node."""
        if self.task.trained:
            both = jax.vmap(jax.grad(self.task.loss, (1, 0)), (0, None, 0))
            return both(samples.fields, state["v"], samples.labels)
        one: Callable[..., Any] = jax.vmap(
            jax.grad(lambda s, y: self.task.loss(s, None, y)), (0, 0)
        )
        g = one(samples.fields, samples.labels)
        return jnp.zeros_like(g), g

    def _samples(self, state: JaxState, c: Index, *, fixed_fields: bool = False) -> Samples:
        task = self.task
        K, r = task.width, len(task.anchors)
        inward = state["M"] @ jnp.linalg.inv(task.gram)  # s = inward · a + s⊥
        center = jnp.asarray(task.gram) @ jnp.asarray(task.means)[c]  # mean of the anchor fields
        anchor_covariance = jnp.asarray(task.gram / task.precision + task.spike)
        orthogonal_covariance = state["R"] / task.precision
        nothing = jnp.zeros((r, 0))
        if task.labels is None:
            A, L = _factor(anchor_covariance), _factor(orthogonal_covariance)
            both = jnp.block([[A, jnp.zeros((r, K))], [inward @ A, L]])
            mean = jnp.concatenate([center, inward @ center])
            points, whitened, weights, noise = self._place(c, mean, both, fixed_fields)
            anchors, fields = points[:, :r], points[:, r:]
            labels = jax.vmap(lambda a, e: task.label(c, a, e))(anchors, noise)
            return Samples(fields, anchors, whitened[:, r:] @ L.T, nothing, labels, weights)
        label = jnp.asarray(task.labels)[c]
        if self.rule.kind == "none":
            still, fields = jnp.zeros((1, K)), (inward @ center)[None]
            return Samples(fields, center[None], still, nothing, label[None], jnp.ones(1))
        across = inward @ anchor_covariance  # covariance of the fields with the anchor fields
        L = _factor(across @ inward.T + orthogonal_covariance)
        fields, whitened, weights, _ = self._place(c, inward @ center, L, fixed_fields)
        onto_anchors = _solve(L, across)
        rest = anchor_covariance - onto_anchors.T @ onto_anchors
        return Samples(
            fields=fields,
            anchors=center + whitened @ onto_anchors,
            orthogonal=whitened @ _solve(L, orthogonal_covariance),
            spread=_factor(rest + JITTER * anchor_covariance),
            labels=jnp.full(len(fields), label),
            weights=weights,
        )

    def _place(
        self, c: Index, mean: Float[Array, " m"], L: Float[Array, "m m"], fixed_fields: bool
    ) -> tuple[Float[Array, "q m"], Float[Array, "q m"], Float[Array, " q"], Float[Array, " q"]]:
        """Nodes mean + Lη of a component, η, their weights, and the label noise at each."""
        rule = self.rule
        if rule.kind == "sobol":
            nodes = jnp.asarray(rule.nodes)[c]
            eta, noise = nodes[:, : len(mean)], nodes[:, -1]
            points, weights = mean + eta @ L.T, jnp.asarray(rule.weights)
            if fixed_fields:
                points = jax.lax.stop_gradient(points)
                eta = _solve(L, (points - mean).T).T
                density = -jnp.sum(eta**2, axis=1) / 2 - jnp.sum(jnp.log(jnp.diag(L)))
                weights = weights * jnp.exp(density - jax.lax.stop_gradient(density))
            return points, eta, weights, noise
        if rule.kind == "orthant":
            points, eta, weights = orthant_nodes(mean, L, *jnp.asarray(rule.line))
        else:
            eta, weights = jnp.asarray(rule.nodes)[0], jnp.asarray(rule.weights)
            points = mean + eta @ L.T
        noise, noise_weights = jnp.asarray(rule.noise)
        each = len(noise)
        weights = (weights[:, None] * noise_weights).ravel()
        repeated = (jnp.repeat(array, each, axis=0) for array in (points, eta))
        return *repeated, weights, jnp.tile(noise, len(points))


def needs_nodes(model: Model) -> bool:
    """Whether every drift is a sum over many quadrature nodes."""
    if not isinstance(model, MultiIndexModel) or model.task.committee is not None:
        return False
    return model.rule.kind != "none"


def _factor(covariance: Float[Array, "m m"]) -> Float[Array, "m m"]:
    diagonal = jnp.diag(covariance)
    return jnp.linalg.cholesky(covariance + jnp.diag(JITTER * diagonal + FLOOR))


def _solve(L: Float[Array, "K K"], B: Float[Array, "K m"]) -> Float[Array, "K m"]:
    return jax.scipy.linalg.solve_triangular(L, B, lower=True)

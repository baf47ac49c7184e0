"""The effective dynamics of multi-index tasks, by automatic differentiation of their loss."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits._precision import as_arrays
from sgdlimits._types import Index
from sgdlimits.dynamics.model.base import Model, Vector, model_of
from sgdlimits.dynamics.model.committee import committee_moments
from sgdlimits.dynamics.model.moments import Moments, motion
from sgdlimits.dynamics.model.quadrature import Quadrature, choose_quadrature
from sgdlimits.dynamics.model.samples import JaxState, Samples, samples_of, still_samples
from sgdlimits.tasks.multi_index import MultiIndexFamily

TINY = 1e-290  # a field on the positive side of zero
SMALL = 1e-20  # squared lengths of means below this are zero
REPLICATES = 8  # scrambles of Sobol nodes whose spread is the error


class MultiIndexModel(Model):
    """Expectations over the mixture by ``rule``; where a task declares a closed form, exactly."""

    task: MultiIndexFamily
    step: Float[Array, ""]
    rule: Quadrature
    nodes: int = eqx.field(static=True)  # asked for
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

    @property
    def exact(self) -> bool:
        """Whether there is a closed form, or nothing to average over."""
        return self.task.committee is not None or self.rule.kind == "none"

    def drift_error(self, vector: Vector) -> Vector:
        """The spread over scrambles of Sobol nodes, else the change from a coarser rule."""
        if self.exact:
            return super().drift_error(vector)
        if self.rule.kind == "sobol":
            seeds = range(1, REPLICATES + 1)
            others = [choose_quadrature(self.task, self.nodes, seed) for seed in seeds]
            return jnp.stack([self._drift_by(rule, vector) for rule in others]).std(0, ddof=1)
        coarse = choose_quadrature(self.task, self.nodes, coarse=True)
        return jnp.abs(self._drift_by(self.rule, vector) - self._drift_by(coarse, vector))

    def _drift_by(self, rule: Quadrature, vector: Vector) -> Vector:
        other = eqx.tree_at(lambda model: model.rule, self, as_arrays(rule))
        return _drift(other, vector)

    # --- without noise: jumps where a field is zero ---------------------------------------------

    @property
    def motion(self) -> str:
        """Without noise the gradient of a network with kinks jumps; with noise it is smooth."""
        if self.rule.kind != "none" or self.task.kinks == "none":
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
        moments = self._average(state, still_samples(self.task, held))
        return self.ravel(motion(self.task, state, moments, self.step))

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        r"""c·Cov of one sample's motion, second-order part included.

        The increment of R is −δ(g s⊥ᵀ + s⊥gᵀ) + δ²‖z⊥‖²ggᵀ/λ, and since ‖z⊥‖² ≈ dim both parts are
        of order 1/dim and both fluctuate with g. c·JVJᵀ alone (BGJ22, Theorem 2.2) misses the
        second one, which its Remark 2 puts back.
        """
        state = self.unravel(vector)

        def sample(readout: Array, g: Array, a: Array, orthogonal: Array) -> Vector:
            moments = Moments(readout, jnp.outer(g, a), jnp.outer(g, orthogonal), jnp.outer(g, g))
            return self.ravel(motion(self.task, state, moments, self.step))

        def component(c: Index) -> tuple[Vector, Float[Array, "n n"]]:
            samples = samples_of(self.task, self.rule, state, c)
            readout, g = self._gradients(state, samples)
            inward = state["M"] @ jnp.linalg.inv(self.task.gram)

            def increment(shift: Array) -> Float[Array, "q n"]:
                # moving the anchor fields at fixed s moves s⊥ the other way
                anchors = samples.anchors + shift
                orthogonal = samples.orthogonal - inward @ shift
                return jax.vmap(sample)(readout, g, anchors, orthogonal)

            increments = increment(jnp.zeros(inward.shape[1]))
            mean = samples.weights @ increments
            second = (increments * samples.weights[:, None]).T @ increments
            for direction in samples.spread.T:  # the increment is affine in the anchor fields
                across = increment(direction) - increments
                second += (across * samples.weights[:, None]).T @ across
            return mean, second

        means, seconds = jax.lax.map(component, jnp.arange(len(self.task.weights)))
        mean = self.task.weights @ means
        second = jnp.tensordot(self.task.weights, seconds, axes=1)
        return self.step * (second - jnp.outer(mean, mean))

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
            return self._average(
                state, samples_of(self.task, self.rule, state, c, fixed_fields=fixed_fields)
            )

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


@model_of.register(MultiIndexFamily)
def multi_index_model(task: MultiIndexFamily, *, step: float, nodes: int) -> MultiIndexModel:
    """Expectations by the rule that suits the loss and the number of fields."""
    rule = choose_quadrature(task, nodes)
    return MultiIndexModel(
        task=as_arrays(task),
        step=jnp.asarray(step),
        rule=as_arrays(rule),
        nodes=nodes,
        tolerance=_tolerance(task, rule.kind),
        jumps_at_zero=_jumps_separately(task),
    )


def _tolerance(task: MultiIndexFamily, kind: str) -> tuple[float, float]:
    """Relative and absolute tolerance of a solver: not below the error of the expectations."""
    if task.committee is not None or kind in ("none", "hermite"):
        return 1e-9, 1e-12
    if kind == "orthant" or task.kinks == "none":
        return 1e-6, 1e-8
    return 1e-4, 1e-6  # a frozen node that crosses a jump moves the drift by 1/nodes


def _jumps_separately(task: MultiIndexFamily) -> bool:
    """Whether, without noise, each field can be held at zero without touching the others.

    True for ReLU networks whose means are orthogonal or opposite, as in the papers: then a solution
    may slide along the jump of one field independently of the others.
    """
    if task.labels is None or task.kinks != "zero" or not math.isinf(task.precision):
        return False
    products = task.means @ task.gram @ task.means.T
    lengths = np.sqrt(np.diag(products))
    cosines = np.abs(products) / np.maximum(np.outer(lengths, lengths), 1e-300)
    return bool(not task.spike.any() and np.all((cosines < 1e-12) | (cosines > 1 - 1e-12)))


_drift = eqx.filter_jit(lambda model, vector: model.drift(vector))

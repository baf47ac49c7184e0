r"""The limit of SGD with slow momentum, U ← (1 − κδ)U + δG and W ← W − δU.

The weights move smoothly; noise enters through U, whose squared length it feeds. With N = UAᵀ,
S = U⊥U⊥ᵀ, X = W⊥U⊥ᵀ, p the velocity of the readout, u⊥ = U⊥x⊥ and E over a fresh sample

- dv/dt = −εp,  dp/dt = −κp + E[∂ℓ/∂v] + αv
- dM/dt = −N,  dN/dt = −κN + E[g (Ax)ᵀ] + αM
- dR/dt = −X − Xᵀ,  dX/dt = −κX − S + E[s⊥ gᵀ] + αR
- dS/dt = −2κS + E[g u⊥ᵀ + u⊥ gᵀ] + α(X + Xᵀ) + (c/λ) E[g gᵀ]

On the sphere each row of W is divided by its norm: with ω_i = ⟨W_i, U_i⟩ row i of M and X gains ω_i
times itself and R_ij gains (ω_i + ω_j)R_ij. U is not turned along.

Given s⊥, u⊥ has the mean Bᵀs⊥, B = R⁺X, so that E[g u⊥ᵀ] = E[g s⊥ᵀ]B: no other integrals.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits import _checks
from sgdlimits._precision import as_arrays
from sgdlimits._types import Real
from sgdlimits.dynamics.model.accuracy import jacobian_errors
from sgdlimits.dynamics.model.base import Errors, Given, Model, Rows, Vector, model_of
from sgdlimits.dynamics.model.committee import moments_across
from sgdlimits.dynamics.model.frame import JaxState, inward_of, square_root
from sgdlimits.dynamics.model.kinks import field_count
from sgdlimits.dynamics.model.moments import Moments
from sgdlimits.dynamics.model.multi_index import MultiIndexModel
from sgdlimits.dynamics.model.quadrature import Quadrature
from sgdlimits.dynamics.model.samples import Samples
from sgdlimits.dynamics.model.sizes import Size
from sgdlimits.tasks.base import Task
from sgdlimits.tasks.multi_index import MultiIndexFamily
from sgdlimits.tasks.with_velocity import WithVelocity

EXACT = 8  # nodes for each field: the diffusion of square units is a mean of degree twelve


def velocity_motion(
    task: WithVelocity,
    state: JaxState,
    moments: Moments,
    across: Float[Array, "K K"],
    step: Real,
) -> JaxState:
    """Change of all statistics per unit of time, ``across`` being E[g u⊥ᵀ]; affine in these."""
    base, friction, ridge = task.base, task.friction, task.base.ridge
    M, R = state["M"], state["R"]
    N, S, X = state["velocity_M"], state["velocity_R"], state["cross_R"]
    noise = step / base.precision * moments.square
    dM, dR = -N, -X - X.T
    dX = moments.orthogonal.T + ridge * R - friction * X - S
    if base.spherical:
        inward = inward_of(base, M)
        along = jnp.sum(inward * N, axis=1) + jnp.diag(X)
        # divided by ‖W_i‖², which is 1: off the sphere by rounding, it then stays there
        along = along / (jnp.sum(inward * M, axis=1) + jnp.diag(R))
        dM, dX = dM + along[:, None] * M, dX + along[:, None] * X
        dR = dR + (along[:, None] + along[None, :]) * R
    change = {
        "M": dM,
        "R": dR,
        "velocity_M": moments.anchors + ridge * M - friction * N,
        "velocity_R": across + across.T + ridge * (X + X.T) + noise - 2 * friction * S,
        "cross_R": dX,
    }
    if base.trained:
        v, p = state["v"], state["velocity_v"]
        change |= {"v": -task.readout_step * p}
        change |= {"velocity_v": moments.readout + ridge * v - friction * p}
    return change


class VelocityModel(Model):
    """Expectations are those of the task without velocities, at the same rule."""

    task: WithVelocity
    step: Float[Array, ""]
    rule: Quadrature
    still: Bool[Array, ""]

    @property
    def weights(self) -> MultiIndexModel:
        """The limit of the weights without momentum."""
        return MultiIndexModel(
            task=self.task.base,
            step=self.step,
            rule=self.rule,
            jumps_at_zero=False,
            still=self.still,
        )

    def population_drift(self, vector: Vector) -> Vector:
        """f: minus the motion at vanishing step size."""
        return self.parts(vector)[0]

    def corrector(self, vector: Vector) -> Vector:
        """g: what noise adds to the squared length of the velocity."""
        return self.parts(vector)[1]

    def parts(self, vector: Vector) -> tuple[Vector, Vector]:
        """Both in one pass over the nodes."""
        state = self.unravel(vector)
        moments, across = self._moments(state)
        slow, now = (
            self.ravel(velocity_motion(self.task, state, moments, across, step))
            for step in (jnp.zeros(()), self.step)
        )
        return -slow, now - slow

    def drift(self, vector: Vector) -> Vector:
        """The velocity h = −f + g."""
        state = self.unravel(vector)
        return self.ravel(velocity_motion(self.task, state, *self._moments(state), self.step))

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """c·Cov of one sample's motion; only what the velocity takes part in is noisy."""
        state = self.unravel(vector)
        weights, precision = self.weights, self.task.base.precision
        frame = weights.frame(weights.ravel(state))
        known = self.task.base.labels is not None and self.rule.placing != "none"
        spread = frame.spread() if known else jnp.zeros((frame.inward.shape[1], 0))
        B = _regression(state, precision)
        left = (state["velocity_R"] - B.T @ state["cross_R"]) / precision
        alone = square_root((left + left.T) / 2)  # u⊥ given s⊥

        def part(samples: Samples) -> tuple[Vector, Float[Array, "n n"]]:
            u = B.T @ samples.orthogonal
            increments = self._increments(state, samples, u)
            mean = increments @ samples.weights
            second = (increments * samples.weights) @ increments.T

            def beside(anchors: Array, orthogonal: Array, u: Array) -> Array:
                moved = samples._replace(anchors=anchors, orthogonal=orthogonal)
                across = self._increments(state, moved, u) - increments
                return (across * samples.weights) @ across.T

            # the increment is affine in all of them
            a, s = samples.anchors, samples.orthogonal
            for direction in alone.T:
                second += beside(a, s, u + direction[:, None])
            for direction in spread.T:  # at fixed s, s⊥ moves the other way
                back = (frame.inward @ direction)[:, None]
                second += beside(a + direction[:, None], s - back, u - B.T @ back)
            return mean, second

        mean, second = weights.over_mixture(state, frame, part)
        return self.step * (second - jnp.outer(mean, mean))

    # --- expectations ---------------------------------------------------------------------------

    @property
    def exact(self) -> bool:
        """Whether there is a closed form, or nothing to average over."""
        return self.weights.exact

    @property
    def tolerance(self) -> tuple[float, float]:
        """(rtol, atol) that the drift can support."""
        return self.weights.tolerance

    @property
    def size(self) -> Size:
        """Which rule it has."""
        return self.rule.size

    def rule_variants(self) -> Quadrature | None:
        """Its rule and others whose spread is the error."""
        return self.weights.rule_variants()

    def ruled(self, rule: Quadrature) -> "VelocityModel":
        """The same with another rule."""
        return self._of(self.weights.ruled(rule))

    def suited(self, vectors: Rows, rtol: float, *, smooth: bool) -> tuple["VelocityModel", float]:
        """The cheapest rule whose error is at most rtol for the weights without momentum."""
        weights, error = self.weights.suited(self._weights_of(vectors), rtol, smooth=smooth)
        return self._of(weights), error

    def with_slopes(self, vectors: Rows, rtol: float) -> "VelocityModel":
        """The same with an accurate Jacobian, if there is a rule for it."""
        return self._of(self.weights.with_slopes(self._weights_of(vectors), rtol))

    def errors(self, vectors: Rows) -> Errors:
        """Those of the weights without momentum, where the same expectations drive velocities."""
        errors = self.weights.errors(self._weights_of(vectors))
        rows = []
        for vector, error in zip(np.asarray(vectors), errors.drift, strict=True):
            state = self.task.layout.unravel(vector)
            of = self.task.base.layout.unravel(error)
            B = np.abs(np.asarray(_regression(state, self.task.base.precision)))
            across = of["R"] @ B
            added = {"velocity_M": of["M"], "velocity_R": across + across.T + of["R"]}
            added |= {"cross_R": of["R"], "velocity_v": of.get("v")}
            row = {name: np.zeros(shape) for name, shape in self.task.shapes.items()} | added
            rows.append(self.task.layout.ravel(row))
        return Errors(np.stack(rows), errors.scale)

    def slopes(self, vector: Given) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
        """The Jacobian, and the estimated error of each entry."""
        return super().slopes(vector) if self.exact else jacobian_errors(self, vector)

    def infinite_rates(self, vector: Given) -> str:
        """Why some derivative of the drift is infinite here, in words."""
        return self.weights.infinite_rates(self._weights_of(np.asarray(vector)[None])[0])

    def resting(self) -> "VelocityModel":
        """The same limit where units without weights stay so."""
        return self._of(self.weights.resting())

    def _of(self, weights: MultiIndexModel) -> "VelocityModel":
        return VelocityModel(self.task, self.step, weights.rule, weights.still)

    def _weights_of(self, vectors: Rows) -> Float[np.ndarray, "q w"]:
        layout = self.task.layout
        return np.asarray(self.task.base.layout.ravel(layout.unravel(np.asarray(vectors))))

    def _moments(self, state: JaxState) -> tuple[Moments, Float[Array, "K K"]]:
        """The expectations, and E[g u⊥ᵀ]."""
        base = self.task.base
        if base.committee is not None:
            return moments_across(base, base.committee, state, state["cross_R"])
        moments = self.weights.moments(state)
        return moments, moments.orthogonal @ _regression(state, base.precision)

    def _increments(
        self, state: JaxState, samples: Samples, u: Float[Array, "K q"]
    ) -> Float[Array, "n q"]:
        """The motion by the sample at each node."""

        def one(readout: Array, g: Array, a: Array, orthogonal: Array, u: Array) -> Vector:
            moments = Moments(readout, jnp.outer(g, a), jnp.outer(g, orthogonal), jnp.outer(g, g))
            across = jnp.outer(g, u)
            return self.ravel(velocity_motion(self.task, state, moments, across, self.step))

        gradients = self.weights.gradients_at(state, samples)
        return jax.vmap(one, 1, 1)(*gradients, samples.anchors, samples.orthogonal, u)


def _regression(state: Any, precision: Real) -> Float[Array, "K K"]:
    """B = R⁺X, by the root of R that fields are made of: E[g s⊥ᵀ] is proportional to its square."""
    C = square_root(jnp.asarray(state["R"]) / precision)
    return jnp.linalg.solve(C.T, jnp.linalg.solve(C, jnp.asarray(state["cross_R"]) / precision))


@functools.singledispatch
def with_velocity(task: Task, friction: float, readout_step: float) -> Task:
    """The task with the statistics of its velocity; a family registers its own."""
    del readout_step
    raise _checks.InputError(
        f'momentum=("slow", {friction:g}) is not allowed: no limit with slow momentum is known for '
        f"{type(task).__name__}"
    )


@with_velocity.register
def network_with_velocity(
    task: MultiIndexFamily, friction: float, readout_step: float
) -> WithVelocity:
    """A multi-index task's."""
    return WithVelocity(task, friction, readout_step)


@model_of.register(WithVelocity)
def velocity_model(task: WithVelocity, *, step: float, nodes: int) -> VelocityModel:
    """By the rule of the task without momentum."""
    committee = task.base.committee
    if committee is not None and committee.activation == "square":  # for the diffusion alone
        nodes = min(nodes, EXACT ** field_count(task.base))
    weights: Any = model_of(task.base, step=step, nodes=nodes)
    if weights.motion != "smooth":
        raise _checks.InputError(
            f"precision={task.base.precision} is not allowed with slow momentum: without noise the "
            "gradient of this network jumps; give a finite precision"
        )
    return VelocityModel(as_arrays(task), weights.step, weights.rule, weights.still)

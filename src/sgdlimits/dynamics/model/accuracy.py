"""How far to trust a quadrature rule at a state: its distance from rules unlike it."""

from typing import Protocol, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits.dynamics.model.base import Errors, Vector
from sgdlimits.dynamics.model.bends import Bends, bends_at
from sgdlimits.dynamics.model.frame import Frame, JaxState
from sgdlimits.dynamics.model.quadrature import FALL, RANDOM, Quadrature, probes, variants
from sgdlimits.dynamics.model.sizes import Size, probe_size
from sgdlimits.tasks.multi_index import MultiIndexFamily

STUDENT = 1.5  # for deviations that are themselves estimated from nine rules
SLOWLY = 2.0  # for orthant rules, whose changes hide as much where kinks meet in threes
BY_CHANCE = 6.0  # standard errors by which plain random nodes may be off
TRUSTED = 0.1  # part of its last change that a sparse grid is trusted to be accurate to, at best
TINY = 1e-290


class Ruled(Protocol):
    """A model whose expectations are by a rule that can be another one."""

    @property
    def task(self) -> MultiIndexFamily:
        """What is learned."""

    @property
    def rule(self) -> Quadrature:
        """That of the expectations."""

    @property
    def full_size(self) -> Size:
        """That of the rule."""

    @property
    def smooth(self) -> bool:
        """Whether the drift by this rule is."""

    def sized(self, size: Size) -> Self:
        """The same with another rule."""

    def ruled(self, rule: Quadrature) -> Self:
        """The same with another rule of the same size."""

    def unravel(self, vector: Vector) -> JaxState:
        """The state with this vector."""

    def frame(self, vector: Vector) -> Frame:
        """How the fields depend on independent normals."""

    def scaled_drift(self, vector: Vector) -> tuple[Vector, Float[Array, ""]]:
        """The drift, and the size of what cancels in it."""

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """The covariance rate."""

    def jacobian(self, vector: Vector) -> Float[Array, "n n"]:
        """The derivative of the drift."""

    def rare(self, vector: Vector) -> Vector:
        """Deviation of one sample's motion that is due to rare and large ones."""

    def errors(self, vectors: Float[Array, "q n"]) -> Errors:
        """Of the drift at some vectors."""


def drift_errors(model: Ruled, vectors: Float[Array, "q n"]) -> Errors:
    """The spread over rules that have little in common with this one but their size.

    All of them may be wrong alike, where the loss is not what it is taken to be: so the rule is
    also compared with random nodes that know nothing of the loss. Where no node meets the bend of a
    steep unit nothing is known, and the error is as large as what is averaged.
    """
    drifts, scales = _by_all(model, variants(model.task, model.full_size), vectors)
    error = _spread(model.rule.kind, drifts)
    if model.rule.kind != "sobol":
        size = probe_size(model.task)
        # their weights are positive, so that the scale is right
        plain, scales = _by_all(model.sized(size), probes(model.task), vectors)
        gap = jnp.abs(drifts[0] - plain.mean(0))
        chance = plain.std(0, ddof=1) / len(plain) ** 0.5
        if bool(jnp.any(gap - BY_CHANCE * chance > error)):
            # they may have missed what is rare and large, as this rule would know
            own = jnp.stack([_rare(model, vector) for vector in vectors])
            chance = jnp.maximum(chance, own / (len(plain) * size.nodes) ** 0.5)
        error = jnp.maximum(error, gap - BY_CHANCE * chance)
    if model.rule.kinks.soft and not model.rule.bends:
        missed = _bends(model, vectors).missed[:, None]
        error = jnp.where(missed, jnp.maximum(error, scales[:, None]), error)
    return Errors(error, scales)


def diffusion_errors(model: Ruled, vector: Vector) -> Float[Array, "n n"]:
    """The spread of the diffusion over the same rules."""
    rules = variants(model.task, model.full_size)
    return _spread(model.rule.kind, _diffusions(model, rules, vector))


def jacobian_errors(model: Ruled, vector: Vector) -> Float[Array, "n n"]:
    """The spread of the derivative of the drift over the same rules."""
    rules = variants(model.task, model.full_size)
    return _spread(model.rule.kind, _jacobians(model, rules, vector))


def bent(model: Ruled, vectors: Float[Array, "q n"]) -> float:
    """How far the arguments of saturating units move."""
    if not model.rule.kinks.soft:
        return 0.0
    return float(jnp.max(_bends(model.sized(probe_size(model.task)), vectors).deviation))


def _spread(kind: str, values: Array) -> Array:
    """Standard deviation over random rules; the largest change to other orders.

    Of sparse grids, that to turned ones, and what is left of that to a lower level if the next one
    is smaller by as much as this one is than the one before.
    """
    if kind in RANDOM:
        return STUDENT * values.std(0, ddof=1)
    changes = jnp.abs(values[1:] - values[0])
    if kind == "orthant":
        changes = SLOWLY * changes
    if kind == "sparse":
        before = jnp.max(jnp.abs(values[2] - values[1]))
        left = jnp.clip(jnp.max(changes[0]) / jnp.maximum(before, TINY), TRUSTED, 1.0)
        changes = jnp.concatenate([left * changes[:1], changes[FALL:]])
    return jnp.max(changes, axis=0)


@eqx.filter_jit
def _by_all(
    model: Ruled, rules: Quadrature, vectors: Float[Array, "q n"]
) -> tuple[Float[Array, "rules q n"], Float[Array, " q"]]:
    """The drift by every rule at every vector, and its scale."""

    def one(rule: Quadrature) -> tuple[Array, Array]:
        return jax.lax.map(model.ruled(rule).scaled_drift, vectors)

    drifts, scales = jax.lax.map(one, rules)
    return drifts, scales[0]


@eqx.filter_jit
def _bends(model: Ruled, vectors: Float[Array, "q n"]) -> Bends:
    def at(vector: Vector) -> Bends:
        return bends_at(model.task, model.rule, model.frame(vector), model.unravel(vector))

    return jax.lax.map(at, vectors)


@eqx.filter_jit
def _diffusions(model: Ruled, rules: Quadrature, vector: Vector) -> Array:
    return jax.lax.map(lambda rule: model.ruled(rule).diffusion(vector), rules)


@eqx.filter_jit
def _jacobians(model: Ruled, rules: Quadrature, vector: Vector) -> Array:
    return jax.lax.map(lambda rule: model.ruled(rule).jacobian(vector), rules)


_rare = eqx.filter_jit(lambda model, vector: model.rare(vector))

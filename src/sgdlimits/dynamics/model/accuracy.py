"""How far to trust a quadrature rule at a state: its distance from rules unlike it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgdlimits import _cores
from sgdlimits._compiled import compiled
from sgdlimits.dynamics.model.base import Given, Vector
from sgdlimits.dynamics.model.bends import Averaged, bends_at
from sgdlimits.dynamics.model.blocks import Arrangement, arrangement
from sgdlimits.dynamics.model.kinks import field_count
from sgdlimits.dynamics.model.quadrature import FALL, RANDOM, Quadrature, probes, variants
from sgdlimits.dynamics.model.sizes import Size, probe_size, whole_fields
from sgdlimits.dynamics.model.table import Table, Tabled

STUDENT = 1.5  # for deviations that are themselves estimated from nine rules
SLOWLY = 2.0  # for orthant rules, whose changes hide as much where kinks meet in threes
BY_CHANCE = 6.0  # standard errors by which plain random nodes may be off
FEW = 100.0  # if not more samples than that matter, they are rare and large
UNSEEN = 2.0  # a rule has seen them if the mean square by it is not smaller by this factor
TRUSTED = 0.1  # part of its last change that a sparse grid is trusted to be accurate to, at best
THINNED = 4  # of plain random nodes one in so many is enough for how large things are
GENTLE = 1.0  # arguments of saturating units that move by less bend nothing between two nodes
TINY = 1e-290

_COMPILED: set[Any] = set()  # kinds of models whose surveys have been made


class Sized(Protocol):
    """What averages by a rule of some kind."""

    @property
    def size(self) -> Size:
        """That of the rule."""


class SizedModel(Sized, Tabled, Protocol):
    """A model whose expectations are by a rule of some kind."""


class Ruled(Averaged, Sized, Protocol):
    """What averages by a rule that can be another one: a model its drift, or a mean its value."""

    @property
    def smooth(self) -> bool:
        """Whether what it averages by this rule is."""

    def sized(self, size: Size) -> Self:
        """The same with another rule."""

    def ruled(self, rule: Quadrature) -> Self:
        """The same with another rule."""

    def by_every_rule(self, vector: Given) -> Float[np.ndarray, "rules m"]:
        """The averages by every variant of the rule, its own first."""

    def averages(self, vector: Vector) -> tuple[Float[Array, " m"], Float[Array, " 2"]]:
        """What is averaged, and the mean second and fourth power of how large a sample is."""

    def scale(self, vector: Vector) -> Float[Array, ""]:
        """The size of what cancels in the averages."""

    def rare(self, vector: Vector) -> Float[Array, " m"]:
        """Deviation of what one sample adds that is due to rare and large ones."""


class RuledModel(Ruled, SizedModel, Protocol):
    """A model, of which the diffusion and derivatives are asked for too."""

    def diffusion(self, vector: Vector) -> Float[Array, "n n"]:
        """The covariance rate."""


class Survey(NamedTuple):
    """What plain random nodes tell of a state, whatever rule is taken there.

    Attributes:
        averages: by every set of them.
        square: the mean square of how large a sample is.
        effective: number of samples of which that square is made.
        scale: size of the terms that cancel in the averages.
        reach: how far the fields move along each direction of their frame.
        bent: how far the arguments of saturating units move.
        arranged: how an orthant rule would take the fields, for every number of pairs.
    """

    averages: Any  # (probes, m)
    square: Any
    effective: Any
    scale: Any
    reach: Any  # (m,)
    bent: Any
    arranged: tuple[Arrangement, ...]


def surveys(model: Ruled, vectors: Sequence[Given]) -> list[Survey]:
    """Look around at several states, in threads once it is known that programs are compiled."""
    key = jax.tree.structure(model)
    if key not in _COMPILED:
        _COMPILED.add(key)
        return [survey(model, vector) for vector in vectors]

    def one(vector: Given) -> Survey:
        with jax.enable_x64(True):  # a setting of each thread
            return survey(model, vector)

    with ThreadPoolExecutor(max_workers=_cores.usable()) as pool:
        return list(pool.map(one, vectors))


def survey(model: Ruled, vector: Given) -> Survey:
    """Look around at a state."""
    task = model.task
    plain, kinks = model.sized(probe_size(task)), model.rule.kinks
    seen = jax.tree.map(np.asarray, _survey(plain, probes(task), jnp.asarray(vector)))
    whole = whole_fields(kinks, field_count(task))
    split = field_count(task) - len(whole)
    pairs = range(split // 2 + 1) if split and not kinks.unknown else ()
    factor, (square, fourth) = seen.factor[: field_count(task)], seen.powers
    return Survey(
        seen.averages,
        square,
        seen.nodes * square**2 / (fourth + TINY),
        seen.scale,
        np.linalg.norm(seen.factor, axis=0),
        seen.bent,
        tuple(arrangement(factor, n, whole) for n in pairs),
    )


def average_error(model: Ruled, vector: Given, seen: Survey) -> Float[np.ndarray, " m"]:
    """The spread over other rules; as large as what is averaged, where no node meets a bend."""
    error = spread_error(model, vector, seen)
    return np.maximum(error, seen.scale) if misses_bends(model, vector, seen) else error


def spread_error(model: Ruled, vector: Given, seen: Survey) -> Float[np.ndarray, " m"]:
    """The spread over rules that have little in common with this one but their size.

    All of them may be wrong alike, where the loss is not what it is taken to be: so the rule is
    also compared with random nodes that know nothing of the loss.
    """
    averages = model.by_every_rule(vector)
    error = _spread(model.size.kind, averages)
    if model.size.kind != "sobol":
        gap = np.abs(averages[0] - seen.averages.mean(0))
        chance = seen.averages.std(0, ddof=1) / len(seen.averages) ** 0.5
        if np.any(gap - BY_CHANCE * chance > error):
            # they may have missed what is rare and large, as this rule would know
            many = len(seen.averages) * probe_size(model.task).nodes
            chance = np.maximum(chance, np.asarray(_rare(model, jnp.asarray(vector))) / many**0.5)
        error = np.maximum(error, gap - BY_CHANCE * chance)
        if seen.effective < FEW and np.any(gap > error) and _overlooks(model, vector, seen):
            error = np.maximum(error, gap)
    return error


def _overlooks(model: Ruled, vector: Given, seen: Survey) -> bool:
    """Whether the rule misses the rare and large samples that random nodes have met."""
    _, powers = _averages(model, jnp.asarray(vector))
    return bool(UNSEEN * powers[0] < seen.square)


def misses_bends(model: Ruled, vector: Given, seen: Survey) -> bool:
    """Whether no node of the model's rule meets the bend of a steep unit: nothing is known then."""
    soft = model.rule.kinks.soft and not model.rule.bends and float(seen.bent) > GENTLE
    return bool(soft) and bool(_missed(model, jnp.asarray(vector)))


def diffusion_errors(model: RuledModel, vector: Given) -> Float[np.ndarray, "n n"]:
    """The spread of the diffusion over the same rules."""
    rules = variants(model.task, model.size)
    return _spread(model.size.kind, np.asarray(_diffusions(model, rules, jnp.asarray(vector))))


def jacobian_errors(model: SizedModel, vector: Given) -> tuple[np.ndarray, np.ndarray]:
    """The derivative of the drift, and its spread over the same rules."""
    jacobians = Table(model).jacobians(np.asarray(vector)[None])[:, 0]
    return jacobians[0], _spread(model.size.kind, jacobians)


def _spread(kind: str, values: np.ndarray) -> np.ndarray:
    """Standard deviation over random rules; the largest change to other orders.

    Of sparse grids, that to turned ones, and what is left of that to a lower level if the next one
    is smaller by as much as this one is than the one before.
    """
    if kind in RANDOM:
        return STUDENT * values.std(0, ddof=1)
    changes = np.abs(values[1:] - values[0])
    if kind == "orthant":
        changes = SLOWLY * changes
    if kind == "sparse":
        before = np.max(np.abs(values[2] - values[1]))
        left = np.clip(np.max(changes[0]) / max(before, TINY), TRUSTED, 1.0)
        changes = np.concatenate([left * changes[:1], changes[FALL:]])
    return np.max(changes, axis=0)


class _Sums(NamedTuple):
    """What a survey needs sums over nodes for, and the factor of the frame."""

    averages: Any
    powers: Any
    nodes: Any
    scale: Any
    bent: Any
    factor: Any


@compiled
def _survey(plain: Ruled, rules: Quadrature, vector: Vector) -> _Sums:
    averages, powers = jax.lax.map(lambda rule: plain.ruled(rule).averages(vector), rules)
    few = plain.ruled(plain.rule.thinned(THINNED))
    return _Sums(
        averages,
        powers.mean(axis=0),
        len(averages) * len(plain.task.weights) * jnp.sum(plain.rule.weights > 0),
        few.scale(vector),
        bends_at(few, vector).deviation if plain.rule.kinks.soft else jnp.zeros(()),
        plain.frame(vector).factor,
    )


@compiled
def _averages(model: Ruled, vector: Vector) -> tuple[Array, Array]:
    return model.averages(vector)


@compiled
def _missed(model: Ruled, vector: Vector) -> Bool[Array, ""]:
    return bends_at(model, vector).missed


@compiled
def _diffusions(model: RuledModel, rules: Quadrature, vector: Vector) -> Array:
    return jax.lax.map(lambda rule: model.ruled(rule).diffusion(vector), rules)


@compiled
def _rare(model: Ruled, vector: Vector) -> Array:
    return model.rare(vector)

"""The drift of a model and its derivatives at many vectors, by as few programs as possible."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _cores
from sgdlimits._compiled import bound, entry
from sgdlimits._pieces import Pieces
from sgdlimits._types import Index
from sgdlimits.tasks.base import Task

LEAST, GROWTH = 8, 8  # vectors that a program has room for: 8, 64, 512, …

ON_SURFACE = 1e-9  # a switch closer to zero than this is taken to be zero

Rows = Float[np.ndarray, "q n"]
Signs = Float[np.ndarray, "q ..."]


class Tabled(Protocol):
    """What a table needs to know: a model."""

    @property
    def task(self) -> Any:
        """What is learned."""

    @property
    def motion(self) -> str:
        """How solutions move."""

    @property
    def tolerance(self) -> tuple[float, float]:
        """(rtol, atol) that the drift can support."""

    def rule_variants(self) -> Any:
        """Rules for its expectations along a leading axis, its own first; None if exact."""

    def rule_halves(self) -> tuple[Any, ...]:
        """Where sums are long, the same for either half of what is summed."""

    def ruled(self, rule: Any) -> Any:
        """The same by another rule."""

    def parts(self, vector: Array) -> tuple[Array, Array]:
        """(f, g)."""

    def jacobian(self, vector: Array) -> Array:
        """∂h/∂u."""

    def constraint(self, vector: Array) -> Array:
        """What vanishes at every state."""

    def switches(self, vector: Array) -> Array:
        """Functions of the statistics across whose zeros the drift jumps."""

    def drift_with_signs(self, vector: Array, signs: Array) -> Array:
        """The drift with their signs held."""

    def onto_switches(self, vector: Array, chosen: Array) -> Array:
        """The nearest statistics for which some of them are zero."""


class Table:
    """What a model says at rows of vectors; NumPy in and out.

    One program for the drift and one for its derivative serve any number of rows up to eight, one
    more up to 64, and so on; where expectations are sums, the variants of a rule whose spread is
    the error are rows too. So who needs the drift at a state, its error, a solution or a rest
    point compiles the drift once.

    Long sums are two, which two threads take: always, so that no bit depends on how many there are.
    """

    def __init__(self, model: Tabled):
        self.model = model
        self.task: Task = model.task
        self._rules = model.rule_variants()
        self._sums = model.rule_halves() or (self._rules,)
        several = len(self._sums) > 1 and _cores.usable() > 1
        self._helper = ThreadPoolExecutor(1) if several else None
        self._programs: dict[Callable[..., Any], list[Callable[..., Any]]] = {}
        self._pieces: dict[Callable[..., Any], Pieces] = {}

    def drift(self, vectors: Rows) -> Rows:
        """The velocity h = −f + g at every vector."""
        parts = self.parts(vectors)[0]
        return parts[:, 1] - parts[:, 0]

    def drifts(self, vectors: Rows) -> Float[np.ndarray, "rules q n"]:
        """The same by every variant of the rule, the model's own first."""
        parts = self.parts(vectors, every_rule=True)
        return parts[:, :, 1] - parts[:, :, 0]

    def parts(self, vectors: Rows, *, every_rule: bool = False) -> Float[np.ndarray, "rules q 2 n"]:
        """F and g at every vector, by the model's own rule or by all of its variants."""
        return self._filled(_parts, vectors, every_rule=every_rule)

    def stages(
        self, tableau: Float[np.ndarray, "s s"], vectors: Rows, lengths: Float[np.ndarray, " q"]
    ) -> Float[np.ndarray, "q s n"]:
        """The velocities at all stages of explicit steps from every vector."""
        tableaus = np.broadcast_to(tableau, (len(vectors), *tableau.shape))
        return self._filled(_stages, vectors, lengths, tableaus)

    def jacobian(self, vectors: Rows) -> Float[np.ndarray, "q n n"]:
        """The derivative of the drift at every vector."""
        return self.jacobians(vectors, every_rule=False)[0]

    def jacobians(
        self, vectors: Rows, *, every_rule: bool = True
    ) -> Float[np.ndarray, "rules q n n"]:
        """The same by every variant of the rule."""
        return self._filled(_jacobians, vectors, every_rule=every_rule)

    # --- what makes a vector a state: small things, nothing to compile --------------------------

    def retract(self, vectors: Rows) -> Rows:
        """The nearest vectors that are states."""
        layout = self.task.layout
        return np.asarray(layout.ravel(self.task.project(layout.unravel(np.asarray(vectors)))))

    def constraint(self, vectors: Rows) -> Float[np.ndarray, "q m"]:
        """What vanishes at states."""
        rows = [self.task.constraint(self.task.layout.unravel(vector)) for vector in vectors]
        return np.array(rows).reshape(len(vectors), -1)

    def constraint_jacobian(self, vectors: Rows) -> Float[np.ndarray, "q m n"]:
        """Its derivative."""
        if self.constraint(vectors[:1]).size == 0:
            return np.zeros((len(vectors), 0, vectors.shape[1]))
        return self._filled(_constraint_jacobians, vectors)

    def margin(self, vectors: Rows) -> Float[np.ndarray, " q"]:
        """The least eigenvalue of R, or r2: not negative at a state."""
        layout = self.task.layout
        return np.array([float(layout.smallest(layout.unravel(vector))) for vector in vectors])

    # --- where the drift jumps ------------------------------------------------------------------

    def switches(self, vectors: Rows) -> Signs:
        """Functions of the statistics across whose zeros the drift jumps."""
        return self._filled(_switches, vectors)

    def signs(self, vectors: Rows) -> Signs:
        """Theirs; 0 on the surface."""
        values = self.switches(vectors)
        return np.where(np.abs(values) < ON_SURFACE, 0.0, np.sign(values))

    def held(self, vectors: Rows, signs: Signs) -> Rows:
        """The drift with the sign of every switch held: smooth across it."""
        if not self.slides:
            return self.drift(vectors)
        return self._filled(_held, vectors, signs)

    def held_jacobian(self, vectors: Rows, signs: Signs) -> Float[np.ndarray, "q n n"]:
        """Its derivative."""
        if not self.slides:
            return self.jacobian(vectors)
        return self._filled(_held_jacobians, vectors, signs)

    def switching(self, vectors: Rows, drifts: Rows) -> Signs:
        """How fast the switches move with the statistics."""
        return self._filled(_switching, vectors, drifts)

    def onto_switches(self, vectors: Rows, chosen: np.ndarray) -> Rows:
        """The nearest vectors for which the chosen switches are exactly zero."""
        if not self.slides or not np.any(chosen):
            return vectors
        return self._filled(_onto_switches, vectors, chosen)

    @property
    def slides(self) -> bool:
        """Whether the drift jumps at switches that can be held."""
        return self.model.motion == "sliding"

    def _filled(
        self, of: Callable[..., Any], *arrays: np.ndarray, every_rule: bool | None = None
    ) -> np.ndarray:
        """What a program says, its arguments padded; along an axis of rules if asked which."""
        warm = of in self._programs
        if not warm:
            fixed: list[tuple[Any, ...]] = [(self.model, rules) for rules in self._sums]
            if every_rule is None:
                fixed = [(self.model,)]
            self._programs[of], self._pieces[of] = [bound(of, *some) for some in fixed], Pieces()
        programs, count, room = self._programs[of], len(arrays[0]), LEAST
        while room < count:
            room *= GROWTH
        index = np.minimum(np.arange(room), count - 1)
        padded = [np.asarray(array) if count == room else array[index] for array in arrays]
        if self._rules is None or every_rule is None:
            table = np.asarray(programs[0](*padded))[:count]
            return table if every_rule is None else table[None]
        rules, parts = len(jax.tree.leaves(self._rules)[0]) if every_rule else 1, []

        def some(first: int, last: int) -> None:
            rows = [np.roll(array, -first, axis=0) for array in padded] if first else padded
            said = self._sum(programs, [*rows, np.array([rules, last - first])], warm=warm)
            parts.append(said[:rules, : last - first])

        self._pieces[of].of(count, some)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def _sum(
        self, programs: Sequence[Callable[..., Any]], args: Sequence[np.ndarray], *, warm: bool
    ) -> np.ndarray:
        """What the programs say, summed; in two threads if they are known to be compiled."""

        def said(program: Callable[..., Any]) -> np.ndarray:
            with jax.enable_x64(True):  # a setting of each thread
                return np.asarray(program(*args))

        first, *others = programs
        if self._helper is None or not warm:
            total = said(first)  # compiled here, or each of the threads would compile the same
            return sum(map(said, others), total)
        handed = [self._helper.submit(said, other) for other in others]
        return sum((one.result() for one in handed), said(first))


def _parts(model: Tabled, rules: Any, vectors: Array, counts: Array | None = None) -> Array:
    shape = (2, vectors.shape[1])
    return _at_each(lambda m, u: jnp.stack(m.parts(u)), shape, model, rules, vectors, counts)


def _jacobians(model: Tabled, rules: Any, vectors: Array, counts: Array | None = None) -> Array:
    shape = (vectors.shape[1], vectors.shape[1])
    return _at_each(lambda m, u: m.jacobian(u), shape, model, rules, vectors, counts)


def _stages(model: Tabled, vectors: Array, lengths: Array, tableaus: Array) -> Array:
    def one(u: Array, h: Array, tableau: Array) -> Array:
        def add(s: Index, k: Array) -> Array:
            population, corrector = model.parts(u + h * (tableau[s] @ k))
            return k.at[s].set(corrector - population)

        return jax.lax.fori_loop(0, len(tableau), add, jnp.zeros((len(tableau), len(u))))

    return jax.vmap(one)(vectors, lengths, tableaus)


def _constraint_jacobians(model: Tabled, vectors: Array) -> Array:
    return jax.vmap(jax.jacfwd(model.constraint))(vectors)


def _switches(model: Tabled, vectors: Array) -> Array:
    return jax.vmap(model.switches)(vectors)


def _held(model: Tabled, vectors: Array, signs: Array) -> Array:
    return jax.vmap(model.drift_with_signs)(vectors, signs)


def _held_jacobians(model: Tabled, vectors: Array, signs: Array) -> Array:
    return jax.vmap(jax.jacfwd(model.drift_with_signs))(vectors, signs)


def _switching(model: Tabled, vectors: Array, drifts: Array) -> Array:
    return jax.vmap(lambda u, h: jax.jvp(model.switches, (u,), (h,))[1])(vectors, drifts)


def _onto_switches(model: Tabled, vectors: Array, chosen: Array) -> Array:
    return jax.vmap(model.onto_switches)(vectors, chosen)


def _at_each(
    of: Callable[[Tabled, Array], Array],
    shape: tuple[int, ...],  # of what it says
    model: Tabled,
    rules: Any,
    vectors: Array,
    counts: Array | None,
) -> Array:
    """What ``of`` says by the first rules at the first vectors, one after the other.

    A vector means sums over thousands of nodes: to take several at once gains nothing.
    """
    if rules is None or counts is None:
        return jax.vmap(lambda vector: of(model, vector))(vectors)
    used, rows = counts
    every = len(jax.tree.leaves(rules)[0])

    def fill(k: Index, table: Array) -> Array:
        r, i = jax.lax.div(k, rows), jax.lax.rem(k, rows)
        rule = jax.tree.map(lambda x: entry(x, r), rules)
        said = of(model.ruled(rule), entry(vectors, i))
        return jax.lax.dynamic_update_index_in_dim(
            table, said, r * len(vectors) + i, 0, allow_negative_indices=False
        )

    nothing = jnp.zeros((every * len(vectors), *shape), vectors.dtype)
    table = jax.lax.fori_loop(0, used * rows, fill, nothing)
    return table.reshape(every, len(vectors), *shape)

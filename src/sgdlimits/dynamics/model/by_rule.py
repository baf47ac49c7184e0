"""Expectations at a state as sums over the nodes of a quadrature rule."""

import dataclasses
from collections.abc import Callable
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from sgdlimits._compiled import traced_once
from sgdlimits._types import Index
from sgdlimits.dynamics.model.frame import Frame, JaxState, frame_of
from sgdlimits.dynamics.model.quadrature import Quadrature, quadrature
from sgdlimits.dynamics.model.samples import Samples, in_chunks, samples_of
from sgdlimits.dynamics.model.sizes import Size
from sgdlimits.tasks.multi_index import MultiIndexFamily

T = TypeVar("T")

REST = 1e-30  # squared lengths of neurons below this are rounding


class ByRule(eqx.Module):
    """What averages over the samples of a task by a rule that can be another one."""

    task: eqx.AbstractVar[MultiIndexFamily]
    rule: eqx.AbstractVar[Quadrature]
    still: eqx.AbstractVar[Bool[Array, ""]]  # whether neurons without weights have fields of zero

    @property
    def size(self) -> Size:
        """Which rule it has."""
        return self.rule.size

    @property
    def smooth(self) -> bool:
        """Whether sums over its nodes are; else they jump a little where a node crosses a kink."""
        return self.rule.kinks.smooth or self.rule.placing != "given"

    def sized(self, size: Size) -> Self:
        """The same with another rule."""
        return self.ruled(quadrature(self.task, size))

    def ruled(self, rule: Quadrature) -> Self:
        """The same with another rule."""
        return dataclasses.replace(self, rule=rule.with_tables_of(self.rule))

    def over_nodes(self, state: JaxState, frame: Frame, part: Callable[[Samples, Index], T]) -> T:
        """What ``part`` makes of all nodes of a component, along an axis of components."""
        sums, apart = self._sums(state, frame, part)
        return jax.vmap(apart)(sums)

    def over_mixture(self, state: JaxState, frame: Frame, part: Callable[[Samples], T]) -> T:
        """What ``part`` makes of the nodes, over all components."""
        sums, apart = self._sums(state, frame, lambda samples, _: part(samples))
        return apart(jnp.asarray(self.task.weights) @ sums)

    def _sums(
        self, state: JaxState, frame: Frame, part: Callable[[Samples, Index], T]
    ) -> tuple[Float[Array, "k n"], Callable[[Float[Array, " n"]], T]]:
        """What ``part`` makes of all nodes of each component, as one row, and what takes it apart.

        Rows, since every array that a loop carries is code of its own to compile.
        """
        moves = self.moving(state)
        apart: Any = None

        def block(c: Index, b: Index) -> Float[Array, " n"]:
            samples = samples_of(self.task, self.rule, frame, state, c, b)
            fields, orthogonal = (
                jnp.where(moves[:, None], x, 0.0) for x in (samples.fields, samples.orthogonal)
            )
            samples = samples._replace(fields=fields, orthogonal=orthogonal)

            def row(some: Samples) -> Float[Array, " n"]:
                nonlocal apart
                joined, apart = ravel_pytree(part(some, c))
                return joined

            return in_chunks(row, samples)

        def component(c: Index) -> Float[Array, " n"]:
            if self.rule.blocks == 1 and self.rule.placing == "lines":  # see ``halves``
                return block(c, jnp.asarray(0))
            shape, of_block = traced_once(lambda b: block(c, b), jnp.asarray(0))
            first, last = self.rule.among
            counts = (first <= c) & (c < last)
            nothing = jnp.zeros(shape.shape, shape.dtype)
            if self.rule.blocks == 1:
                return jax.lax.cond(counts, lambda: of_block(jnp.asarray(0)), lambda: nothing)

            def add(total: Array, b: Index) -> tuple[Array, None]:
                more = lambda: total + of_block(b)  # noqa: E731
                return jax.lax.cond(counts & (b < self.rule.used), more, lambda: total), None

            return jax.lax.scan(add, nothing, jnp.arange(self.rule.blocks))[0]

        return jax.lax.map(component, jnp.arange(len(self.task.weights))), apart

    def moving(self, state: JaxState) -> Bool[Array, " K"]:
        """Which neurons have fields that are not zero."""
        return jnp.any(state["M"] != 0, axis=1) | (jnp.diagonal(state["R"]) > REST) | ~self.still

    def _frame(self, state: JaxState) -> Frame:
        arranged = None if self.rule.orthants is None else self.rule.arranged
        return frame_of(self.task, state, arranged=arranged, noise=self.rule.with_noise)

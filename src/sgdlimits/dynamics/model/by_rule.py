"""Expectations at a state as sums over the nodes of a quadrature rule."""

import dataclasses
from collections.abc import Callable
from typing import Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

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
        moves = self.moving(state)

        def block(c: Index, b: Index) -> T:
            samples = samples_of(self.task, self.rule, frame, state, c, b)
            fields, orthogonal = (
                jnp.where(moves[:, None], x, 0.0) for x in (samples.fields, samples.orthogonal)
            )
            samples = samples._replace(fields=fields, orthogonal=orthogonal)
            return in_chunks(lambda some: part(some, c), samples)

        def component(c: Index) -> T:
            if self.rule.blocks == 1:
                return block(c, jnp.asarray(0))
            shapes, of_block = traced_once(lambda b: block(c, b), jnp.asarray(0))
            nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

            def add(total: T, b: Index) -> tuple[T, None]:
                more = lambda: jax.tree.map(jnp.add, total, of_block(b))  # noqa: E731
                return jax.lax.cond(b < self.rule.used, more, lambda: total), None

            return jax.lax.scan(add, nothing, jnp.arange(self.rule.blocks))[0]

        return jax.lax.map(component, jnp.arange(len(self.task.weights)))

    def moving(self, state: JaxState) -> Bool[Array, " K"]:
        """Which neurons have fields that are not zero."""
        return jnp.any(state["M"] != 0, axis=1) | (jnp.diagonal(state["R"]) > REST) | ~self.still

    def _frame(self, state: JaxState) -> Frame:
        arranged = None if self.rule.orthants is None else self.rule.arranged
        return frame_of(self.task, state, arranged=arranged, noise=self.rule.with_noise)

    def over_mixture(self, state: JaxState, frame: Frame, part: Callable[[Samples], T]) -> T:
        """What ``part`` makes of the nodes, over all components."""
        parts = self.over_nodes(state, frame, lambda samples, _: part(samples))
        return jax.tree.map(lambda x: jnp.tensordot(jnp.asarray(self.task.weights), x, 1), parts)

"""Any function of a sample in the place of a task's loss, so that rules for losses serve it too."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._types import Index, Metric, Real
from sgdlimits.dynamics.model.mean import ERROR
from sgdlimits.tasks.callables import index_beyond, output_of
from sgdlimits.tasks.multi_index import MultiIndexFamily


class Measured(MultiIndexFamily):
    """The data and network of a task, with a metric for its loss.

    Its ``gradients`` are the metric itself, for every field: kinks are looked for in these, so that
    those of the metric are found, its jumps among them.
    """

    of: MultiIndexFamily
    metric: Metric = eqx.field(static=True)

    def __init__(self, of: MultiIndexFamily, metric: Metric):
        for field in dataclasses.fields(MultiIndexFamily):
            setattr(self, field.name, getattr(of, field.name))
        self.kinks = "anywhere"
        self.of, self.metric = of, _opaque(metric)
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            fields, label = jnp.zeros(self.width), jnp.zeros(())
            self._try(fields, fields if self.trained else None, label)

    def loss(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> Float[Array, ""]:
        """The metric of a sample."""
        if self.metric == ERROR:
            return jnp.asarray(self.of.decide(fields, readout) != label, float)
        return jnp.asarray(self._own(fields, readout, label), float)

    def gradients(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """Not of the metric: the metric itself."""
        return jnp.zeros(self.width), jnp.full(self.width, self.loss(fields, readout, label))

    def _own(self, *sample: Any) -> Any:
        """What the caller's function returns, right or wrong."""
        assert callable(self.metric)
        return self.metric(*sample)

    def _try(
        self, fields: Float[Array, " K"], readout: Float[Array, " K"] | None, label: Real
    ) -> None:
        """Raise InputError if the metric cannot work."""
        if self.metric == ERROR:
            jax.eval_shape(self.of.decide, fields, readout)
            return
        output_of("metric", self._own, fields, readout, label)
        beyond = index_beyond(Measured._own, self, fields, readout, label)
        if beyond is not None:
            raise _checks.InputError(
                f"metric is not allowed: width is {self.width}, but metric looks beyond ({beyond})"
            )

    def label(self, component: Index, anchors: Float[Array, " r"], noise: Real) -> Float[Array, ""]:
        """That of the task."""
        return self.of.label(component, anchors, noise)


def _opaque(metric: Metric) -> Metric:
    """The same without numbers to be seen, as those of ``task.loss``: programs ask what it is."""
    if isinstance(metric, str) or jax.tree_util.all_leaves([metric]):
        return metric
    return lambda fields, readout, label: metric(fields, readout, label)

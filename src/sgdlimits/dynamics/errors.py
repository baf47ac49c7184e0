"""What quadrature leaves open in the drift."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp

from sgdlimits.dynamics.model import Model, Vector
from sgdlimits.dynamics.multi_index import MultiIndexModel

REPLICATES = 8


def quadrature_error(model: Model, vector: Vector, build: Callable[..., Model]) -> Vector:
    """Standard error of the drift: over scrambles of Sobol nodes, else against a coarser rule.

    ``build`` makes the same model with another ``seed``, or with ``coarse=True``.
    """
    if not isinstance(model, MultiIndexModel) or model.task.committee is not None:
        return jnp.zeros_like(vector)
    if model.rule.kind == "sobol":
        others = [build(seed=seed) for seed in range(1, REPLICATES + 1)]
        return jnp.stack([_drift(other, vector) for other in others]).std(0, ddof=1)
    if model.rule.kind == "none":
        return jnp.zeros_like(vector)
    return jnp.abs(_drift(model, vector) - _drift(build(coarse=True), vector))


_drift = eqx.filter_jit(lambda model, vector: model.drift(vector))

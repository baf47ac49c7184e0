"""From a task to the engine's view of it: parameters as arrays, with a quadrature rule."""

import jax.numpy as jnp

from sgdlimits import _checks
from sgdlimits._precision import as_arrays, double_precision
from sgdlimits.dynamics.model import Model
from sgdlimits.dynamics.multi_index import MultiIndexModel
from sgdlimits.dynamics.quadrature import choose_quadrature, jumps_separately
from sgdlimits.dynamics.spiked_tensor import SpikedTensorModel
from sgdlimits.tasks import MultiIndexFamily, SpikedTensor, Task


@double_precision
def build_model(
    task: Task, step: float, nodes: int, seed: int = 0, *, coarse: bool = False
) -> Model:
    """The engine's view of a task: its parameters as arrays, with a quadrature rule."""
    if isinstance(task, SpikedTensor):
        return SpikedTensorModel(task=as_arrays(task), step=jnp.asarray(step))
    if isinstance(task, MultiIndexFamily):
        rule = choose_quadrature(task, nodes, seed, coarse=coarse)
        return MultiIndexModel(
            task=as_arrays(task),
            step=jnp.asarray(step),
            rule=as_arrays(rule),
            tolerance=_tolerance(task, rule.kind),
            jumps_at_zero=jumps_separately(task),
        )
    raise _checks.InputError(f"task={task!r} is not allowed: no effective dynamics is known for it")


def _tolerance(task: MultiIndexFamily, kind: str) -> tuple[float, float]:
    """Relative and absolute tolerance of a solver: not below the error of the expectations."""
    if task.committee is not None or kind in ("none", "hermite"):
        return 1e-9, 1e-12
    if kind == "orthant" or task.kinks == "none":
        return 1e-6, 1e-8
    return 1e-4, 1e-6  # a frozen node that crosses a jump moves the drift by 1/nodes

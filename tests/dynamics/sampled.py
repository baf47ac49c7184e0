"""Labels and gradients of many samples, straight from what a task says of one."""

from typing import Any

import equinox as eqx
import jax
import numpy as np


def gradients(
    task: Any, components: Any, anchors: Any, noise: Any, fields: Any, readout: Any
) -> tuple[np.ndarray, np.ndarray]:
    """(∂ℓ/∂s, ∂ℓ/∂v) at every sample; the second is of no meaning where no readout is trained."""
    with jax.enable_x64(True):
        v = np.asarray(readout) if task.trained else np.zeros(task.width)
        g, dv = _gradients(task, components, anchors, noise, fields, v)
    return np.asarray(g), np.asarray(dv)


@eqx.filter_jit
def _gradients(
    task: Any, components: Any, anchors: Any, noise: Any, fields: Any, readout: Any
) -> Any:
    def loss(s: Any, v: Any, y: Any) -> Any:
        return task.loss(s, v if task.trained else None, y)

    labels = jax.vmap(task.label)(components, anchors, noise)
    return jax.vmap(jax.grad(loss, (0, 1)), (0, None, 0))(fields, readout, labels)

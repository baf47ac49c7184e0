"""Labels and gradients of many samples, straight from what a task says of one."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

Sampled = Callable[..., tuple[np.ndarray, np.ndarray]]


def gradients_of(task: Any) -> Sampled:
    """The gradients (∂ℓ/∂s, ∂ℓ/∂v) at samples of one component: two programs for all components.

    The second one is of no meaning where no readout is trained.
    """

    def loss(s: Any, v: Any, y: Any) -> Any:
        return task.loss(s, v if task.trained else None, y)

    label = jax.jit(jax.vmap(task.label))
    slopes = jax.jit(jax.vmap(jax.grad(loss, (0, 1)), (0, None, 0)))

    def gradients(components: Any, anchors: Any, noise: Any, fields: Any, readout: Any) -> Any:
        with jax.enable_x64(True):
            v = np.asarray(readout) if task.trained else np.zeros(task.width)
            g, dv = slopes(fields, v, label(np.asarray(components), anchors, noise))
        return np.asarray(g), np.asarray(dv)

    return gradients

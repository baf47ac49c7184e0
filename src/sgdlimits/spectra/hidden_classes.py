"""How many components of a mixture a network has learned to tell from the others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgdlimits import _checks
from sgdlimits._precision import as_arrays, double_precision
from sgdlimits._types import Number, StateLike
from sgdlimits.spectra.blocks import multi_index
from sgdlimits.tasks import MultiIndexFamily


@double_precision
def hidden_classes(task: MultiIndexFamily, state: StateLike, margin: Number = 0.1) -> int:
    """Count the components of the data that a network discerns.

    Several components may carry the same label, as the four Gaussians of XOR do: they are classes
    that the labels hide. A component c with mean μ_c and label y_c is *discerned* if at its mean
    the network decides for y_c by ``margin``: its loss there is smaller than with any other label,

        loss(Wμ_c, v, y) − loss(Wμ_c, v, y_c) > margin   for every label y ≠ y_c of the task.

    Nothing else about the network is asked, neither its activation nor how labels are coded. For
    cross-entropy the difference is a log-likelihood ratio: the network's output with the sign of
    the label if there are two labels, 0 and 1 or −1 and 1, and a difference of two fields in
    softmax regression. For the squared loss of an output f with labels ±1 it is 2 y_c f.

    In BGHJ23 (Figure 2.6) as many eigenvalues of the readout block leave the others as hidden
    classes are discerned; g(Wμ_c), and with it the output, stays small for the others.

    Args:
        task: a multi-index task with one label for each component, two different ones at least.
        state: its summary statistics.
        margin: ≥ 0, in units of the loss. A network that sees no difference, as at v = 0, discerns
            nothing.

    >>> import sgdlimits as sl
    >>> four = {"v": [1, 1, -1, -1.0], "M": [[1, 0], [-1, 0], [0, 1], [0, -1.0]], "R": np.eye(4)}
    >>> hidden_classes(sl.tasks.XorMixture(), four)
    4
    """
    checked = multi_index(task)
    least = _checks.nonnegative("margin", margin)
    labels = None if checked.labels is None else np.unique(np.asarray(checked.labels))
    if labels is None or len(labels) < 2:
        has = "labels that vary within a component" if labels is None else "one label only"
        raise _checks.InputError(
            f"task={task!r} is not allowed: it has {has}; hidden classes need one label for each "
            "component, and two different ones at least"
        )
    values = checked.check_state(state)
    fields = jnp.asarray(np.asarray(checked.means) @ values["M"].T)
    readout = jnp.asarray(values["v"]) if checked.trained else None
    losses = np.asarray(_losses(as_arrays(checked), fields, readout, jnp.asarray(labels)))
    own = np.searchsorted(labels, np.asarray(checked.labels))[:, None]
    others = losses.copy()
    np.put_along_axis(others, own, np.inf, axis=1)
    margins = others.min(axis=1) - np.take_along_axis(losses, own, axis=1)[:, 0]
    return int(np.sum(margins > least))


@eqx.filter_jit
def _losses(
    task: MultiIndexFamily,
    fields: Float[Array, "k K"],
    readout: Float[Array, " K"] | None,
    labels: Float[Array, " labels"],
) -> Float[Array, "k labels"]:
    """The loss at the mean of every component, with every label."""
    with_labels = jax.vmap(lambda s, y: task.loss(s, readout, y), (None, 0))
    return jax.vmap(with_labels, (0, None))(fields, labels)

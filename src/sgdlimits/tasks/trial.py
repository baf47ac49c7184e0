"""A caller's loss and labels, tried before they are used: on shapes, indices and samples."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sgdlimits import _checks
from sgdlimits._precision import as_arrays
from sgdlimits.tasks.callables import index_beyond, output_of, reason
from sgdlimits.tasks.multi_index import MultiIndexFamily

EACH = 8  # samples of each component
SPARE = 10  # dimensions beyond the least, in which they are drawn


Function = Callable[..., Any]


def try_functions(
    task: MultiIndexFamily, loss: Function, label: Function | None, decide: Function | None
) -> None:
    """Raise InputError if a caller's loss, label or decision cannot work.

    They must be JAX functions that return a real number, must not index beyond what they are given,
    and must be finite, with their gradient, at samples of the task's own data seen through random
    weights. What goes wrong elsewhere is not seen here.

    Args:
        task: whose ``loss`` and ``label`` they are.
        loss: of the task and of a sample's fields, readout and label.
        label: of the task and of a sample's component, anchor fields and noise; None for a list.
        decide: of the task and of a sample's fields and readout; None if there is none.
    """
    # at once, also where the caller is being traced; parameters are traced, as they will be
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        traced, number, fields = as_arrays(task), jnp.zeros(()), jnp.zeros(task.width)
        if label is not None:
            sample = jnp.asarray(len(task.weights) - 1), jnp.zeros(len(task.anchors)), number
            output_of("labels", label, traced, *sample)
            anchors = f"there are {len(task.anchors)} anchors and {len(task.weights)} components"
            _refuse_index("labels", anchors, label, traced, *sample)
        arguments = traced, fields, fields if task.trained else None, number
        _check_loss(loss, *arguments)
        _refuse_index("loss", f"width is {task.width}", loss, *arguments)
        if decide is not None:
            output_of("decide", decide, *arguments[:-1])
            _refuse_index("decide", f"width is {task.width}", decide, *arguments[:-1])
        _check_values(task)


def _check_loss(
    loss: Function,
    task: MultiIndexFamily,
    fields: Float[Array, " K"],
    readout: Float[Array, " K"] | None,
    label: Float[Array, ""],
) -> None:
    arguments = task, fields, readout, label
    if (
        readout is None
        and not _works(loss, *arguments)
        and _works(loss, task, fields, fields, label)
    ):
        raise _checks.InputError(
            "readout='fixed' is not allowed: loss uses its readout, which is None there; "
            'readout="trained" makes it a statistic'
        )
    output = output_of("loss", loss, *arguments)
    if not jnp.issubdtype(output.dtype, jnp.floating):
        raise _checks.InputError(
            f"loss returns {output.dtype} for one sample, which is not allowed: "
            "loss must return a real number"
        )


def _works(function: Function, *arguments: Any) -> bool:
    try:
        jax.eval_shape(function, *arguments)
    except Exception:  # whatever the caller's function raises
        return False
    return True


def _refuse_index(name: str, allowed: str, function: Function, *arguments: Any) -> None:
    beyond = index_beyond(function, *arguments)
    if beyond is not None:
        raise _checks.InputError(
            f"{name} is not allowed: {allowed}, but {name} looks beyond ({beyond})"
        )


class _Samples(NamedTuple):
    """Samples of a task, seen through random weights."""

    component: Int[Array, " n"]
    anchors: Float[Array, "n r"]
    noise: Float[Array, " n"]
    fields: Float[Array, "n K"]


class _Outputs(NamedTuple):
    """What the caller's functions make of them."""

    label: Float[Array, " n"]
    loss: Float[Array, " n"]
    gradient: Float[Array, "n m"]  # of the loss, in fields and readout


def _check_values(task: MultiIndexFamily) -> None:
    state = task.random_state(task.least_dim + SPARE, seed=0)
    samples = _draw(task, state["M"], state["R"])
    readout = jnp.asarray(state["v"]) if task.trained else None
    try:
        outputs = _evaluate(as_arrays(task), samples, readout)
    except Exception as error:  # whatever the caller's function raises when it is differentiated
        raise _checks.InputError(
            f"loss cannot be differentiated, which is not allowed: {reason(error)}"
        ) from error
    given = samples._asdict() | {"label": outputs.label}
    if readout is not None:
        given["readout"] = jnp.broadcast_to(readout, samples.fields.shape)
    for words, values, seen in (
        ("labels returns", outputs.label, ("component", "anchors", "noise")),
        ("loss returns", outputs.loss, ("fields", "readout", "label")),
        ("the gradient of loss is", outputs.gradient, ("fields", "readout", "label")),
    ):
        finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if finite.all():
            continue
        first = int(np.argmin(finite))
        point = ", ".join(f"{k}={_checks.shown(given[k][first])}" for k in seen if k in given)
        raise _checks.InputError(
            f"{words} {_checks.shown(values[first])} for an ordinary sample, which is not allowed: "
            f"it must be finite at {point}"
        )


def _draw(task: MultiIndexFamily, M: np.ndarray, R: np.ndarray) -> _Samples:
    """A few samples of each component, always the same."""
    generator = np.random.default_rng(0)
    component = np.repeat(np.arange(len(task.weights)), EACH)
    size, scale = len(component), task.precision**-0.5
    spread = scale * np.linalg.cholesky(task.gram)
    anchors = task.means[component] @ task.gram
    anchors = anchors + generator.normal(size=anchors.shape) @ spread.T
    across = scale * generator.normal(size=(size, task.width)) @ np.linalg.cholesky(R).T
    fields = anchors @ np.linalg.solve(task.gram, M.T) + across
    parts = component, anchors, generator.normal(size=size), fields
    return _Samples(*map(jnp.asarray, parts))


@eqx.filter_jit
def _evaluate(
    task: MultiIndexFamily, samples: _Samples, readout: Float[Array, " K"] | None
) -> _Outputs:
    def one(component: Array, anchors: Array, noise: Array, fields: Array) -> _Outputs:
        label = task.label(component, anchors, noise)

        def loss(fields: Array, readout: Array | None) -> Array:
            return task.loss(fields, readout, label)

        value = loss(fields, readout)
        chosen = (0,) if readout is None else (0, 1)
        return _Outputs(label, value, jnp.concatenate(jax.grad(loss, chosen)(fields, readout)))

    return jax.vmap(one)(*samples)

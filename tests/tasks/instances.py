"""Every public task, with default parameters and away from them."""

import inspect
import math
from typing import Any

import jax
import jax.numpy as jnp

from sgdlimits import tasks
from sgdlimits.tasks import Task
from tests.families.two_variances import TwoVariances


def hinge(fields: jax.Array, readout: jax.Array | None, label: jax.Array) -> jax.Array:
    return jax.nn.relu(1 - label * fields[0])


def weighted(fields: jax.Array, readout: jax.Array, label: jax.Array) -> jax.Array:
    return (label - jnp.sum(readout * jnp.sin(fields))) ** 2


def scaled(
    fields: jax.Array, readout: jax.Array | None, label: jax.Array, *, slope: jax.Array
) -> jax.Array:
    return jax.nn.softplus(-slope * label * fields[0])


def shifted(
    component: jax.Array, anchors: jax.Array, noise: jax.Array, shift: jax.Array
) -> jax.Array:
    return anchors[0] + shift[component] + noise


def parity(component: jax.Array, anchors: jax.Array, noise: jax.Array) -> jax.Array:
    return jnp.sign(anchors[0] * anchors[1]) + 0.1 * noise


GRAM = [[1.0, 0.3], [0.3, 1.5]]
GRAM3 = [[1.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 0.8]]

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "SpikedTensor": [{}, {"order": 4, "snr": 3.0, "ridge": 0.2}],
    "BinaryMixture": [{}, {"precision": math.inf, "ridge": 0.0, "width": 3}],
    "XorMixture": [{}, {"width": 1, "precision": 2, "ridge": 0.3}],
    "GaussianMixture": [
        {},
        {"classes": 2, "means_gram": GRAM, "weights": [0.3, 0.7]},
        {"weights": [0.5, 0.3, 0.2], "means_gram": GRAM3, "precision": math.inf, "ridge": 0.0},
    ],
    "TeacherStudent": [
        {},
        {"activation": "relu", "teacher_width": 1, "student_width": 3, "readout": "trained"},
        {"activation": "tanh", "noise": 0.5, "teacher_gram": GRAM, "scale": "sum"},
        {"activation": jnp.sin, "student_width": 1},
        {"teacher_readout": [2.0, -0.5], "teacher_activation": "relu", "noise": 0.1},
    ],
    "PhaseRetrieval": [
        {},
        {"width": 3, "noise": 0.3, "readout": "trained"},
        {"width": 2, "spherical": False},
    ],
    "SingleIndex": [
        {},
        {"link": "tanh", "student": jnp.cos, "noise": 0.1},
        {"link": "relu", "spherical": False},
    ],
    "OnlinePCA": [{}, {"snr": 3.0}],
    "MixtureLikelihood": [{}, {"weight": 0.2}],
    "TwoVariances": [{}, {"narrow": 1.0, "wide": 1.5, "signal": 0.3, "noise": 0.0, "ridge": 0.0}],
    "MultiIndexTask": [
        {"loss": hinge, "means": [[1.0], [-1.0]], "labels": [1, -1]},
        {
            "loss": weighted,
            "width": 3,
            "anchors": ["a", "b"],
            "gram": GRAM,
            "labels": parity,
            "precision": 2.0,
            "ridge": 0.1,
            "readout": "trained",
            "spherical": True,
        },
        {
            "loss": hinge,
            "anchors": ("a", "b", "c"),
            "gram": GRAM3,
            "means": [[1.0, 0.0, 0.5], [0.0, 1.0, -0.5]],
            "weights": [0.25, 0.75],
            "labels": [1, -1],
            "kinks": "none",
        },
        {
            "loss": scaled,
            "means": [[1.0], [-1.0]],
            "labels": shifted,
            "parameters": {"slope": 2.0, "shift": [0.5, -0.5]},
        },
    ],
}

PUBLIC = {name: getattr(tasks, name) for name in tasks.__all__}
PUBLIC["TwoVariances"] = TwoVariances  # a family that lives outside of the package
CONCRETE = {
    name: task
    for name, task in PUBLIC.items()
    if issubclass(task, Task) and not inspect.isabstract(task)
}

ARGUMENTS = [(CONCRETE[name], arguments) for name, many in PARAMETERS.items() for arguments in many]
TASKS: list[Task] = [task(**arguments) for task, arguments in ARGUMENTS]
IDS = [f"{name}-{number}" for name, many in PARAMETERS.items() for number, _ in enumerate(many)]

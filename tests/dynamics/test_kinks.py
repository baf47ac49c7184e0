"""Kinks and label noise of a task, found without being told."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import sgdlimits as sl
from sgdlimits.dynamics.model.kinks import kinks_of

PAIR: dict[str, Any] = {"anchors": ["mu"], "means": [[1.0], [-1.0]], "labels": [1, -1]}


def own(loss: Any, **options: Any) -> Any:
    return sl.tasks.MultiIndexTask(loss=loss, **(PAIR | options))


def logistic(fields: Any, _: Any, label: Any) -> Any:
    return jax.nn.softplus(-label * fields[0])


@pytest.mark.parametrize(
    ("task", "kinks", "bends"),
    [
        (own(logistic), 0, 1),
        (own(lambda s, v, y: jax.nn.relu(1 - y * s[0])), 1, 0),
        (own(lambda s, v, y: jax.nn.relu(1 - y * jnp.tanh(s[0]))), 0, 1),  # never off
        (own(lambda s, v, y: (y - s[0] ** 2) ** 2), 0, 0),
        (own(lambda s, v, y: jax.nn.logsumexp(s) - s[0], width=3), 0, 3),
        (own(lambda s, v, y: jnp.where(jnp.abs(y - s[0]) < 1, (y - s[0]) ** 2, 1.0)), 1, 1),
        (sl.tasks.TeacherStudent(activation=jax.nn.gelu), 0, 4),
        (sl.tasks.TeacherStudent(activation=jax.nn.relu), 4, 0),
        (sl.tasks.XorMixture(), 4, 1),
    ],
)
def test_kinks_are_told_from_bends(task: Any, kinks: Any, bends: Any) -> None:
    found = kinks_of(task)
    assert (len(found.hard), len(found.soft), found.unknown) == (kinks, bends, "")


@pytest.mark.parametrize(
    ("labels", "noise"),
    [
        (lambda c, a, e: a[0], "none"),
        (lambda c, a, e: a[0] + 0.3 * e, "affine"),
        (lambda c, a, e: a[0] + jnp.tanh(e), "smooth"),
        (lambda c, a, e: jnp.where(e < -0.8, -a[0], a[0]), "steps"),
        (lambda c, a, e: jnp.where(e < -0.8, -a[0], a[0] + e), "pieces"),
        (lambda c, a, e: jnp.sign(a[0] + e), "field"),
    ],
)
@pytest.mark.parametrize("declared", ["none", "anywhere"])
def test_how_labels_depend_on_noise(labels: Any, noise: Any, declared: Any) -> None:
    assert kinks_of(own(logistic, labels=labels, kinks=declared)).noise == noise


def test_jumps_that_cannot_be_located_are_said() -> None:
    found = kinks_of(own(lambda s, v, y: jnp.floor(s[0]) * s[0]))
    assert "floor" in found.unknown

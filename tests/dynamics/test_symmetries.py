"""Symmetries of tasks, found by trying; orbits of states under them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.dynamics.rest import search
from sgdlimits.dynamics.rest.symmetries import candidates, images_of, symmetries


def images(task: sl.tasks.Task) -> np.ndarray:
    """Of a state in general position."""
    with jax.enable_x64(True):
        limit = sl.effective_dynamics(task, rtol=1e-6)
        states = [task.random_state(task.least_dim + 20, seed=seed) for seed in (3, 4)]
        vectors = jnp.stack([limit.ravel(state) for state in states])
        model, _ = limit.suited(vectors, smooth=True)
        errors = np.concatenate([np.asarray(model.errors(u[None]).drift) for u in vectors])
        group = symmetries(model, np.asarray(vectors), errors)
    return images_of(group, np.asarray(vectors[0]), 1e-6)


@pytest.mark.parametrize(
    ("task", "count"),
    [
        (sl.tasks.SpikedTensor(order=2, snr=2.0), 2),
        (sl.tasks.SpikedTensor(order=3, snr=2.0), 1),
        (sl.tasks.BinaryMixture(), 4),  # two neurons exchanged; v and the mean change sign
        (sl.tasks.PhaseRetrieval(width=2), 8),  # exchanged, and a sign for each
        (sl.tasks.GaussianMixture(classes=3), 6),  # classes and their means permuted
        (sl.tasks.GaussianMixture(classes=3, weights=[0.5, 0.25, 0.25]), 2),
        (sl.tasks.GaussianMixture(classes=3, weights=[0.5, 0.3, 0.2]), 1),
    ],
    ids=str,
)
def test_orbits_of_a_state_in_general_position(task: sl.tasks.Task, count: int) -> None:
    found = images(task)
    assert len(found) == count
    sizes = np.sort(np.abs(found), axis=1)  # nothing but places and signs has changed
    np.testing.assert_allclose(sizes, np.tile(sizes[:1], (count, 1)))


def test_entries_that_are_nearly_equal_make_no_new_images() -> None:
    """Errors of a rule must not make 24 rest points of one that four exchanges leave alone."""
    task = sl.tasks.XorMixture(precision=float("inf"))
    with jax.enable_x64(True):
        limit = sl.effective_dynamics(task)
        states = [task.random_state(30, seed=seed) for seed in (3, 4)]
        vectors = np.stack([limit.ravel(state) for state in states])
        group = symmetries(limit.model, vectors, np.zeros_like(vectors))
    v = 1 + 1e-7 * np.arange(4)
    state = {"v": v, "M": np.stack([v, np.zeros(4)], 1), "R": np.zeros((4, 4))}
    u = limit.ravel(state)
    assert len(images_of(group, u, 1e-3)) == 4  # the signs of two clusters, for either label
    assert len(images_of(group, u, 1e-12)) == 24 * 4  # control


def fits_one(fields: Any, readout: Any, label: Any) -> Any:
    return 1 / (1 + fields[0] ** 4)


@pytest.mark.parametrize(("share", "count"), [(0.5, 4), (0.5 + 1e-7, 2)])
def test_a_task_that_is_nearly_symmetric_is_not(share: float, count: int) -> None:
    """A neuron that fits one of two clusters: they can be exchanged if both are as likely."""
    task = sl.tasks.MultiIndexTask(
        loss=fits_one,
        width=1,
        anchors=["a", "b"],
        means=[[1.0, 0.0], [0.0, 1.0]],
        labels=[0, 1],
        weights=[share, 1 - share],
        precision=50.0,
        ridge=0.3,
    )
    limit = sl.effective_dynamics(task)
    (point,) = limit.fixed_points({"M": [[[1.2, 0.1]]], "R": [[[0.01]]]})
    assert point.multiplicity == count


def test_what_does_not_keep_a_point_at_rest_gives_no_images(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "symmetries", lambda model, *_: candidates(model.task.layout))
    limit = sl.effective_dynamics(sl.tasks.SpikedTensor(order=3, snr=4.0))  # odd: no symmetry
    for point in limit.fixed_points(count=8):
        assert point.multiplicity == 1

"""Tasks with parameters away from their defaults, shared by the suites that run over all tasks."""

import functools
import math
from typing import NamedTuple

import sgdlimits as sl
from sgdlimits.tasks import Task
from tests.families.two_variances import TwoVariances

# Programs of direct SGD are for one dimension each: suites that run over all cases share this one,
# just above where chi-squares of the chain are drawn by a series.
DIRECT_DIM = 120


class Case(NamedTuple):
    """A task and a step size at which SGD on it is stable."""

    task: Task
    step: float

    def __repr__(self) -> str:
        return type(self.task).__name__


@functools.cache
def hinge_network() -> sl.tasks.MultiIndexTask:
    """A task no paper treats: a tanh network with hinge loss on three correlated classes."""
    import jax
    import jax.numpy as jnp

    def loss(s: jax.Array, v: jax.Array, y: jax.Array) -> jax.Array:
        return jax.nn.relu(1 - y * jnp.sum(v * jnp.tanh(s)))

    return sl.tasks.MultiIndexTask(
        loss=loss,
        width=2,
        anchors=["a", "b"],
        gram=[[1.0, 0.3], [0.3, 1.2]],
        means=[[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]],
        weights=[0.5, 0.3, 0.2],
        labels=[1, -1, -1],
        precision=2.0,
        ridge=0.05,
        readout="trained",
    )


CASES = [
    Case(sl.tasks.SpikedTensor(order=2, snr=2.0, ridge=0.3), step=0.5),
    Case(sl.tasks.SpikedTensor(order=3, snr=4.0), step=0.2),
    Case(sl.tasks.BinaryMixture(precision=4.0, ridge=0.05), step=1.0),
    Case(sl.tasks.XorMixture(precision=4.0), step=1.0),
    Case(sl.tasks.XorMixture(precision=math.inf, ridge=0.05), step=0.7),
    Case(
        sl.tasks.GaussianMixture(
            weights=[0.5, 0.3, 0.2],
            means_gram=[[1.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 0.8]],
            precision=3.0,
        ),
        step=1.0,
    ),
    Case(
        sl.tasks.TeacherStudent(
            noise=0.1, teacher_gram=[[1.0, 0.4], [0.4, 1.0]], scale="sum", readout="trained"
        ),
        step=0.5,
    ),
    Case(sl.tasks.TeacherStudent(activation="relu", teacher_width=1), step=0.5),
    Case(sl.tasks.PhaseRetrieval(width=2, noise=0.3), step=0.2),
    Case(sl.tasks.PhaseRetrieval(noise=0.1, spherical=False, readout="trained"), step=0.02),
    Case(sl.tasks.SingleIndex("tanh", student="erf", noise=0.1), step=0.3),
    Case(sl.tasks.OnlinePCA(2.0), step=0.3),
    Case(sl.tasks.MixtureLikelihood(0.3), step=1.0),
    Case(hinge_network(), step=0.5),
    Case(TwoVariances(), step=0.4),
]

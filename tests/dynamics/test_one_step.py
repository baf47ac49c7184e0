"""Drift and diffusion of every move against literal steps of SGD in dimension 10⁶."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits._types import State
from sgdlimits.dynamics import EffectiveDynamics
from sgdlimits.tasks import MultiIndexFamily
from tests.dynamics.literal_step import Sgd, increments

DRAWS = 40_000
ERRORS = 4.5  # standard errors: there are dozens of entries
ORDER_DELTA = 3e-6  # what a step moves besides


class Case(NamedTuple):
    """A move, and words of which at least one is wrong: the negative control."""

    task: MultiIndexFamily
    sgd: Sgd
    wrong: dict[str, Any]
    nodes: int | None = None

    def __repr__(self) -> str:
        words = [f"{name}={x}" for name, x in self.sgd._asdict().items() if x not in (0.4, False)]
        return "-".join([type(self.task).__name__, *words])


RETRIEVAL = sl.tasks.PhaseRetrieval(width=2, noise=0.3)
TRAINED = sl.tasks.PhaseRetrieval(noise=0.2, spherical=False, readout="trained")
SOFTMAX = sl.tasks.GaussianMixture(
    classes=2, weights=[0.4, 0.6], means_gram=[[1.0, 0.3], [0.3, 1.5]], precision=3.0, ridge=0.05
)
BINARY = sl.tasks.BinaryMixture(width=1, precision=3.0)
CASES = [
    Case(RETRIEVAL, Sgd(0.4, batch=3), {"batch": 1}),
    Case(TRAINED, Sgd(0.4, batch=2, readout_step=0.3), {"readout_step": 1.0}),
    Case(RETRIEVAL, Sgd(0.4, friction=1.5), {"momentum": 0.0}),
    Case(SOFTMAX, Sgd(3.0, batch=2, friction=0.7), {"batch": 1}, nodes=2**10),
    Case(BINARY, Sgd(0.4, friction=0.7, readout_step=0.4), {"readout_step": 1.0}),
    Case(BINARY, Sgd(0.4, normalised=True, readout_step=0.5), {"normalised": False}, nodes=2**10),
    Case(SOFTMAX, Sgd(0.4, normalised=True, friction=1.0), {"normalised": False}, nodes=2**10),
]


def random_state(task: MultiIndexFamily, *, moving: bool) -> State:
    """Weights far from symmetric, with a velocity that is not orthogonal to them."""
    rng, K, r = np.random.default_rng(5), task.width, len(task.anchors)
    state = task.random_state(30, seed=3)
    if not moving:
        return state
    C = np.linalg.cholesky(state["R"])
    B = 0.5 * rng.normal(size=(K, K)) + 0.3 * C
    state |= {"velocity_M": rng.normal(size=(K, r)), "cross_R": C @ B.T}
    state |= {"velocity_R": B @ B.T + 0.1 * np.eye(K)}
    return state | ({"velocity_v": rng.normal(size=K)} if task.trained else {})


def standard_errors(limit: EffectiveDynamics, state: State, steps: np.ndarray) -> float:
    """By how many the mean and the covariance of literal steps are off, at most."""
    drift, diffusion = limit.ravel(limit.drift(state)), limit.diffusion(state)
    if len(drift) != steps.shape[1]:  # other statistics
        return np.inf
    root = len(steps) ** 0.5
    of_mean = np.abs(steps.mean(0) - drift) / (steps.std(0) / root + ORDER_DELTA)
    centred = steps - steps.mean(0)
    products = limit.step * centred[:, :, None] * centred[:, None, :]
    of_covariance = np.abs(products.mean(0) - diffusion) / (products.std(0) / root + ORDER_DELTA)
    return max(float(of_mean.max()), float(of_covariance.max()))


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_mean_and_covariance_of_a_step(case: Case) -> None:
    task, words = case.task, case.sgd.words
    state = random_state(task, moving=case.sgd.friction is not None)
    steps = increments(task, state, case.sgd, DRAWS)
    limit = sl.effective_dynamics(task, **words, nodes=case.nodes)
    assert standard_errors(limit, state, steps) < ERRORS
    if "momentum" not in case.wrong:
        wrong = sl.effective_dynamics(task, **(words | case.wrong), nodes=case.nodes)
        assert standard_errors(wrong, state, steps) > 2 * ERRORS


@pytest.mark.parametrize("batch", [1, 3])
def test_normalised_steps_on_a_spiked_tensor(batch: int) -> None:
    """The gradient's noise as it is defined: a Gaussian vector, here in 4000 dimensions."""
    task, dim, draws, step = sl.tasks.SpikedTensor(order=3, snr=2.0, ridge=0.2), 4000, 4000, 0.4
    m, r2 = 0.6, 0.5
    rng, delta, k = np.random.default_rng(1), step / dim, task.order
    x = np.zeros(dim)
    x[:2] = m, r2**0.5
    signal = -2 * task.snr * k * m ** (k - 1) * np.eye(1, dim)[0] + 2 * k * (m**2 + r2) ** 2 * x
    A, B = task.noise_variances(m**2 + r2)
    changes = np.empty((draws, 2))
    for i in range(draws):
        noise = np.sqrt(A / batch) * rng.normal(size=dim) + np.sqrt(B / batch) * x * rng.normal()
        G = signal + noise
        new = x - delta * (np.sqrt(dim) * G / np.linalg.norm(G) + task.ridge * x)
        changes[i] = (new[0] - m) / delta, (new[1:] @ new[1:] - r2) / delta
    limit = sl.effective_dynamics(task, step, batch=batch, normalised=True)
    state = {"m": m, "r2": r2}
    error = changes.std(0) / draws**0.5
    drift = limit.ravel(limit.drift(state))
    assert np.all(np.abs(changes.mean(0) - drift) < 4 * error + 2 / dim)
    plain = sl.effective_dynamics(task, step, batch=batch)
    assert np.any(np.abs(changes.mean(0) - plain.ravel(plain.drift(state))) > 8 * error)
    np.testing.assert_allclose(step * np.cov(changes.T), limit.diffusion(state), rtol=0.1, atol=0.1)
    origin = limit.drift({"m": 0.0, "r2": 0.0})
    assert float(origin["m"]) == 0.0
    assert float(origin["r2"]) == 0.0

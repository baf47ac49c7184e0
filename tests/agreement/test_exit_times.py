"""Which exit time to trust: first passage of SGD from random starts, and from m = 0."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

import sgdlimits as sl

RETRIEVAL = sl.theory.phase_retrieval
THRESHOLD, NOISE, RUNS = 0.05, 0.5, 1000


def excess(state: dict[str, Any]) -> Any:
    """The excess risk (42) of neurons on the sphere, 1 + 1/p + Σ_{j≠l} Q_jl²/p² − 2Σ mⱼ²/p."""
    m = state["M"][:, 0]
    gram, p = state["R"] + jnp.outer(m, m), len(m)
    return 1 + (jnp.sum(gram**2) - 2 * p * jnp.sum(m**2)) / p**2


def exits(dim: int, width: int, step: float, start: dict[str, np.ndarray]) -> np.ndarray:
    """Times at which the risk has lost a share of the excess at the start, of which all have one.

    Between the starts the excess differs by O(1/dim) of it.
    """
    task = sl.tasks.PhaseRetrieval(width=width, noise=NOISE)
    first = [float(excess({name: x[i] for name, x in start.items()})) for i in range(100)]
    event: Any = (excess, "<", (1 - THRESHOLD) * float(np.mean(first)))
    told = sl.first_passage(task, event, dim, runs=RUNS, step=step, seed=1, init=start)
    assert not told.censored.any()
    return np.asarray(told.time.values)


@pytest.mark.parametrize(("dim", "width", "step"), [(600, 1, 0.03), (1000, 2, 0.08)])
def test_exit_times_of_sgd(dim: int, width: int, step: float) -> None:
    """Averaged over starts and noise the theory is right but for O(T²) and O(1/(dT))."""
    options: Any = {"step": step, "noise": NOISE, "threshold": THRESHOLD}
    task = sl.tasks.PhaseRetrieval(width=width, noise=NOISE)
    times = exits(dim, width, step, task.random_state(dim, seed=1, runs=RUNS))
    mean, error = times.mean(), times.std() / RUNS**0.5
    law = RETRIEVAL.exit_law(dim, width, average="diffusive", start="random", **options)
    delay = RETRIEVAL.exit_delay(width, **options)
    assert abs((law.mean + delay) / mean - 1) < 0.02 + 3 * error / mean
    quenched = RETRIEVAL.exit_time(dim, width, average="quenched", **options)
    assert abs(quenched / mean - 1) < 0.05 + 3 * error / mean
    assert kstest(times - delay, law.cdf).pvalue > 1e-4
    # controls: the time of a mean start, and noise from m = 0
    for average in ("annealed", "diffusive"):
        other = RETRIEVAL.exit_time(dim, width, average=average, **options)
        assert abs(other / mean - 1) > 0.05 + 3 * error / mean


def test_exit_times_of_sgd_from_the_equator() -> None:
    dim, step = 600, 0.03
    options: Any = {"step": step, "noise": NOISE, "threshold": THRESHOLD, "average": "diffusive"}
    start = sl.tasks.PhaseRetrieval(noise=NOISE).random_state(dim, seed=1, runs=RUNS, overlap=0.0)
    times = exits(dim, 1, step, start)
    mean, error = times.mean(), times.std() / RUNS**0.5
    delay = RETRIEVAL.exit_delay(step=step, noise=NOISE, threshold=THRESHOLD)
    assert abs((RETRIEVAL.exit_time(dim, **options) + delay) / mean - 1) < 0.02 + 3 * error / mean
    random = RETRIEVAL.exit_time(dim, start="random", **options)
    assert abs(random / mean - 1) > 0.05 + 3 * error / mean  # control: they are ahead

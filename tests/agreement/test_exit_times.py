"""Which exit time to trust: SGD of phase retrieval from random starts, and from m = 0."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import sgdlimits as sl

RETRIEVAL = sl.theory.phase_retrieval
THRESHOLD, NOISE = 0.05, 0.5


def excess_left(state: dict[str, Any]) -> Any:
    """The excess risk (42) over p, 1 + 1/p + Σ_{j≠l} Q_jl²/p² − 2Σ mⱼ²/p, of neurons of norm 1."""
    m = state["M"][:, 0]
    gram = state["R"] + jnp.outer(m, m)
    p = len(m)
    return 1 + (jnp.sum(gram**2) - 2 * p * jnp.sum(m**2)) / p**2


def passages(dim: int, width: int, step: float, runs: int, overlap: float | None) -> Any:
    """Times at which SGD has lost a share of its mean initial excess risk."""
    task = sl.tasks.PhaseRetrieval(width=width, noise=NOISE)
    init = task.random_state(dim, seed=1, runs=runs, overlap=overlap)
    first = 1 + 1 / width
    event: tuple[Callable[[dict[str, Any]], Any], str, float] = (
        excess_left,
        "<",
        (1 - THRESHOLD) * first,
    )
    told = sl.first_passage(task, event, dim, runs=runs, step=step, seed=1, init=init)
    assert not told.censored.any()
    return told.time.values


@pytest.mark.parametrize(("dim", "width", "step"), [(1000, 1, 0.02), (1000, 4, 0.4)])
def test_exit_times_of_sgd(dim: int, width: int, step: float) -> None:
    runs = 1500

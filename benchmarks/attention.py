"""A phase diagram of self-attention against NumPy loops over its grid.

``python -m benchmarks.attention`` times the loop: in a process of its own with one thread, since on
matrices of this size the threads of NumPy cost more than they give.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import sgdlimits as sl
from benchmarks.row import Row

FLOW, TOKENS = sl.lectures.attention, sl.lectures.tokens
PARTICLES, DIM, GRID = 32, 128, 64
CLOSE, STEP = 1e-3, 0.1  # at this step the loop is as accurate as the picture asks, no more
REPEATS, SAMPLED = 3, 8  # columns of the grid on which the loop is timed


def phase_diagram() -> Iterator[Row]:
    """64 inverse temperatures × 64 times of Ginibre matrices, in processor time."""
    X, Q, K, V, times, betas = setting()

    def batched() -> np.ndarray:
        found = FLOW.phases(
            X, times, inverse_temperature=betas, query=Q, key=K, value=V, close=CLOSE
        )
        return np.asarray(found.together.values)

    shares = batched()  # compile
    ours, along = [], []
    for _ in range(REPEATS):
        begun = time.process_time()
        batched()
        ours.append(time.process_time() - begun)
        alone = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.attention"],
            env=alone, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        seconds, loops = json.loads(told)
        along.append(seconds * GRID / SAMPLED)
    # a loop over grid points starts anew at each: its steps are counted, not taken
    steps = np.ceil(times / STEP).sum() / np.ceil(times / STEP)[-1]
    gap = np.mean(np.abs(shares[:: GRID // SAMPLED] - loops))
    if not gap < 0.02:  # as a pair may meet just before a time or just after
        raise AssertionError(f"loop and batched run differ by {gap}")
    words = f"phase diagram {GRID} × {GRID}, n {PARTICLES}, d {DIM}: NumPy RK4"
    yield Row(f"{words} at each point / one run", steps * min(along) / min(ours), 20, True)
    yield Row(f"{words} at each β / one run", min(along) / min(ours), 2, True)


def setting() -> tuple[np.ndarray, ...]:
    """Particles, Q, K, V, times and inverse temperatures."""
    X = TOKENS.uniform(PARTICLES, DIM)[0]
    times, betas = np.linspace(0, 20, GRID + 1)[1:], np.linspace(0, 10, GRID)
    return X, *TOKENS.matrices("ginibre", DIM), times, betas


def column(
    X: np.ndarray, scores: np.ndarray, V: np.ndarray, times: np.ndarray, beta: float
) -> np.ndarray:
    """Shares of pairs that have met at these times, at one β, by steps of fixed length."""

    def velocity(x: np.ndarray) -> np.ndarray:
        logits = beta * (x @ scores @ x.T)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        force = (weights / weights.sum(axis=1, keepdims=True)) @ x @ V.T
        return np.asarray(force - np.sum(force * x, axis=1, keepdims=True) * x)

    upper, shares, now = np.triu_indices(len(X), 1), [], 0.0
    for end in times:
        count = max(1, round((end - now) / STEP))
        h = (end - now) / count
        for _ in range(count):
            a = velocity(X)
            b = velocity(X + h / 2 * a)
            c = velocity(X + h / 2 * b)
            d = velocity(X + h * c)
            X = X + h / 6 * (a + 2 * b + 2 * c + d)
            X = X / np.linalg.norm(X, axis=1, keepdims=True)
        now = end
        shares.append(np.mean((X @ X.T)[upper] >= 1 - CLOSE))
    return np.array(shares)


def timed_columns() -> str:
    """Seconds of processor time for some columns, and the columns."""
    X, Q, K, V, times, betas = setting()
    column(X, Q.T @ K, V, times[:1], 1.0)  # load what NumPy needs
    begun = time.process_time()
    loops = [column(X, Q.T @ K, V, times, b) for b in betas[:: GRID // SAMPLED]]
    return json.dumps([time.process_time() - begun, np.array(loops).tolist()])


if __name__ == "__main__":
    print(timed_columns())

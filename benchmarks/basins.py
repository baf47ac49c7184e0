"""Where many starts of the XOR limit end: one batched solve against SciPy, start by start."""

import math
import time
from collections.abc import Iterator

import numpy as np
from scipy.integrate import solve_ivp

import sgdlimits as sl
from benchmarks.row import Row

WIDTH, RIDGE, TIME, STARTS, SHARE = 4, 0.05, 100.0, 4096, 64
MEANS = [(axis, sign) for axis in (0, 1) for sign in (1.0, -1.0)]


def drift(_: float, flat: np.ndarray) -> np.ndarray:
    """The noiseless drift of readout and overlaps, each mean of mass 1/4 (paper 000, sec. 5)."""
    v, M = flat[:WIDTH], flat[WIDTH:].reshape(WIDTH, 2)
    dv, dM = -RIDGE * v, -RIDGE * M
    for axis, sign in MEANS:
        field, label = sign * M[:, axis], 1.0 - axis
        active = field > 0
        error = (label - 1 / (1 + math.exp(-float(v @ (field * active))))) / 4
        dv = dv + error * field * active
        dM[:, axis] += error * sign * v * active
    return np.concatenate([dv, dM.ravel()])


def many_starts() -> Iterator[Row]:
    task = sl.tasks.XorMixture(width=WIDTH, precision=math.inf, ridge=RIDGE)
    limit = sl.effective_dynamics(task)
    states = task.random_states(10**6, seed=0, runs=range(STARTS))
    limit.basins(states, time=TIME)  # compile
    begin = time.perf_counter()
    limit.basins(states, time=TIME)
    batched = (time.perf_counter() - begin) / STARTS
    begin = time.perf_counter()
    for v, M in zip(states["v"][:SHARE], states["M"][:SHARE], strict=True):
        first = np.concatenate([v, M.ravel()])
        solve_ivp(drift, (0, TIME), first, method="LSODA", rtol=1e-6, atol=1e-9)
    one_by_one = (time.perf_counter() - begin) / SHARE
    what = f"basins of {STARTS} XOR starts: SciPy's LSODA / one batched solve, per start"
    yield Row(what, one_by_one / batched, 5.0, True)

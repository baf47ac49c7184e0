"""Run all benchmarks and print their ratios."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

import sgdlimits as sl
from benchmarks.any_loss import linear_cost
from benchmarks.baselines import per_step, phase_retrieval_loop, xor_loop
from benchmarks.limits import against_solve_ivp
from benchmarks.paths import sample_paths
from benchmarks.row import Row
from benchmarks.spectra import effective_spectrum, leading_pairs
from benchmarks.start import imports_and_commands, second_process
from sgdlimits.tasks import Task

REPEATS = 5


def chain_per_step(task: Task, dim: int, step: float, steps: int, runs: int = 1024) -> float:
    """Median over repeats of the seconds that one step of one run takes."""

    def simulate(steps: int) -> None:
        time = steps * step / dim
        sl.simulate(task, dim=dim, runs=runs, time=time, step=step, init=start, points=2)

    start = task.random_state(500, seed=0)
    simulate(steps)  # compile
    return per_step(simulate, steps, REPEATS) / runs


def against_loops() -> Iterator[Row]:
    xor = sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.1)
    for dim, steps, bound in ((500, 3000, 120.0), (5000, 500, 500.0)):
        loop = per_step(partial(xor_loop, dim), steps, REPEATS)
        chain = chain_per_step(xor, dim, 1.0, 2000)
        yield Row(
            f"XOR, width 4, dim {dim}: NumPy loop / chain, per run-step", loop / chain, bound, True
        )
    retrieval = sl.tasks.PhaseRetrieval(width=1, noise=0.5)
    loop = per_step(partial(phase_retrieval_loop, 3000), 2000, REPEATS)
    chain = chain_per_step(retrieval, 3000, 0.05, 4000)
    yield Row(
        "phase retrieval, dim 3000: NumPy loop / chain, per run-step", loop / chain, 400.0, True
    )


def any_dimension() -> Iterator[Row]:
    """Alternate the two dimensions, so that a noisy machine is noisy to both."""
    task = sl.tasks.XorMixture()
    ratios = []
    for _ in range(REPEATS):
        small, large = (chain_per_step(task, dim, 1.0, 1000) for dim in (10**3, 10**9))
        ratios.append(large / small)
    yield Row("chain per step: dim 10⁹ / dim 10³", float(np.median(ratios)), 1.1, False)


def many_runs() -> Iterator[Row]:
    runs, dim, time_ = 10_000, 1000, 5.0
    task = sl.tasks.SpikedTensor(order=2, snr=1.2)
    sl.simulate(task, dim=dim, runs=256, time=0.1, points=2)  # compile
    start = time.perf_counter()
    sl.simulate(task, dim=dim, runs=runs, time=time_, points=2)
    chain = time.perf_counter() - start
    rng, block = np.random.default_rng(0), np.empty(10**6)
    start = time.perf_counter()
    for _ in range(int(4 * runs * time_ * dim / len(block))):
        rng.standard_normal(out=block)
    normals = time.perf_counter() - start
    what = "matrix PCA, 10⁴ runs × 5000 steps: chain / NumPy drawing 4 normals a step"
    yield Row(what, chain / normals, 6.0, False)


FIRST_CALL = """
import time
import sgdlimits as sl
task = sl.tasks.XorMixture()
start = time.perf_counter()
sl.simulate(task, dim=500, runs=100, time=0.1, points=2)
print(time.perf_counter() - start)
"""


def first_call() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as cache:
        settings = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        for what, bound in (("first call, XOR", 4.0), ("the same in a second process", 1.5)):
            output = subprocess.run(
                [sys.executable, "-c", FIRST_CALL],
                env=os.environ | settings,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            yield Row(f"compile time: {what}", float(output), bound, False, unit="s")


def main() -> None:
    for benchmark in (
        against_loops,
        any_dimension,
        many_runs,
        first_call,
        imports_and_commands,
        second_process,
        against_solve_ivp,
        sample_paths,
        linear_cost,
        leading_pairs,
        effective_spectrum,
    ):
        for row in benchmark():
            print(row, flush=True)


if __name__ == "__main__":
    main()

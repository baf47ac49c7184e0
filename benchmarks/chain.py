"""The exact chain against NumPy loops, and against the chain that it replaced."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from unittest import mock

import jax
import numpy as np

import sgdlimits as sl
from benchmarks.baselines import per_step, phase_retrieval_loop, xor_loop
from benchmarks.gram_schmidt import gram_schmidt_program
from benchmarks.row import Row
from sgdlimits._cores import THREADS
from sgdlimits._moves import moves
from sgdlimits._precision import staged
from sgdlimits._segments import seed_words
from sgdlimits.simulate.base import observe_at, process_of
from sgdlimits.tasks import Task

REPEATS = 7
DIM = 500


def chain_per_step(task: Task, dim: int, step: float, steps: int, runs: int = 1024) -> float:
    """The least over repeats of the seconds that one step of one run takes, on all cores."""

    def simulate(steps: int) -> None:
        time = steps * step / dim
        sl.simulate(task, dim=dim, runs=runs, time=time, step=step, init=start, points=2)

    start = task.random_state(500, seed=0)
    simulate(1)  # compile
    return min(per_step(simulate, steps, 1) for _ in range(REPEATS)) / runs


def against_loops() -> Iterator[Row]:
    xor = sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.1)
    retrieval = sl.tasks.PhaseRetrieval(width=1, noise=0.5)
    for what, task, loop, dim, step, steps, bound in (
        ("XOR, width 4", xor, partial(xor_loop, 500), 500, 1.0, 3000, 350.0),
        ("XOR, width 4", xor, partial(xor_loop, 5000), 5000, 1.0, 500, 1500.0),
        ("phase retrieval", retrieval, partial(phase_retrieval_loop, 3000), 3000, 0.05, 2000, 1e3),
    ):
        slow = min(per_step(loop, steps, 1) for _ in range(REPEATS))
        fast = chain_per_step(task, dim, step, 10_000)
        yield Row(f"{what}, dim {dim}: NumPy loop / chain, per run-step", slow / fast, bound, True)


def any_dimension() -> Iterator[Row]:
    """Alternate the two dimensions, so that a noisy machine is noisy to both."""
    task = sl.tasks.XorMixture()
    rates = dict.fromkeys((10**3, 10**9), np.inf)
    for _ in range(3):
        for dim in rates:
            rates[dim] = min(rates[dim], chain_per_step(task, dim, 1.0, 4000))
    yield Row("chain per step: dim 10⁹ / dim 10³", rates[10**9] / rates[10**3], 1.05, False)


def two_threads() -> Iterator[Row]:
    """The rate on two threads over that on one; by the clock, so only of use on an idle machine."""
    task = sl.tasks.XorMixture(width=4, precision=10.0, ridge=0.1)
    seconds = dict.fromkeys((1, 2), np.inf)
    for _ in range(3):
        for threads in seconds:
            with mock.patch.dict(os.environ, {THREADS: str(threads)}):
                seconds[threads] = min(seconds[threads], chain_per_step(task, DIM, 1.0, 10_000))
    yield Row("XOR, width 4: chain on two threads / on one", seconds[1] / seconds[2], 1.8, True)


def one_core(task: Task, batch: int = 1) -> Callable[[int], float]:
    """Seconds of processor time for one step of one run, as a function of their number."""
    with jax.enable_x64(True):
        process = process_of(
            task, method="chain", dim=DIM, moves=moves(step=0.1, batch=batch), first_run=0
        )
        start = process.begin(task.random_state(DIM, 0, runs=process.lanes))
    words = staged(seed_words(0))

    def seconds(steps: int) -> float:
        with jax.enable_x64(True):
            begun = time.process_time()
            jax.block_until_ready(observe_at(process, start, words, staged([0, steps])))
            return (time.process_time() - begun) / steps / process.lanes

    seconds(1)  # compile
    return seconds


def wide_networks() -> Iterator[Row]:
    """Processor time of the chain that triangularised by Gram and Schmidt, over that of ours."""
    for what, task, steps in (
        ("XOR, width 16", sl.tasks.XorMixture(width=16), 400),
        ("XOR, width 32", sl.tasks.XorMixture(width=32), 100),
        ("softmax of ten classes", sl.tasks.GaussianMixture(classes=10), 600),
    ):
        old, new = gram_schmidt_program(task, DIM), one_core(task)
        slow, fast = least(old, new, steps)
        yield Row(f"{what}: Gram–Schmidt chain / chain, per run-step", slow / fast, 3.0, True)
    medium, wide = (one_core(sl.tasks.XorMixture(width=width)) for width in (32, 64))
    small, large = least(medium, wide, 100)
    yield Row("chain per step: width 64 / width 32", large / small, 4.5, False)


def batches() -> Iterator[Row]:
    """A step with 64 samples beside 64 steps with one."""
    for what, task in (
        ("XOR, width 4", sl.tasks.XorMixture()),
        ("softmax of three classes", sl.tasks.GaussianMixture(classes=3)),
        ("phase retrieval", sl.tasks.PhaseRetrieval()),
        ("matrix PCA", sl.tasks.SpikedTensor()),
    ):
        single, batch = one_core(task), one_core(task, batch=64)
        pairs = [(single(6400), batch(100)) for _ in range(REPEATS)]
        ratio = min(many for _, many in pairs) / min(one for one, _ in pairs) / 64
        yield Row(f"{what}: a step of 64 samples / 64 steps of one", ratio, 0.6, False)


def least(
    first: Callable[[int], float], second: Callable[[int], float], steps: int
) -> tuple[float, float]:
    """The least of each, alternating."""
    pairs = [(first(steps), second(steps)) for _ in range(REPEATS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def random_starts() -> Iterator[Row]:
    """Ten thousand of them, against a hundred asked for one by one."""
    task = sl.tasks.XorMixture()

    def singly(_: int) -> None:
        for seed in range(100):
            task.random_state(DIM, seed)

    def together(_: int) -> None:
        task.random_state(DIM, 0, runs=10_000)

    pairs = [(per_step(singly, 1, 1), per_step(together, 1, 1)) for _ in range(REPEATS)]
    ratio = min(pair[1] for pair in pairs) / min(pair[0] for pair in pairs)
    yield Row("10⁴ random starts / 100 asked for one by one", ratio, 1.0, False)


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
    yield Row(what, chain / normals, 1.0, False)

"""Run all benchmarks and print their ratios."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.any_loss import linear_cost
from benchmarks.chain import (
    against_loops,
    any_dimension,
    batches,
    many_runs,
    random_starts,
    wide_networks,
)
from benchmarks.limits import against_solve_ivp
from benchmarks.paths import sample_paths
from benchmarks.row import Row
from benchmarks.spectra import effective_spectrum, leading_pairs
from benchmarks.start import imports_and_commands, second_process

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
        wide_networks,
        batches,
        random_starts,
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

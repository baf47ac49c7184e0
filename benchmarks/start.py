"""How long it takes to start: fresh processes, against one that only imports JAX.

Processes take turns and the fastest of each kind counts, so that a noisy machine is noisy to all.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.row import Row

REPEATS = 5
JAX = ["-c", "import jax"]
COMMAND = ["-m", "sgdlimits"]
COMPLETION = {
    "_SGDLIMITS_COMPLETE": "complete_bash",
    "COMP_WORDS": "sgdlimits run xor_",
    "COMP_CWORD": "2",
}
KINDS: dict[str, tuple[list[str], dict[str, str], float]] = {
    "import sgdlimits": (["-c", "import sgdlimits"], {}, 1.3),
    "sgdlimits --help": ([*COMMAND, "--help"], {}, 0.5),
    "sgdlimits --version": ([*COMMAND, "--version"], {}, 0.5),
    "completion of names": (COMMAND, COMPLETION, 0.5),
    "sgdlimits list": ([*COMMAND, "list"], {}, 1.3),
}

ANSWERS = {
    "solve": "limit = sl.effective_dynamics(task)\nanswer = lambda: limit.solve(start, time=1.0)",
    "simulate": "answer = lambda: sl.simulate(task, dim=500, runs=100, time=0.1, init=start)",
}
FIRST = """
import time
import sgdlimits as sl
sl.effective_dynamics, sl.simulate
task = {task}
start = task.random_state(dim=100, seed=4)
begun = time.perf_counter()
sl.effective_dynamics(task).solve(start, time=1.0)
print(time.perf_counter() - begun)
"""
PLAIN = """
import time
import diffrax, jax, numpy
jax.config.update("jax_enable_x64", True)
begun = time.perf_counter()
solved = jax.jit(
    lambda start, times: diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, u, _: -u), diffrax.Tsit5(), 0.0, 1.0, None, start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-9, atol=1e-12),
    ).ys
)
solved(numpy.ones({size}), numpy.linspace(0, 1, 201)).block_until_ready()
print(time.perf_counter() - begun)
"""
FIRST_ANSWERS = {
    "SpikedTensor": ("sl.tasks.SpikedTensor()", 2, 1.5),
    "XOR, width 4": ("sl.tasks.XorMixture()", 22, 3.0),
}
TIMED = """
import time
begun = time.perf_counter()
import sgdlimits as sl
sl.use_cache(), sl.effective_dynamics, sl.simulate
imported = time.perf_counter()
task = sl.tasks.XorMixture()
start = task.random_state(dim=100, seed=4)
{answer}
answer()
first = time.perf_counter()
answer()
warm = time.perf_counter()
print(first - begun, imported - begun + warm - first)
"""


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """How long one process takes."""
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - begun


def imports_and_commands() -> Iterator[Row]:
    """Names load when they are first used, and a command loads what it needs."""
    taken: dict[str, list[float]] = {name: [] for name in ("jax", *KINDS)}
    for _ in range(REPEATS):
        taken["jax"].append(seconds(JAX, {}))
        for name, (arguments, environment, _) in KINDS.items():
            taken[name].append(seconds(arguments, environment))
    for name, (_, _, bound) in KINDS.items():
        ratio = min(taken[name]) / min(taken["jax"])
        yield Row(f"start: {name} / import jax, fresh processes", ratio, bound, False)


def first_answers() -> Iterator[Row]:
    """First solutions in processes that know no program, over those of a bare ODE solver."""
    for name, (task, size, bound) in FIRST_ANSWERS.items():
        ours, plain = [], []
        for _ in range(REPEATS):
            ours.append(told(FIRST.format(task=task), "")[0])
            plain.append(told(PLAIN.format(size=size), "")[0])
        what = f"start: first solve of {name} / of u' = -u by diffrax, nothing compiled before"
        yield Row(what, min(ours) / min(plain), bound, False)


def told(code: str, cache: str) -> list[float]:
    """The numbers that a fresh process prints."""
    output = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"SGDLIMITS_CACHE": cache},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [float(word) for word in output.split()]


def second_process() -> Iterator[Row]:
    """Import and first answer of a process that finds its programs, over import and warm answer."""
    for name, answer in ANSWERS.items():
        with tempfile.TemporaryDirectory() as cache:
            code = TIMED.format(answer=answer)
            told(code, cache)  # compiles
            first, warm = zip(*(told(code, cache) for _ in range(REPEATS)), strict=True)
        what = f"start: first {name} of XOR, second process: (import + first) / (import + warm)"
        yield Row(what, min(first) / min(warm), 1.5, False)

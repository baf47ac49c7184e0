"""Shapes and types in signatures are checked at run time in every test; workers share the cores."""

import ctypes
import gc
import os
import warnings
from pathlib import Path

# before the hook: while it imports the package, it looks for its own bytecode of all else as well
import jax
import jaxtyping
import matplotlib.figure  # noqa: F401
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401
import xarray  # noqa: F401
from jaxlib.version import __version__ as jaxlib_version

import tests.typechecking

vars(jaxtyping)["jaxtyped"] = tests.typechecking.sparing(jaxtyping.jaxtyped)
jaxtyping.install_import_hook("sgdlimits", f"{tests.typechecking.__name__}.checked")

import sgdlimits  # noqa: E402 - checked

# Two workers with a core each: threads of BLAS would only wait for one another. Set here, in the
# process that starts the workers, it is set before they import NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Traces and compiled functions stay alive until the end: to look through them for garbage as often
# as Python does by default is an eighth of the time.
gc.set_threshold(100_000, 50, 100)

# Nearly all of the time of the suite is compilation of functions that run for milliseconds: LLVM at
# -O1 and without XLA's new fusion emitters compiles in half the time, and modules that are not
# split among threads in a seventh less. Level 0 compiles faster still but the code is four times
# slower, which costs more. XLA ends the process at flags that it does not know, so only for the
# versions that have been tried, and never over the flags of the caller.
if jaxlib_version.startswith("0.10."):
    os.environ.setdefault(
        "XLA_FLAGS",
        "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=1 "
        "--xla_cpu_parallel_codegen_split_count=1",
    )

# Programs are kept for the next run of the tests, as by the command line. Nothing is compiled yet.
with warnings.catch_warnings():
    warnings.simplefilter("default")
    sgdlimits.use_cache()

# Files in which compilation takes most of the time, or which start processes: `make test-fast`
# leaves them out.
SLOW = """
agreement dynamics experiments/test_catalogue experiments/test_pool gaussian/test_lines
gaussian/test_orthants simulate/test_checkpoint simulate/test_going_on simulate/test_first_passage
simulate/test_moves simulate/test_programs simulate/test_run spectra triples test_cache
test_examples test_start test_typing
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in slow files; docstrings and guides are too, since they show first answers."""
    tests_folder = Path(__file__).parent
    slow = tuple(str(tests_folder / name) for name in SLOW.split())
    for item in items:
        if not item.path.is_relative_to(tests_folder) or str(item.path).startswith(slow):
            item.add_marker("slow")


# Each compiled program holds some fifteen memory maps, of which Linux allows a process 65 530:
# beyond that JAX crashes. A worker that comes near forgets its programs.
MOST_PROGRAMS = 800
LIBC = ctypes.CDLL(None)
COMPILED = "/jax/core/compile/backend_compile_duration"
held = 0


def _count(event: str, duration_secs: float, **_: str | int) -> None:
    global held
    if event == COMPILED:
        held += 1


jax.monitoring.register_event_duration_secs_listener(_count)


def pytest_runtest_teardown() -> None:
    """Keep a worker alive."""
    global held
    if held > MOST_PROGRAMS:
        held = 0
        jax.clear_caches()
        gc.collect()
        if hasattr(LIBC, "malloc_trim"):  # what is free goes back to the system
            LIBC.malloc_trim(0)

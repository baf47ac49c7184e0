"""What a static checker and an editor see of the public library, in a script as users write it."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import sgdlimits as sl

ROOT = Path(__file__).parents[1]
SCRIPT = """
from typing import assert_type

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.dynamics import FixedPoint, LinearSDE, RescaledSDE

task = sl.tasks.SpikedTensor(order=3, snr=2.0)
limit = sl.effective_dynamics(task, 0.5)
start = task.random_state(dim=100, seed=0)
rest = {"m": 0.0, "r2": 1.0}
assert_type(limit, sl.EffectiveDynamics)
assert_type(limit.drift(rest), dict[str, np.ndarray])
assert_type(limit.jacobian(rest), np.ndarray)
assert_type(limit.solve(start, time=3), xr.Dataset)
assert_type(limit.sample_paths(start, 500, runs=8), xr.Dataset)
assert_type(limit.rescaled(rest), LinearSDE)
assert_type(limit.rescaled(rest, only=["m"]), RescaledSDE)
assert_type(limit.fixed_points()[0], FixedPoint)
assert_type(limit.bifurcations("snr", 1.0, 2.0), xr.Dataset)
assert_type(sl.simulate(task, dim=100, runs=3, init=start), xr.Dataset)
"""
WRONG = """
import sgdlimits as sl

limit = sl.effective_dynamics("xor")
other = sl.effective_dynamics(sl.tasks.XorMixture(), step="one")
path = other.solve({}, tme=3.0)
sl.tasks.XorMixture(4)
"""


def check(text: str, folder: Path) -> list[str]:
    """The complaints of mypy, with the options of the project, so that its cache serves."""
    script = folder / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(script)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode in (0, 1), found.stdout + found.stderr
    return [line for line in found.stdout.splitlines() if ": error:" in line]


def test_a_script_of_a_user_has_types(tmp_path: Path) -> None:
    assert check(SCRIPT, tmp_path) == []


def test_mistakes_of_a_user_are_found(tmp_path: Path) -> None:
    lines = [int(line.split(":")[1]) for line in check(WRONG, tmp_path)]
    assert lines == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "function",
    [sl.simulate, sl.effective_dynamics, sl.EffectiveDynamics.solve, sl.tasks.XorMixture],
)
def test_help_shows_the_types(function: object) -> None:
    assert callable(function)
    parameters = list(inspect.signature(function).parameters.values())
    named = [p for p in parameters if p.name != "self"]
    assert named
    assert not any(p.annotation in ("Any", inspect.Parameter.empty) for p in named)
    assert not any(str(p.annotation) == "typing.Any" for p in named)


def test_help_on_a_task_is_about_the_task() -> None:
    import pydoc

    text = pydoc.render_doc(sl.tasks.XorMixture, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert "precision: float = 10.0" in text
    assert "precision: λ" in text
    assert "__dataclass_fields__" not in text
    assert "Methods inherited from equinox" not in text

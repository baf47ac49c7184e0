"""What is not imported: names load when they are first used, and commands load what they need."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import sgdlimits as sl
from sgdlimits import experiments
from tests.imports import SOURCE

HEAVY = {"jax", "diffrax", "equinox", "matplotlib", "numpy", "scipy", "xarray", "zarr", "PIL"}


def loaded(code: str, **environment: str) -> set[str]:
    """All modules after these lines, in a process of their own."""
    told = f"{code}\nimport json, sys; print('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", told],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def command(*words: str) -> str:
    return (
        "from sgdlimits.cli import app\n"
        f"try: app({list(words)})\n"
        "except SystemExit as end: assert not end.code, end.code\n"
    )


def test_the_package_loads_nothing() -> None:
    found = loaded("import sgdlimits as sl; dir(sl); sl.__version__; sl.InputError")
    assert not found & HEAVY
    ours = {name for name in found if name.startswith("sgdlimits.")}
    assert ours == {"sgdlimits._version", "sgdlimits._errors"}


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("plot", {"diffrax", "equinox"}),
        ("theory", {"diffrax", "matplotlib"}),
        ("tasks", {"diffrax", "matplotlib"}),
        ("simulate", {"diffrax", "matplotlib"}),
        ("effective_dynamics", {"matplotlib"}),
        ("experiments", HEAVY),
    ],
)
def test_a_name_loads_its_own_room(name: str, absent: set[str]) -> None:
    assert not loaded(f"import sgdlimits as sl; sl.{name}") & absent


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["run", "--help"], ["list"], ["list", "--paper", "L23"]]
)
def test_commands_for_the_eye_load_nothing_that_computes(words: list[str]) -> None:
    assert not loaded(command(*words)) & HEAVY


def test_completion_loads_nothing_that_computes(tmp_path: Path) -> None:
    asked = {
        "_SGDLIMITS_COMPLETE": "complete_bash",
        "COMP_WORDS": "sgdlimits run critical_",
        "COMP_CWORD": "2",
    }
    told = tmp_path / "modules"
    code = (
        "import atexit, json, pathlib, sys\n"
        f"file = pathlib.Path({str(told)!r})\n"
        "atexit.register(lambda: file.write_text(json.dumps(sorted(sys.modules))))\n"
        "from sgdlimits.cli import app; app(prog_name='sgdlimits')"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["critical_step"]
    assert not set(json.loads(told.read_text())) & HEAVY


@pytest.mark.parametrize("module", ["sgdlimits", "sgdlimits.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"sgdlimits {sl.__version__}\n"


@pytest.mark.parametrize("package", [sl, experiments], ids=lambda package: package.__name__)
def test_the_stub_lists_what_is_there(package: object) -> None:
    name = str(vars(package)["__name__"])
    stub = SOURCE.parent.joinpath(*name.split("."), "__init__.pyi").read_text()
    listed: dict[str, list[str]] = {}
    exec(stub[stub.index("__all__") :], listed)
    assert dir(package) == sorted(listed["__all__"])
    assert all(getattr(package, each) is not None for each in dir(package))


def test_the_function_is_never_hidden_by_the_room_of_its_name() -> None:
    code = "import sgdlimits.simulate.run, sgdlimits as sl; assert callable(sl.simulate)"
    assert "sgdlimits.simulate.run" in loaded(code)


def test_public_objects_are_pickled_by_name() -> None:
    for thing in (sl.InputError, sl.EffectiveDynamics, sl.simulate, sl.tasks.XorMixture):
        assert pickle.loads(pickle.dumps(thing)) is thing

"""Versions of Python, pins, metadata and automation say the same thing everywhere."""

import os
import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

import sgdlimits

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
AUTHORS = "The sgdlimits authors"


def versions() -> list[str]:
    """The versions of Python that the classifiers promise, oldest first."""
    text = "\n".join(PROJECT["project"]["classifiers"])
    promised = re.findall(r"Programming Language :: Python :: (\d+\.\d+)", text)
    return sorted(promised, key=lambda version: int(version.split(".")[1]))


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def lint_commands() -> list[str]:
    recipe = re.search(r"(?m)^lint:.*\n((?:\t.*\n)+)", MAKEFILE)
    assert recipe
    return [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]


def test_versions_of_python_agree() -> None:
    assert versions() == ["3.11", "3.12", "3.13"]
    assert PROJECT["project"]["requires-python"] == f">={versions()[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == versions()[0]
    made = re.search(r"(?m)^PYTHONS := (.*)$", MAKEFILE)
    assert made
    assert made[1].split() == versions()[::-1]
    job = load(".github/workflows/test.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == versions()
    assert job["steps"][-1]["run"] == "make test PYTHON=python${{ matrix.python }}"
    readme = (ROOT / "README.md").read_text()
    assert f"Python {', '.join(versions()[:-1])} or {versions()[-1]}" in readme


def test_hooks_are_what_lint_runs() -> None:
    (repository,) = load(".pre-commit-config.yaml")["repos"]
    hooks = repository["hooks"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in hooks] == lint_commands()
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in hooks)


def test_citation_names_this_version() -> None:
    citation = load("CITATION.cff")
    assert citation["version"] == sgdlimits.__version__
    assert citation["license"] == PROJECT["project"]["license"]
    assert citation["authors"] == PROJECT["project"]["authors"] == [{"name": AUTHORS}]


def test_constraints_pin_every_dependency_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines)  # fails for addresses, hashes and markers
    assert all(re.fullmatch(r"[\w.]+", version) for version in pins.values())
    project = PROJECT["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    wanted += PROJECT["build-system"]["requires"]
    names = {re.split(r"[><=\[ ]", requirement)[0] for requirement in wanted}
    assert {normal(name) for name in names} <= {normal(name) for name in pins}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_wheel(tmp_path: Path) -> None:
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (wheel.read(n).decode() for n in names if n.endswith("/METADATA"))
    source = ROOT / "src"
    files = [p for p in (source / "sgdlimits").rglob("*") if p.is_file() and p.suffix != ".pyc"]
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == {p.relative_to(source).as_posix() for p in files}
    assert {"sgdlimits/py.typed", "sgdlimits/report/style.css"} <= names
    assert f"Author: {AUTHORS}" in metadata
    assert "Classifier: Typing :: Typed" in metadata


# --- nothing in the repository knows the machine it was written on --------------------------------

FOREIGN = re.compile(
    r"(?<![\w.])/(?:home|root|work|tmp|opt|mnt|Users)/"
    r"|\bpy[p]i\.|python[h]osted|--(?:extra-)?index-url|--find-links|@ *(?:file|https?):"
)
KEPT = {".ci", ".github"}
SKIPPED = {"results", "figures", "pictures", "dist", "__pycache__"}


def texts() -> Iterator[Path]:
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [n for n in inner if n in KEPT or not (n.startswith(".") or n in SKIPPED)]
        yield from (Path(folder, name) for name in names if name != Path(__file__).name)


def test_no_addresses_of_registries_and_no_paths_of_machines() -> None:
    paths = list(texts())
    assert {"Makefile", "constraints.txt", "test.yml", "xor.py"} <= {path.name for path in paths}
    assert [p for p in paths if FOREIGN.search(p.read_text(errors="ignore"))] == []


@pytest.mark.parametrize(
    "text",
    ["cd /" + "work/main", '"/' + 'tmp/x"', "https://" + "pypi" + ".org", "jax @ file:///wheels"],
)
def test_foreign_text_is_seen(text: str) -> None:
    assert FOREIGN.search(text)


# --- which interpreter the Makefile takes ---------------------------------------------------------


class Machine:
    """A folder with the Makefile, and interpreters that only tell their version."""

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / "interpreters"
        self.path.mkdir()
        for name in ("Makefile", "pyproject.toml", "constraints.txt"):
            (folder / name).write_text((ROOT / name).read_text())
        for name in ("python3", *(f"python{version}" for version in versions())):
            self.install(name, None)

    def install(self, name: str, version: str | None) -> None:
        """Make ``name`` a Python of that version, or a shim that runs nothing."""
        script = self.path / name
        script.write_text("#!/bin/sh\nexit 127\n")
        if version:
            script.write_text(
                '#!/bin/sh\nif [ "$1 $2" = "-m venv" ]; then\n'
                '  mkdir -p "$3/bin"; printf "#!/bin/sh\\n" > "$3/bin/python"\n'
                f'  chmod +x "$3/bin/python"; echo {name} {version} >> log\n'
                f"else echo {version}; fi\n"
            )
        script.chmod(0o755)

    def make(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = {"PYTHON", "MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"}
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment["PATH"] = f"{self.path}:{environment['PATH']}"
        command = ["make", "--no-print-directory", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )

    def venv(self, *arguments: str) -> str:
        """Make the environment, and say who made it."""
        done = self.make("venv", *arguments)
        assert done.returncode == 0, done.stderr
        return (self.folder / "log").read_text().splitlines()[-1]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_python3_is_taken_if_it_is_supported(machine: Machine) -> None:
    machine.install("python3", "3.12.4")
    machine.install("python3.13", "3.13.1")
    assert machine.venv() == "python3 3.12.4"


@pytest.mark.parametrize("version", ["3.10.13", "3.14.0", "3.1.3", None])
def test_else_the_newest_that_runs(machine: Machine, version: str | None) -> None:
    machine.install("python3", version)
    machine.install("python3.12", "3.12.4")
    machine.install("python3.11", "3.11.9")
    assert machine.venv() == "python3.12 3.12.4"  # python3.13 is a shim that fails


def test_what_is_asked_for_overrides(machine: Machine) -> None:
    machine.install("python3", "3.13.1")
    machine.install("python3.11", "3.11.9")
    assert machine.venv("PYTHON=python3.11") == "python3.11 3.11.9"


@pytest.mark.parametrize("arguments", [[], ["PYTHON=python3.13"], ["PYTHON=python3.10"]])
def test_no_python_is_an_error_that_says_what_to_do(machine: Machine, arguments: list[str]) -> None:
    machine.install("python3.10", "3.10.13")
    done = machine.make("lint", *arguments)
    assert done.returncode != 0
    assert "3.13 3.12 3.11" in done.stderr
    assert "make test PYTHON=" in done.stderr
    assert not (machine.folder / ".venv").exists()
    assert all(argument in done.stderr for argument in arguments)


def test_another_version_remakes_the_environment(machine: Machine) -> None:
    machine.install("python3", "3.12.4")
    machine.install("python3.13", "3.13.1")
    assert machine.venv() == "python3 3.12.4"
    left_over = machine.folder / ".venv" / "left-over"
    left_over.touch()
    machine.venv()
    assert left_over.exists()  # nothing to do
    assert machine.venv("PYTHON=python3.13") == "python3.13 3.13.1"
    assert not left_over.exists()
    stamps = [path.name for path in (machine.folder / ".venv").glob(".ready*")]
    assert stamps == [".ready-3.13.1"]


def test_changed_pins_update_the_environment_in_place(machine: Machine) -> None:
    machine.install("python3", "3.12.4")
    machine.venv()
    stamp = machine.folder / ".venv" / ".ready-3.12.4"
    os.utime(stamp, (0, 0))  # older than constraints.txt
    (machine.folder / ".venv" / "left-over").touch()
    machine.venv()
    assert stamp.stat().st_mtime > 0
    assert (machine.folder / ".venv" / "left-over").exists()

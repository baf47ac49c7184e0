"""Parameters of experiments: types, bounds, and reading them from text."""

import math
from typing import Any

import pytest

from sgdlimits.experiments.settings import Settings, setting


class Parameters(Settings):
    """One of every type."""

    dim: int = setting(100, "dimension", least=2)
    snr: float = setting(1.5, "signal", above=0)
    share: float = setting(0.5, "a share", least=0, most=1)
    widths: tuple[int, ...] = setting((4, 5), "widths", least=1)
    snrs: tuple[float, ...] = setting((0.8, 1.2), "signals", above=0)
    spherical: bool = setting(True, "on the sphere")
    method: str = setting("chain", "how")


def test_defaults_are_the_papers_values() -> None:
    assert Parameters.read({}).values() == {
        "dim": 100,
        "snr": 1.5,
        "share": 0.5,
        "widths": [4, 5],
        "snrs": [0.8, 1.2],
        "spherical": True,
        "method": "chain",
    }


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("dim", "7", 7),
        ("dim", "1e4", 10_000),
        ("snr", "2", 2.0),
        ("snr", "inf", math.inf),
        ("widths", "4,6, 8e0", (4, 6, 8)),
        ("snrs", "1", (1.0,)),
        ("spherical", "False", False),
        ("method", "direct", "direct"),
    ],
)
def test_text_is_read(name: str, text: str, value: Any) -> None:
    found = getattr(Parameters.read({name: text}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dim", "2.5"),
        ("dim", "1"),
        ("dim", ""),
        ("snr", "0"),
        ("snr", "nan"),
        ("snr", "big"),
        ("share", "1.1"),
        ("share", "-0.1"),
        ("widths", "4,x"),
        ("widths", "4,0"),
        ("widths", ","),
        ("spherical", "maybe"),
    ],
)
def test_wrong_text_is_named(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{name}=.* is not allowed: {name} must be "):
        Parameters.read({name: text})


def test_wrong_values_are_named() -> None:
    wrong: list[dict[str, Any]] = [
        {"dim": True},
        {"dim": 2.5},
        {"snr": "2"},
        {"widths": 4},
        {"spherical": 1},
        {"method": 3},
    ]
    for values in wrong:
        (name,) = values
        with pytest.raises(ValueError, match=f"^{name}=.* is not allowed"):
            Parameters(**values)


def test_unknown_names_meet_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^dims is not a parameter: dim \(int\), snr \(float\)"):
        Parameters.read({"dims": "3"})


def test_text_goes_over_the_preset() -> None:
    found = Parameters.read({"dim": "7"}, {"dim": 5, "snr": 3.0})
    assert (found.dim, found.snr) == (7, 3.0)


def test_values_can_be_restored() -> None:
    found = Parameters.read({"widths": "7,8", "spherical": "false"})
    assert Parameters.restore(found.values()) == found


def test_description() -> None:
    rows = {row["name"]: row for row in Parameters.describe()}
    assert rows["share"]["allowed"] == ">= 0 and <= 1"
    assert rows["widths"]["type"] == "ints, separated by commas"
    assert rows["dim"]["meaning"] == "dimension"


class Sibling(Parameters):
    """Other defaults, with and without other bounds; a setting of its own; a method."""

    dim: int = 500
    snr: float = setting(2.0, "strong signal", least=1)
    extra: int = setting(3, "one more", least=0)

    def double(self) -> int:
        """Twice the dimension."""
        return 2 * self.dim


def test_siblings_inherit_meaning_and_bounds() -> None:
    rows = {row["name"]: row for row in Sibling.describe()}
    assert rows["dim"] == rows["dim"] | {"default": 500, "meaning": "dimension", "allowed": ">= 2"}
    assert rows["snr"]["meaning"] == "strong signal"
    assert list(rows) == [*Parameters.read({}).values(), "extra"]
    assert Sibling.read({}).double() == 1000
    assert Parameters.read({}).dim == 100
    with pytest.raises(ValueError, match="dim=1 is not allowed: dim must be int >= 2"):
        Sibling.read({"dim": "1"})
    with pytest.raises(ValueError, match=r"snr=0.5 is not allowed: snr must be float >= 1"):
        Sibling.read({"snr": "0.5"})


class Size(Settings):
    """What is mixed in."""

    runs: int = setting(10, "runs", least=1)


class Mixed(Parameters, Size):
    """Settings of two bases."""

    dim: int = 7
    runs: int = 20


def test_settings_of_two_bases() -> None:
    rows = {row["name"]: row for row in Mixed.describe()}
    assert (rows["runs"]["default"], rows["runs"]["meaning"]) == (20, "runs")
    assert (rows["dim"]["default"], rows["dim"]["meaning"]) == (7, "dimension")
    with pytest.raises(ValueError, match="runs=0 is not allowed: runs must be int >= 1"):
        Mixed.read({"runs": "0"})

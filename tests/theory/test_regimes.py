"""Regimes: sizes of neglected terms, names, words, phases."""

import pytest

import sgdlimits as sl
from sgdlimits.theory.regimes import phase


def test_sizes_follow_their_exponents() -> None:
    first, second = sl.regime(400, 16, 0.5), sl.regime(1600, 16, 0.5)
    assert second.fluctuations == pytest.approx(first.fluctuations / 2)
    assert sl.regime(400, 64, 0.5).fluctuations == pytest.approx(first.fluctuations / 2)
    assert sl.regime(400, 16, 2.0).fluctuations == pytest.approx(first.fluctuations * 2)
    assert first.corrector == 0.5 / 16
    assert first.samples == 400 * 16 / 0.5


@pytest.mark.parametrize(
    ("size", "name"),
    [
        ((25, 10, 0.1), "gradient flow"),  # the slides' classical regime
        ((1000, 8, 2.0), "high-dimensional ODE"),
        ((1000, 200, 2.0), "mean field"),
        ((10**6, 1, 50.0), "noise"),
        ((10, 1, 4.0), "none"),
    ],
)
def test_names_and_words(size: tuple[int, int, float], name: str) -> None:
    found = sl.regime(*size)
    assert found.name == name
    assert name in repr(found) or name in ("noise", "none")
    assert all(f"{term:.2g}" in repr(found) for term in found.neglected.values())
    described = found.neglected if name not in ("noise", "none") else {}
    assert all(term <= 0.1 for term in described.values())


def test_a_tolerance_that_is_not_met_takes_the_next_description() -> None:
    assert sl.regime(1000, 8, 0.1, tolerance=0.01).name == "high-dimensional ODE"


def test_phases_hang_on_the_sum_of_the_exponents() -> None:
    assert {phase(0.5 - k, k) for k in (0.0, 0.5, 2.0)} == {"learning"}
    assert {phase(-k, k) for k in (0.0, 0.5, 2.0)} == {"plateau"}
    assert {phase(-0.25 - k, k) for k in (0.0, 0.5, 2.0)} == {"no learning"}
    assert {phase(-0.5 - k, k) for k in (0.0, 0.5, 2.0)} == {"no limit"}

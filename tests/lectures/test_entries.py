"""Laws of entries: mean, variance, fourth moment."""

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures.entries import draw


@pytest.mark.parametrize("name", sl.lectures.LAWS)
def test_moments(name: str) -> None:
    x = draw(name, (400, 1000), np.random.default_rng(0))
    blocks = x.mean(axis=1), (x**2).mean(axis=1), (x**4).mean(axis=1)
    expected = 0.0, 1.0, sl.lectures.LAWS[name].kurtosis
    for moment, value in zip(blocks, expected, strict=True):
        if name == "student3" and value != 0.0:
            continue  # the spread of its squares is infinite
        error = moment.std(ddof=1) / np.sqrt(len(moment))
        assert abs(moment.mean() - value) <= 4 * error + 1e-12


def test_heavy_tails() -> None:
    """The largest of N entries grows like N^(1/degrees)."""
    rng = np.random.default_rng(1)
    tops = {
        name: [np.abs(draw(name, (10**5,), rng)).max() for _ in range(9)]
        for name in sl.lectures.LAWS
    }
    middle = {name: np.median(top) for name, top in tops.items()}
    assert middle["rademacher"] == 1
    assert 4 < middle["gaussian"] < 5.5 < middle["student6"] < 15 < middle["student3"]


def test_an_unknown_law() -> None:
    with pytest.raises(sl.InputError, match=r"entries='cauchy' is not allowed: entries must be"):
        draw("cauchy", (2,), np.random.default_rng(0))

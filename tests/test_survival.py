"""Kaplan–Meier: against SciPy, coverage of its intervals, and what is refused."""

import math

import numpy as np
import pytest
import xarray as xr
from scipy.stats import CensoredData, ecdf

import sgdlimits as sl


def passage(times: np.ndarray, censored: np.ndarray) -> xr.Dataset:
    return xr.Dataset({"time": ("run", times), "censored": ("run", censored)})


def sample(generator: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    event, end = generator.exponential(size=size), generator.exponential(1.5, size=size)
    return np.minimum(event, end), end < event


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
@pytest.mark.parametrize("size", [1, 5, 40, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_estimate_and_band_are_those_of_scipy(size: int, confidence: float) -> None:
    times, censored = sample(np.random.default_rng(size), size)
    times = times.round(1)  # with ties, of events and of censored runs
    estimate = sl.results.survival(passage(times, censored), confidence=confidence)
    other = ecdf(CensoredData.right_censored(times, censored)).sf
    band = other.confidence_interval(confidence, method="log-log")
    events = np.isin(other.quantiles, estimate.time)
    np.testing.assert_allclose(estimate.survival, other.probabilities[events], atol=1e-14)
    some = np.isfinite(band.low.probabilities[events])
    for mine, theirs in ((estimate.low, band.low), (estimate.high, band.high)):
        np.testing.assert_allclose(mine[some], theirs.probabilities[events][some], atol=1e-14)
    assert np.all(estimate.low <= estimate.survival)
    assert np.all(estimate.survival <= estimate.high)


def test_intervals_cover() -> None:
    """The median log 2, of 100 runs of which 40 are censored: in 95 of 100 experiments.

    Leaving censored runs out is wrong, and is found to be.
    """
    generator = np.random.default_rng(0)
    covered = naive = 0
    count = 400
    for _ in range(count):
        times, censored = sample(generator, 100)
        median = sl.results.survival(passage(times, censored)).median
        covered += median.low <= math.log(2) <= median.high
        kept = times[~censored]
        wrong = sl.results.survival(passage(kept, np.zeros(len(kept), bool))).median
        naive += wrong.low <= math.log(2) <= wrong.high
    assert abs(covered / count - 0.95) < 3.5 * math.sqrt(0.95 * 0.05 / count)
    assert naive / count < 0.85


def test_in_words() -> None:
    times, censored = np.arange(1.0, 11), np.arange(10) >= 8
    words = repr(sl.results.survival(passage(times, censored)))
    assert words.startswith("8 of 10 runs passed by time 10; median time 5 (1 to 8)")
    never = sl.results.survival(passage(times, np.ones(10, bool)))
    assert "not reached" in repr(never)
    assert never.median.value == math.inf
    assert len(never.time) == 0
    few = sl.results.survival(passage(times, np.arange(10) >= 5)).quantile(0.9)
    assert few.value == math.inf
    assert str(few) == "not reached (and not before 5)" or few.low == math.inf


def test_at_the_start_and_all_at_once() -> None:
    estimate = sl.results.survival(passage(np.array([0.0, 0.0, 3.0]), np.zeros(3, bool)))
    np.testing.assert_allclose(estimate.survival, [1 / 3, 0.0])
    assert estimate.median.value == 0.0
    together = sl.results.survival(passage(np.full(4, 2.0), np.zeros(4, bool)))
    assert (together.survival.tolist(), together.low.tolist()) == ([0.0], [0.0])


def test_wrong_input() -> None:
    good = passage(np.ones(2), np.zeros(2, bool))
    for given, options, part in (
        (xr.Dataset(), {}, "first_passage"),
        (good.drop_vars("censored"), {}, "first_passage"),
        (good.isel(run=0), {}, "many runs"),
        (good.isel(run=[]), {}, "at least one run"),
        (passage(np.array([1.0, -2.0]), np.zeros(2, bool)), {}, "-2 is not allowed.*negative"),
        (good, {"confidence": 1.0}, "confidence=1.0"),
    ):
        with pytest.raises(sl.InputError, match=part):
            sl.results.survival(given, **options)
    with pytest.raises(sl.InputError, match="part=0"):
        sl.results.survival(good).quantile(0)

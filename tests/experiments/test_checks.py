"""Scorecards: a true statement passes at its stated rate, a false one fails."""

import json
from functools import partial

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from sgdlimits.experiments import checks, store


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def test_means() -> None:
    values = 2 + normal(400)
    assert checks.mean("x", values, 2.0).status == "passed"
    assert checks.mean("x", values, 2.5).status == "failed"
    assert checks.mean("x", values, 2.5, bias=0.4).status == "passed"
    assert checks.mean("x", values, 2.0).error == pytest.approx(values.std(ddof=1) / 20)


def test_a_printed_value_must_be_contradicted() -> None:
    values = 2 + normal(400)
    assert checks.mean("x", values, 2.0, printed=3.0).status == "erratum"
    assert checks.mean("x", values, 2.0, printed=2.01).status == "failed"  # cannot tell them apart
    assert checks.mean("x", values, 3.0, printed=2.0).status == "failed"


def test_the_level_is_the_stated_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """At level 0.1 one true statement in ten fails, also with few samples."""
    monkeypatch.setattr(checks, "LEVEL", 0.1)
    for size in (5, 50):
        failed = [
            checks.mean("x", normal(size, seed=i), 0.0).status == "failed" for i in range(2000)
        ]
        assert stats.binomtest(sum(failed), 2000, 0.1).pvalue > 1e-3


def test_a_single_sample_fails_at_the_stated_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the spread is known from few others; a bias is allowed on top."""
    monkeypatch.setattr(checks, "LEVEL", 0.1)
    failed = []
    for i in range(2000):
        sample, *others = normal(6, seed=i)
        check = checks.single("x", sample - np.mean(others), 0.0, np.std(others, ddof=1), 5)
        failed.append(check.status == "failed")
    assert stats.binomtest(sum(failed), 2000, 0.1).pvalue > 1e-3
    assert checks.single("x", 3.0, 0.0, 0.1, 5).status == "failed"
    assert checks.single("x", 3.0, 0.0, 0.1, 5, bias=3.0).status == "passed"


def test_statements() -> None:
    assert checks.holds("x", np.array([1.0]).max() > 0, note="said").note == "said"
    assert checks.holds("x", None).status == "failed"


def test_variances() -> None:
    values = 3 * normal(1000)
    assert checks.variance("x", values, 9.0).status == "passed"
    assert checks.variance("x", values, 6.0).status == "failed"
    assert checks.variance("x", values, 9.0).measured == pytest.approx(values.var(ddof=1))


def test_variances_fail_at_the_stated_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LEVEL", 0.02)
    results = [checks.variance("x", normal(30, seed=i), 1.0).status for i in range(2000)]
    assert 0.005 < results.count("failed") / 2000 < 0.04


def test_proportions() -> None:
    assert checks.proportion("x", 47, 500, 3 / 32).status == "passed"
    assert checks.proportion("x", 47, 500, 0.2).status == "failed"
    assert checks.proportion("x", 0, 20, 0.05).status == "passed"
    assert checks.proportion("x", 0, 1000, 0.05).status == "failed"
    check = checks.proportion("x", 47, 500, 3 / 32)
    wide = stats.binomtest(47, 500).proportion_ci(1 - checks.LEVEL, method="exact")
    assert check.measured - check.tolerance == pytest.approx(wide.low)


def test_distributions() -> None:
    assert checks.distribution("x", normal(500), stats.norm()).status == "passed"
    assert checks.distribution("x", normal(500), stats.norm(scale=1.5)).status == "failed"
    assert checks.distribution("x", normal(300), normal(500, seed=1)).status == "passed"
    assert checks.distribution("x", normal(300), 0.5 + normal(500, seed=1)).status == "failed"


def test_nan_fails() -> None:
    assert checks.exact("x", np.nan, 1.0, 1.0).status == "failed"


def paths(shift: float) -> tuple[xr.Dataset, xr.Dataset]:
    times = np.linspace(0, 1, 11)
    target = np.exp(-times)
    runs = target + 0.1 * times * (shift + normal(100, 11))
    coords = {"time": times}
    return (
        xr.Dataset({"m": (("run", "time"), runs)}, coords, attrs={"dim": 100}),
        xr.Dataset({"m": ("time", target)}, coords),
    )


def test_paths() -> None:
    assert checks.path("m", *paths(0.0), "m").status == "passed"
    assert checks.path("m", *paths(1.0), "m").status == "failed"
    assert checks.path("m", *paths(1.0), "m", bias=0.1).status == "passed"
    runs, limit = paths(0.0)
    sizes = xr.Dataset({"m": ("time", limit.time.values)}, {"time": limit.time})
    assert "predicted fluctuations" in checks.path("m", runs, limit, "m", fluctuations=sizes).note


def test_samples_that_are_not_finite_fail_and_are_counted() -> None:
    values = 2 + normal(400)
    values[:3] = np.nan
    values[3] = np.inf
    for check in (
        checks.mean("x", values, 2.0, note="why"),
        checks.variance("x", values, 1.0, note="why"),
        checks.distribution("x", values, stats.norm(2.0), note="why"),
        checks.distribution("x", normal(300) + 2, values, note="why"),
    ):
        assert check.status == "failed"
        assert check.note.endswith("4 of 400 samples are not finite; why")
        json.dumps(store.plain(check.as_dict()), allow_nan=False)
    runs, limit = paths(0.0)
    runs.m[7, -1] = np.nan
    assert checks.path("m", runs, limit, "m").status == "failed"
    assert checks.path("m", runs, limit, "m").note == "1 of 100 runs are not finite"


def test_samples_are_left_out_only_by_name() -> None:
    values = np.append(2 + normal(400), np.nan)
    for check in (
        checks.mean("x", values, 2.0, leave_out="runs that stay"),
        checks.variance("x", values, 1.0, leave_out="runs that stay"),
        checks.distribution("x", values, stats.norm(2.0), leave_out="runs that stay"),
    ):
        assert check.status == "passed"
        assert "1 of 401 samples left out: runs that stay" in check.note
    assert checks.mean("x", values, 2.5, leave_out="runs that stay").status == "failed"
    runs, limit = paths(0.0)
    runs.m[7, -1] = np.nan
    assert checks.path("m", runs, limit, "m", leave_out="runs that stay").status == "passed"
    all_finite = checks.mean("x", values[:-1], 2.0, leave_out="runs that stay")
    assert all_finite.note == ""


def test_outliers_missing_or_too_many() -> None:
    draws = np.array([9.0, 4.0, 1.05, 0.9]) + 0.02 * normal(8, 4)
    count = partial(checks.wrong_outliers, draws, edge=1.0, margin=0.2)
    assert count([9.0, 4.0]) == 0
    assert count([9.0, 4.0, 1.1, np.nan]) == 0  # within the margin: there or not
    assert count([9.0]) == 1
    assert count([]) == 2
    assert count([9.0, 4.0, 1.5]) == 1
    assert checks.wrong_outliers(-draws[:, ::-1], [-0.9], edge=-1.0, margin=0.2) == 0
    unsure = np.array([[1.1], [3.0], [1.0]])  # the mean is not known to be above
    assert checks.wrong_outliers(unsure, [], edge=1.0, margin=0.2) == 0


def test_numbers_for_machines() -> None:
    told = checks.exact("x", 1.0, 1.0, 0.1, note="why").as_dict()
    assert told["status"] == "passed"
    assert told["note"] == "why"


def test_each_value_of_a_parameter_has_its_check() -> None:
    """Arrays over the parameter are taken at its value, functions are called with it."""
    means = xr.DataArray([1.0, 2.0], {"snr": [1.0, 2.0]}, "snr")
    ends = means + xr.DataArray(normal(2, 400), dims=("snr", "run"))
    for expected in (means, lambda snr: snr):
        told = checks.each("snr", checks.mean, "m, λ = {:g}", ends, expected, note="said")
        assert [check.name for check in told] == ["m, λ = 1", "m, λ = 2"]
        assert [check.expected for check in told] == [1.0, 2.0]
        assert [check.status for check in told] == ["passed", "passed"]
        assert {check.note for check in told} == {"said"}
    wrong = checks.each("snr", checks.mean, "m, λ = {:g}", ends, 1.0, printed=lambda snr: 5 * snr)
    assert [check.status for check in wrong] == ["erratum", "failed"]


def test_paths_of_one_statistic_are_arrays_too() -> None:
    times = np.linspace(0, 1, 11)
    limit = xr.Dataset({"m": ("time", times)}, {"time": times})
    runs = limit + xr.DataArray(normal(50, 11), dims=("run", "time"))
    assert checks.path("m", runs.m, limit.m) == checks.path("m", runs, limit, "m")
    assert checks.path("m", runs.m, limit.m + 1).status == "failed"

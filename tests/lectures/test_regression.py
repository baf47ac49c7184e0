"""Least squares on drawn data against its limits and its exact means."""

import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

import sgdlimits as sl
from sgdlimits.lectures import regression
from sgdlimits.theory import double_descent, marchenko_pastur

SIZE: dict[str, Any] = {"signal": 2.0, "noise": 0.3}


def away(samples: xr.DataArray, expected: float) -> float:
    """Standard errors from the mean to what is expected."""
    error = float(samples.std(ddof=1)) / math.sqrt(samples.size)
    return abs(float(samples.mean()) - expected) / error


@pytest.mark.parametrize(("dim", "samples"), [(7, 20), (20, 7), (8, 8)])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_errors_are_those_of_the_estimator(dim: int, samples: int, ridge: float) -> None:
    """One data set, with NumPy's pseudo-inverse and a mean over noises drawn here."""
    drawn = regression.least_squares(dim, samples, ridge=ridge, seed=3, **SIZE)
    rng = np.random.default_rng([3, 0])
    X, direction = rng.standard_normal((samples, dim)), rng.standard_normal(dim)
    beta = math.sqrt(2.0) * direction / np.linalg.norm(direction)
    noise = math.sqrt(0.3) * rng.standard_normal(samples)
    inverse = np.linalg.pinv(X.T @ X / samples + ridge * np.eye(dim), rcond=1e-12)
    estimator = inverse @ X.T / samples
    error = np.sum((estimator @ (X @ beta + noise) - beta) ** 2)
    assert float(drawn.error[0]) == pytest.approx(error, rel=1e-8)
    bias = np.sum((estimator @ X @ beta - beta) ** 2)
    assert float(drawn.bias[0]) == pytest.approx(bias, rel=1e-8, abs=1e-18)
    variance = 0.3 * np.sum(estimator**2)
    assert float(drawn.variance[0]) == pytest.approx(variance, rel=1e-8)
    if ridge:
        assert float(drawn.form[0]) == pytest.approx(beta @ inverse @ beta, rel=1e-8)


@pytest.mark.parametrize(("dim", "samples"), [(20, 50), (50, 20), (20, 30)])
def test_exact_means_at_finite_size(dim: int, samples: int) -> None:
    """Lemma 7.3 with the trace of an inverse Wishart; the limit is not the mean at this size."""
    drawn = regression.least_squares(dim, samples, runs=2000, **SIZE)
    assert away(drawn.variance, double_descent.mean_variance(samples, dim, 0.3)) < 4
    assert away(drawn.variance, double_descent.variance(samples / dim, 0.3)) > 5
    if dim > samples:
        assert away(drawn.bias, double_descent.mean_bias(samples, dim, 2.0)) < 4
    else:
        assert np.all(drawn.bias < 1e-20)


@pytest.mark.parametrize("load", [0.5, 2.0])
@pytest.mark.parametrize("ridge", [0.0, 0.2])
def test_large_data_are_at_the_limit(load: float, ridge: float) -> None:
    """Theorem 7.4 within four standard errors; upside down, or with the printed sign, it is not."""
    n = 2000 if load < 1 else 500  # parameters: at most 1000
    dim, runs = round(load * n), 12
    drawn = regression.least_squares(dim, n, ridge=ridge, runs=runs, seed=1, **SIZE)
    assert away(drawn.error, double_descent.risk(n / dim, 2.0, 0.3, ridge)) < 4
    assert away(drawn.error, double_descent.risk(dim / n, 2.0, 0.3, ridge)) > 8
    if ridge == 0 and load < 1:
        assert away(drawn.variance, 0.3 * load / (load - 1)) > 8


def test_a_direction_sees_the_law_of_all_eigenvalues() -> None:
    """Theorem 7.6, also for entries of other laws; with 1/γ for γ, as in its proof, it fails."""
    for entries in ("gaussian", "student6"):
        drawn = regression.least_squares(
            400, 800, ridge=0.2, entries=entries, runs=12, seed=2, **SIZE
        )
        assert away(drawn.form, double_descent.resolvent_form(2.0, 2.0, 0.2)) < 4
        upside_down = 2.0 * float(marchenko_pastur.stieltjes(-0.2, 0.5).real)
        assert away(drawn.form, upside_down) > 8


def test_runs_are_the_same_for_any_number_of_them() -> None:
    two = regression.least_squares(5, 9, runs=2)
    assert two.identical(regression.least_squares(5, 9, runs=4).isel(run=slice(2)))


def test_singular_data() -> None:
    """Of random signs some square matrices have no inverse: least norm, and finite."""
    drawn = regression.least_squares(2, 2, entries="rademacher", runs=40)
    assert np.all(np.isfinite(drawn.risk))
    assert {round(float(bias), 6) > 0 for bias in drawn.bias} == {True, False}


def test_random_features_peak_at_one_per_sample() -> None:
    risk = {
        p: float(regression.random_features(p, 100, runs=9).risk.median())
        for p in (50, 100, 200, 2000)
    }
    assert risk[100] > 10 * max(risk[50], risk[200])
    assert risk[2000] < risk[200]
    ridged = regression.random_features(100, 100, ridge=0.01, runs=9).risk.median()
    assert float(ridged) < risk[50]


def test_random_features_are_those_of_numpy() -> None:
    drawn = regression.random_features(30, 12, dim=4, tests=50, seed=7)
    rng = np.random.default_rng([7, 0])
    X, direction = rng.standard_normal((62, 4)), rng.standard_normal(4)
    truth = X @ direction / np.linalg.norm(direction)
    y = truth[:12] + math.sqrt(0.1) * rng.standard_normal(12)
    W = rng.standard_normal((30, 4))
    F = np.maximum(X @ (W / np.linalg.norm(W, axis=1, keepdims=True)).T, 0)
    solution, *_ = np.linalg.lstsq(F[:12], y)
    risk = np.mean((F[12:] @ solution - truth[12:]) ** 2)
    assert float(drawn.risk[0]) == pytest.approx(risk, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 0}, "dim=0 is not allowed"),
        ({"samples": 0}, "samples=0 is not allowed"),
        ({"signal": -1.0}, r"signal=-1.0 is not allowed"),
        ({"noise": math.nan}, "noise=nan is not allowed"),
        ({"ridge": -0.1}, r"ridge=-0.1 is not allowed"),
        ({"entries": "cauchy"}, "entries='cauchy' is not allowed"),
        ({"runs": 0}, "runs=0 is not allowed"),
    ],
)
def test_wrong_input(changes: dict[str, object], message: str) -> None:
    with pytest.raises(sl.InputError, match=message):
        regression.least_squares(**({"dim": 3, "samples": 4} | changes))  # type: ignore[arg-type]
    if not {"entries"} & changes.keys():
        with pytest.raises(sl.InputError, match=message):
            regression.random_features(
                **({"features": 3, "samples": 4} | changes)  # type: ignore[arg-type]
            )

"""Least squares on drawn data: on the coordinates themselves, and on random features of them."""

import numpy as np
import xarray as xr
from scipy import linalg

from sgdlimits import _checks, results
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.lectures._sizes import affordable
from sgdlimits.lectures.entries import draw

_SINGULAR = 1e-12  # of the largest pivot: a matrix with a smaller one has no inverse


def least_squares(
    dim: WholeNumber,
    samples: WholeNumber,
    *,
    signal: Number = 1.0,
    noise: Number = 0.1,
    ridge: Number = 0.0,
    entries: Word = "gaussian",
    runs: WholeNumber = 1,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Errors of β̂ = argmin ‖Xβ − y‖²/n + λ‖β‖², the one of least norm for λ = 0.

    Data y = ⟨x, β⟩ + ε with β in a random direction. Costs are those of the smaller of the two
    matrices XᵀX and XXᵀ.

    Args:
        dim: d, the number of parameters.
        samples: n.
        signal: ‖β‖².
        noise: variance of ε, which is Gaussian.
        ridge: λ.
        entries: law of the entries of x, one of :data:`sgdlimits.lectures.LAWS`.
        runs: independent data sets.
        seed: run i is the same for any number of runs.

    Returns:
        Over run: ``error`` = ‖β̂ − β‖²; its mean over the noise, ``risk`` = ``bias`` + ``variance``;
        ``form`` = ⟨β, (XᵀX/n + λ)⁻¹β⟩, NaN without ridge.

    >>> result = least_squares(10, 1000, noise=0.0)
    >>> bool(result.error < 1e-20), bool(result.bias < 1e-20), float(result.variance[0])
    (True, True, 0.0)
    """
    d, n = _checks.integer("dim", dim, least=1), _checks.integer("samples", samples, least=1)
    length = np.sqrt(_checks.nonnegative("signal", signal))
    sigma2, scale = _checks.nonnegative("noise", noise), _checks.nonnegative("ridge", ridge)
    count = _checks.integer("runs", runs, least=1)
    affordable(samples=n, dim=d)
    affordable(runs=count)
    rows = np.empty((count, 4))
    for run in range(count):
        rng = np.random.default_rng([_checks.integer("seed", seed, least=0), run])
        X = draw(entries, (n, d), rng)
        direction = rng.standard_normal(d)
        beta = length * direction / np.linalg.norm(direction)
        noises = np.sqrt(sigma2) * rng.standard_normal(n)
        rows[run] = _errors(X, beta, noises, sigma2, scale)
    error, bias, variance, form = rows.T
    statistics = {"error": error, "risk": bias + variance, "bias": bias, "variance": variance}
    statistics["form"] = form
    attrs = {"kind": "least squares", "dim": d, "samples": n, "signal": signal, "noise": noise}
    attrs |= {"ridge": ridge, "entries": entries, "seed": seed}
    dims = dict.fromkeys(statistics, ("run",))
    return results.build(statistics, dims, {"run": np.arange(count)}, attrs)


def random_features(
    features: WholeNumber,
    samples: WholeNumber,
    *,
    dim: WholeNumber = 20,
    signal: Number = 1.0,
    noise: Number = 0.1,
    ridge: Number = 0.0,
    runs: WholeNumber = 1,
    tests: WholeNumber = 1000,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Errors of least squares on p random features relu(⟨w_j, x⟩) of Gaussian data.

    Labels are those of :func:`least_squares`; w_j is uniform on the unit sphere and drawn anew in
    each run.

    Args:
        features: p.
        samples: n.
        dim: d, of the data.
        signal: ‖β‖².
        noise: variance of ε.
        ridge: λ, on the coefficients of features.
        runs: independent data sets and features.
        tests: new samples on which the risk is measured.
        seed: run i is the same for any number of runs, and its data for any number of features.

    Returns:
        Over run: ``risk``, the mean of (f̂(x) − ⟨x, β⟩)² on new samples; ``training``, the mean of
        (f̂(x) − y)² on the old ones.

    >>> result = random_features(100, 20, runs=3)
    >>> bool((result.training < 1e-12).all()), bool((result.risk > 0).all())
    (True, True)
    """
    sizes = {"features": features, "samples": samples, "dim": dim, "tests": tests}
    p, n, d, fresh = (_checks.integer(name, size, least=1) for name, size in sizes.items())
    length = np.sqrt(_checks.nonnegative("signal", signal))
    deviation = np.sqrt(_checks.nonnegative("noise", noise))
    scale, count = _checks.nonnegative("ridge", ridge), _checks.integer("runs", runs, least=1)
    for width, other in (("dim", d), ("features", p)):
        affordable(**{"samples": n, width: other})
        affordable(**{"tests": fresh, width: other})
    affordable(features=p, dim=d)
    affordable(runs=count)
    rows = np.empty((count, 2))
    for run in range(count):
        rng = np.random.default_rng([_checks.integer("seed", seed, least=0), run])
        X = rng.standard_normal((n + fresh, d))
        direction = rng.standard_normal(d)
        truth = length * X @ direction / np.linalg.norm(direction)
        y = truth[:n] + deviation * rng.standard_normal(n)
        W = rng.standard_normal((p, d))
        F = np.maximum(X @ W.T / np.linalg.norm(W, axis=1), 0.0)
        predicted = F @ _ridge_solution(F[:n], y, scale)
        rows[run] = np.mean((predicted[n:] - truth[n:]) ** 2), np.mean((predicted[:n] - y) ** 2)
    statistics = {"risk": rows[:, 0], "training": rows[:, 1]}
    attrs = {"kind": "random features", "features": p, "samples": n, "dim": d, "signal": signal}
    attrs |= {"noise": noise, "ridge": ridge, "seed": seed}
    dims = dict.fromkeys(statistics, ("run",))
    return results.build(statistics, dims, {"run": np.arange(count)}, attrs)


def _errors(
    X: np.ndarray, beta: np.ndarray, noises: np.ndarray, sigma2: float, ridge: float
) -> tuple[float, float, float, float]:
    """‖β̂ − β‖², its bias and variance given X, and ⟨β, (XᵀX/n + λ)⁻¹β⟩."""
    n, d = X.shape
    tall = n >= d
    A = X.T @ X if tall else X @ X.T
    inverse = _inverse(A / n, ridge)

    def estimate(y: np.ndarray) -> np.ndarray:
        return np.asarray(inverse @ (X.T @ y) / n if tall else X.T @ (inverse @ y) / n)

    lost = beta - estimate(X @ beta)  # (I − (S + λ)⁻¹S) β
    bias = float(lost @ lost)
    # tr S (S + λ)⁻², over the eigenvalues that both matrices share
    trace = np.trace(inverse) - ridge * np.sum(inverse**2)
    error = estimate(noises) - lost
    form = beta @ lost / ridge if ridge > 0 else np.nan
    return float(error @ error), bias, sigma2 * float(trace) / n, float(form)


def _ridge_solution(F: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    n, p = F.shape
    if n >= p:
        return np.asarray(_inverse(F.T @ F / n, ridge) @ (F.T @ y) / n)
    return np.asarray(F.T @ (_inverse(F @ F.T / n, ridge) @ y) / n)


def _inverse(gram: np.ndarray, ridge: float) -> np.ndarray:
    """(G + λ)⁻¹ of a symmetric G ≥ 0; for λ = 0 and a singular G its pseudo-inverse."""
    A = gram + ridge * np.eye(len(gram))
    try:
        factor = linalg.cholesky(A, lower=True, check_finite=False)
    except linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, rcond=_SINGULAR, hermitian=True))
    pivots = np.diag(factor) ** 2
    if pivots.min() < _SINGULAR * pivots.max():
        return np.asarray(np.linalg.pinv(A, rcond=_SINGULAR, hermitian=True))
    half, _ = linalg.lapack.dpotri(factor, lower=1)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)

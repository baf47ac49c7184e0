"""Sample covariances of drawn data: eigenvalues, resolvents, quadratic forms."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy import linalg

from sgdlimits import _checks, results
from sgdlimits._types import Number, WholeNumber, Word
from sgdlimits.lectures._sizes import affordable
from sgdlimits.lectures.entries import draw


def spectra(
    dim: WholeNumber,
    samples: WholeNumber,
    *,
    entries: Word = "gaussian",
    runs: WholeNumber = 1,
    seed: WholeNumber = 0,
) -> xr.Dataset:
    """Eigenvalues of S = (1/n) Σ_ℓ x_ℓx_ℓᵀ and the norm of S − I, on independent data sets.

    Args:
        dim: d, of the samples.
        samples: n.
        entries: law of the entries of x, one of :data:`sgdlimits.lectures.LAWS`.
        runs: independent data sets.
        seed: run i is the same for any number of runs.

    Returns:
        ``eigenvalues`` over run and index, increasing, the zeros of n < d included; ``distance`` =
        ‖S − I‖ over run.

    >>> result = spectra(2, 50, runs=3)
    >>> result.eigenvalues.shape, bool((result.distance < 1).all())
    ((3, 2), True)
    """
    d, n = _checks.integer("dim", dim, least=1), _checks.integer("samples", samples, least=1)
    count = _checks.integer("runs", runs, least=1)
    affordable(samples=n, dim=d)
    affordable(runs=count, dim=d)
    values = np.zeros((count, d))
    for run in range(count):
        X = draw(entries, (n, d), _rng(seed, run))
        # the smaller of the two matrices with the same eigenvalues
        gram = X.T @ X if d <= n else X @ X.T
        values[run, max(d - n, 0) :] = linalg.eigvalsh(gram / n, check_finite=False)
    values = np.maximum(values, 0.0)
    statistics = {"eigenvalues": values, "distance": np.max(np.abs(values - 1), axis=1)}
    dims = {"eigenvalues": ("run", "index"), "distance": ("run",)}
    coords = {"run": np.arange(count), "index": np.arange(d)}
    attrs = {"kind": "covariance", "dim": d, "samples": n, "entries": entries, "seed": seed}
    return results.build(statistics, dims, coords, attrs)


def transforms(spectrum: xr.Dataset, z: complex | Sequence[complex] | np.ndarray) -> np.ndarray:
    """Stieltjes transforms tr (S − z)⁻¹/d of drawn spectra, over run and the points z.

    >>> transforms(spectra(2, 50, runs=3), [1j, 2j]).shape
    (3, 2)
    """
    if not isinstance(spectrum, xr.Dataset) or "eigenvalues" not in spectrum:
        raise _checks.InputError(
            f"spectrum={spectrum!r} is not allowed: spectrum must be a Dataset with eigenvalues, "
            "from spectra"
        )
    try:
        points = np.atleast_1d(np.asarray(z, dtype=complex))
    except (TypeError, ValueError, OverflowError) as error:
        raise _checks.InputError(f"z={z!r} is not allowed: z must be complex numbers") from error
    if points.ndim != 1:
        raise _checks.InputError(
            f"z has shape {points.shape}, which is not allowed: z must be one number or a list"
        )
    values = spectrum.eigenvalues.values[:, None, :]
    if not np.all(np.isfinite(points)) or np.any(points.imag == 0):
        raise _checks.InputError(
            f"z={_checks.shown(z)} is not allowed: z must be off the real axis"
        )
    return np.asarray(np.mean(1 / (values - points[:, None]), axis=-1))


def resolvent(
    dim: WholeNumber,
    samples: WholeNumber,
    shift: Number,
    *,
    entries: Word = "gaussian",
    seed: WholeNumber = 0,
) -> np.ndarray:
    """One matrix (S + shift)⁻¹, of norm at most 1/shift.

    >>> resolvent(3, 5, 1.0).shape
    (3, 3)
    """
    d, n = _checks.integer("dim", dim, least=1), _checks.integer("samples", samples, least=1)
    affordable(samples=n, dim=d)
    affordable(**{"dim²": d**2})
    X = draw(entries, (n, d), _rng(seed, 0))
    return np.asarray(linalg.inv(X.T @ X / n + _checks.positive("shift", shift) * np.eye(d)))


def quadratic_forms(
    matrix: np.ndarray,
    *,
    entries: Word = "gaussian",
    runs: WholeNumber = 1,
    seed: WholeNumber = 0,
) -> np.ndarray:
    """Gaps ⟨x, Ax⟩/d − tr A/d for independent vectors x, one for each run.

    >>> quadratic_forms(np.eye(4), entries="rademacher", runs=2)
    array([0., 0.])
    """
    A = _checks.array("matrix", matrix, None)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise _checks.InputError(
            f"matrix has shape {A.shape}, which is not allowed: matrix must have shape (d, d)"
        )
    count = _checks.integer("runs", runs, least=1)
    affordable(runs=count, dim=len(A))
    x = draw(entries, (count, len(A)), _rng(seed, 1))
    return np.asarray((np.einsum("ri,ri->r", x @ A, x) - np.trace(A)) / len(A))


def _rng(seed: WholeNumber, run: int) -> np.random.Generator:
    return np.random.default_rng([_checks.integer("seed", seed, least=0), run])

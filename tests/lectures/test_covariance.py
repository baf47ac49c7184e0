"""Drawn covariances against the Marchenko–Pastur law and the lemmas behind it."""

from typing import Any

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures import LAWS, covariance
from sgdlimits.theory import marchenko_pastur, resolvents

FINITE = [name for name, law in LAWS.items() if np.isfinite(law.kurtosis)]


def test_spectra_are_those_of_the_matrix() -> None:
    """Zeros of n < d included; run i does not depend on the number of runs."""
    two = covariance.spectra(30, 20, runs=2, seed=5)
    four = covariance.spectra(30, 20, runs=4, seed=5)
    assert np.array_equal(two.eigenvalues, four.eigenvalues[:2])
    assert np.all(two.eigenvalues[:, :10] == 0)
    assert np.all(two.eigenvalues[:, 10:] > 1e-3)
    matrix = np.linalg.inv(covariance.resolvent(30, 40, 0.5, seed=5)) - 0.5 * np.eye(30)
    one = covariance.spectra(30, 40, seed=5)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), one.eigenvalues[0], atol=1e-10)
    assert one.distance[0] == pytest.approx(np.linalg.norm(matrix - np.eye(30), 2))


@pytest.mark.parametrize("entries", LAWS)
@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_the_bulk_is_universal(entries: str, ratio: float) -> None:
    """Rigid, within log d/d, with a fourth moment; within 1/√d without."""
    dim = 400
    spectrum = covariance.spectra(dim, round(ratio * dim), entries=entries)
    gap = distance(spectrum.eigenvalues.values[0], ratio)
    assert gap < (np.log(dim) / dim if entries in FINITE else 1 / np.sqrt(dim))
    # Def. 6.5 as printed has the ratio upside down
    assert distance(spectrum.eigenvalues.values[0], 1 / ratio) > 0.2


def distance(values: np.ndarray, ratio: float) -> float:
    """Of Kolmogorov, where values have no atom but that at zero."""
    steps = np.arange(1, len(values) + 1) / len(values)
    positive = values > 0
    return float(np.max(np.abs(marchenko_pastur.cdf(values, ratio) - steps)[positive]))


def test_the_edge_needs_a_fourth_moment() -> None:
    dim, ratio = 300, 2.0
    limit = marchenko_pastur.distance_to_mean(ratio)
    for entries in LAWS:
        drawn = covariance.spectra(dim, round(ratio * dim), entries=entries, runs=9)
        middle = float(drawn.distance.median())
        if entries in FINITE:
            assert middle == pytest.approx(limit, rel=0.05)
        else:
            assert middle > 1.5 * limit


def test_transforms_converge_and_concentrate() -> None:
    """Lemma 6.16: E|m − E m|² grows like 1/η²; by the printed bound it would fall like η."""
    dim, ratio = 200, 2.0
    heights = np.array([1.0, 0.3, 0.1, 0.03])
    spectrum = covariance.spectra(dim, round(ratio * dim), runs=60)
    m = covariance.transforms(spectrum, 1 + 1j * heights)
    expected = marchenko_pastur.stieltjes(1 + 1j * heights, ratio)
    error = m.std(axis=0, ddof=1) / np.sqrt(len(m))
    assert np.all(np.abs(m.mean(axis=0) - expected) < 4 * error + 1 / dim)
    square = np.mean(np.abs(m - m.mean(axis=0)) ** 2, axis=0)
    # what the tail bound 4 exp(−d η² t²/(16 φ)) says of the second moment: its integral
    assert np.all(square <= 64 * ratio / (dim * heights**2))
    slope = np.polyfit(np.log(heights[1:]), np.log(square[1:]), 1)[0]
    assert slope == pytest.approx(-2, abs=0.3)


def test_the_tail_bound_holds_where_it_says_something() -> None:
    """Small deviations of few samples: frequencies stay below it."""
    dim, ratio, height = 400, 0.05, 0.9
    spectrum = covariance.spectra(dim, round(ratio * dim), runs=200)
    m = covariance.transforms(spectrum, 0.5 + 1j * height)[:, 0]
    gap = np.abs(m - m.mean())
    for t in (0.02, 0.1, 0.2):
        bound = resolvents.deviation_bound(t, dim, ratio, height)
        assert np.mean(gap >= t) <= bound
    assert bound < 1e-4
    assert resolvents.deviation_bound(0.0, dim, ratio, height) == 1


@pytest.mark.parametrize("entries", ["gaussian", "rademacher"])
def test_mean_squares_of_quadratic_forms_are_exact(entries: str) -> None:
    """Lemma 6.18: within standard errors, where pairs counted once, as printed, are not."""
    A = covariance.resolvent(60, 90, 0.3)
    square = covariance.quadratic_forms(A, entries=entries, runs=20_000) ** 2
    error = square.std(ddof=1) / np.sqrt(len(square))
    exact = resolvents.quadratic_form_variance(A, LAWS[entries].kurtosis)
    assert abs(square.mean() - exact) < 4 * error
    pairs = np.sum(A**2) - np.sum(np.diag(A) ** 2)
    assert abs(square.mean() - (exact - pairs / 60**2)) > 8 * error


def test_gaps_of_quadratic_forms_close_like_one_over_the_root() -> None:
    means = []
    for dim in (40, 640):
        A = covariance.resolvent(dim, 2 * dim, 0.5)
        means.append(np.abs(covariance.quadratic_forms(A, entries="student6", runs=2000)).mean())
    assert np.log(means[1] / means[0]) / np.log(16) == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 0}, "dim=0 is not allowed"),
        ({"samples": 1.5}, "samples=1.5 is not allowed"),
        ({"entries": "x"}, "entries='x' is not allowed"),
        ({"runs": 0}, "runs=0 is not allowed"),
        ({"seed": -1}, "seed=-1 is not allowed"),
    ],
)
def test_wrong_input(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"dim": 3, "samples": 4, **changes}
    with pytest.raises(sl.InputError, match=message):
        covariance.spectra(**arguments)  # type: ignore[arg-type]


def test_transforms_need_points_off_the_axis() -> None:
    with pytest.raises(sl.InputError, match="z must be off the real axis"):
        covariance.transforms(covariance.spectra(3, 4), [1.0, 1j])


def test_transforms_need_a_spectrum_and_numbers() -> None:
    spectrum: Any
    z: Any
    for spectrum in (1.0, {}, covariance.spectra(3, 4).drop_vars("eigenvalues")):
        with pytest.raises(sl.InputError, match="spectrum must be a Dataset with eigenvalues"):
            covariance.transforms(spectrum, 1j)
    for z in ("a", [["a"]], {}, [[1j]]):
        with pytest.raises(sl.InputError, match=r"^z"):
            covariance.transforms(covariance.spectra(3, 4), z)


def test_matrices_must_be_square_and_symmetric() -> None:
    with pytest.raises(sl.InputError, match="matrix must be symmetric"):
        resolvents.quadratic_form_variance([[1.0, 2.0], [0.0, 1.0]], 3.0)
    with pytest.raises(sl.InputError, match="kurtosis must be >= 1"):
        resolvents.quadratic_form_variance(np.eye(2), 0.5)
    with pytest.raises(sl.InputError, match="deviation must be >= 0"):
        resolvents.deviation_bound(-0.1, 10, 1.0, 1.0)
    with pytest.raises(sl.InputError, match="matrix"):
        covariance.quadratic_forms(np.ones((2, 3)))
    for number in (1.0, np.array(1.0), None):
        with pytest.raises(sl.InputError, match="matrix"):
            covariance.quadratic_forms(number)  # type: ignore[arg-type]

"""What the experiments on spectra share: the size of the matrices, and matrices of fresh data."""

from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Settings, setting

MATRICES = {"hessian": "Hessian", "gradient": "gradient matrix"}
"""As the library names them, and as titles do."""


class Spectra(Settings):
    """Matrices of ratio · dim samples, while SGD runs."""

    dim: int = setting(1000, "dimension d", least=50)
    ratio: float = setting(50.0, "samples in the matrices, per dimension", above=1)
    time: float = setting(60.0, "duration, in units of d samples", above=0)

    @property
    def samples(self) -> int:
        """In each matrix."""
        return round(self.ratio * self.dim)

    def track(self, task: Any, times: Any, seed: int, **options: Any) -> xr.Dataset:
        """Matrices of this size along one run; options are those of ``sgdlimits.spectra.track``."""
        return sl.spectra.track(task, self.dim, self.samples, times, seed=seed, **options)

    def track_again(
        self, task: Any, state: Any, seed: int, draws: int, **options: Any
    ) -> xr.Dataset:
        """Matrices of new data at one state, over ``draw``; the first has this seed."""

        def look(_: int, seed: int) -> xr.Dataset:
            return self.track(task, [0.0], seed, init=state, **options)

        return sl.results.over("draw", range(draws), look, count(seed))


class Tracked(Spectra):
    """When the matrices are computed while SGD runs."""

    points: int = setting(14, "times after the start at which matrices are computed", least=2)

    @property
    def times(self) -> np.ndarray:
        """The start, and more often soon after it."""
        return self.time * np.linspace(0, 1, self.points + 1) ** 2


def fresh(task: Any, state: Any, dim: int, samples: int, seed: int) -> sl.spectra.Empirical:
    """Both matrices on new data, at weights in R^dim that have the given state."""
    training = sl.spectra.Training(task, dim, 1.0, seed, task.check_state(state))
    weights = next(training.weights_at(np.zeros(1)))
    return sl.spectra.Empirical(task, training.unseen(samples), weights.W, weights.v)


def of_outliers(
    spectrum: sl.spectra.EffectiveSpectrum,
    size: int,
    number: Callable[[sl.spectra.Outlier], float] = lambda outlier: outlier.value,
) -> np.ndarray:
    """A number for each outlier, as often as its multiplicity says; NaN after the last of them.

    Args:
        spectrum: whose outliers are taken.
        size: of the array; more outliers are an error.
        number: the eigenvalue by default.
    """
    every = [number(outlier) for outlier in spectrum.outliers for _ in range(outlier.multiplicity)]
    return np.pad(np.array(every, dtype=float), (0, size - len(every)), constant_values=np.nan)


def beyond(gaps: np.ndarray) -> float:
    """The size of a mean over independent draws, less two standard errors, at least 0.

    >>> beyond(np.array([-1.0, -1.0, -1.0])), beyond(np.array([-1.0, 1.0, 0.0]))
    (1.0, 0.0)
    """
    error = gaps.std(ddof=1) / np.sqrt(len(gaps))
    return float(np.maximum(0.0, abs(gaps.mean()) - 2 * error))  # NaN stays NaN


class Outliers(NamedTuple):
    """How drawn eigenvalues compare with the outliers that are predicted above a bulk."""

    distance: float  # the largest relative one, less two standard errors
    clear: int  # how many are told from the bulk
    wrong: int  # how many are missing or too many


def compare_outliers(
    eigenvalues: np.ndarray, predicted: np.ndarray, edge: float, margin: float, near: float
) -> Outliers:
    """Compare the mean over draws, outlier by outlier.

    Those that are nearly equal repel each other by 1/√dim: their mean is compared.

    Args:
        eigenvalues: decreasing, one row for each independent draw.
        predicted: all outliers; those below the edge, and NaN, do not count.
        edge: upper edge of the bulk.
        margin: outliers nearer to the edge than this are not told from the bulk.
        near: those above this part of a larger one are taken together with it; 0 for all.

    >>> draws = np.array([[5.0, 4.8, 2.0, 1.0], [5.2, 5.0, 2.2, 0.9]])
    >>> compare_outliers(draws, np.array([5.0, 5.0, 2.1]), 1.0, 0.1, near=0.9)
    Outliers(distance=0.0, clear=3, wrong=0)
    """
    clear = np.sort(predicted[predicted > edge + margin])[::-1]
    distances, start = [0.0], 0
    while start < len(clear):
        group = slice(start, start + int(np.sum(clear[start:] > near * clear[start])))
        means = eigenvalues[:, group].mean(axis=1) / clear[group].mean()
        distances.append(beyond(means - 1))
        start = group.stop
    wrong = checks.wrong_outliers(eigenvalues, predicted, edge, margin)
    return Outliers(float(np.max(distances)), len(clear), wrong)


def draw_histogram(panel: Axes, part: xr.Dataset, task: Any, ratio: float, **options: Any) -> None:
    """All eigenvalues in ``spectrum``, and their prediction from the state that stands beside it.

    Options are those of ``sgdlimits.spectra.effective``.
    """
    state = {name: part[name].values for name in task.shapes}
    predicted = sl.spectra.effective(task, state, ratio, **options)
    sl.plot.spectrum(part.spectrum, predicted, axes=panel)

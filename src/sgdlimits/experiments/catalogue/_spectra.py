"""What the experiments on spectra share: the size of the matrices, and matrices of fresh data."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import sgdlimits as sl
from sgdlimits.experiments.base import Settings, setting

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


def nearly_equal(values: np.ndarray) -> list[slice]:
    """Where decreasing positive numbers lie within 5 % of the first of their kind.

    >>> nearly_equal(np.array([5.0, 4.9, 2.0]))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    slices, start = [], 0
    while start < len(values):
        slices.append(slice(start, start + int(np.sum(values[start:] > 0.95 * values[start]))))
        start = slices[-1].stop
    return slices


def draw_histogram(panel: Axes, part: xr.Dataset, task: Any, ratio: float, **options: Any) -> None:
    """All eigenvalues in ``spectrum``, and their prediction from the state that stands beside it.

    Options are those of ``sgdlimits.spectra.effective``.
    """
    state = {name: part[name].values for name in task.shapes}
    predicted = sl.spectra.effective(task, state, ratio, **options)
    sl.plot.spectrum(part.spectrum, predicted, axes=panel)

"""No function of the room starts to fill a memory that is not there."""

from collections.abc import Callable

import numpy as np
import pytest

import sgdlimits as sl
from sgdlimits.lectures import covariance, descent, lazy, networks, regression, smoothing, tokens

HUGE = 10**12
CALLS: dict[str, Callable[[], object]] = {
    "separable": lambda: descent.separable_data(HUGE, 10),
    "spectra": lambda: covariance.spectra(2, HUGE),
    "runs of spectra": lambda: covariance.spectra(2, 3, runs=HUGE),
    "resolvent": lambda: covariance.resolvent(HUGE, 2, 1.0),
    "quadratic": lambda: covariance.quadratic_forms(np.eye(2), runs=HUGE),
    "least squares": lambda: regression.least_squares(HUGE, 10),
    "runs of least squares": lambda: regression.least_squares(2, 10, runs=HUGE),
    "random features": lambda: regression.random_features(HUGE, 20),
    "tests": lambda: regression.random_features(10, 20, tests=HUGE),
    "smoothing": lambda: smoothing.neighbour_errors(2, HUGE, neighbours=[1]),
    "start": lambda: lazy.TwoLayers(4).start(HUGE),
    "width": lambda: networks.Network(3, width=HUGE),
    "depth": lambda: networks.Network(3, width=10**5, depth=4),
    "features": lambda: networks.random_feature_kernel([[1.0]], HUGE),
    "particles": lambda: tokens.uniform(HUGE, 3),
    "matrices": lambda: tokens.matrices("wigner", HUGE),
}


@pytest.mark.parametrize("name", CALLS)
def test_sizes_beyond_memory_are_refused(name: str) -> None:
    with pytest.raises(sl.InputError, match=r"is not allowed: .* must be at most 2\*\*32"):
        CALLS[name]()

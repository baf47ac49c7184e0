"""What the experiments on noisy Gaussian classes share: SGD at several noise levels and at none."""

import math
from typing import Any

import xarray as xr

from sgdlimits.experiments.base import setting
from sgdlimits.experiments.shared import Sgd

NO_NOISE = math.inf  # precision of data without noise


class NoiseLevels(Sgd):
    """Noise levels of the data; no noise at all is always added."""

    precisions: tuple[float, ...] = setting(
        (10.0, 100.0, 1000.0), "precisions λ of the data", least=1
    )

    def task(self, precision: float = NO_NOISE) -> Any:
        """At one noise level."""
        raise NotImplementedError

    def sgd(self, seed: int, **options: Any) -> xr.Dataset:
        """Start and end of SGD for every λ and for ∞, each with its own seed."""
        precisions = [*self.precisions, NO_NOISE]
        return self.simulate_over("precision", precisions, self.task, seed, points=2, **options)

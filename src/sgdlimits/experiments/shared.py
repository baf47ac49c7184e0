"""Settings of all experiments that run SGD."""

from typing import Any

import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments.settings import Settings, setting


class Sgd(Settings):
    """The size of the simulations; an experiment or a family of them has its own defaults."""

    dim: int = setting(1000, "dimension", least=2)
    runs: int = setting(100, "independent runs of SGD", least=10)
    time: float = setting(10.0, "duration, in units of dim/step samples", above=0)

    def simulate(self, task: Any, seed: int, **options: Any) -> xr.Dataset:
        """SGD of this size; options are those of ``sgdlimits.simulate``, which go first."""
        size: dict[str, Any] = {"dim": self.dim, "runs": self.runs, "time": self.time}
        return sl.simulate(task, seed=seed, **(size | options))

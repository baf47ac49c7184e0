"""An experiment that costs nothing, to be copied into a catalogue of its own."""

import warnings

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, Settings, experiment, setting


@experiment(
    paper="BGJ22",
    figure="Fig. 0",
    claim="Normal numbers have mean zero.",
    tiny={"size": 20},
    quick={"size": 50},
    headline=True,
)
class FakeNumbers(Settings):
    """Two numbers, and a way to break it."""

    size: int = setting(1000, "how many", least=2)
    shift: float = setting(0.0, "what is added")
    trouble: str = setting("", "raise this error")

    def compute(self, seed: int) -> Data:
        """Draw normal numbers."""
        if self.trouble == "value":
            raise ValueError("value is not allowed")
        if self.trouble:
            raise RuntimeError(self.trouble)
        warnings.warn("one run diverged", RuntimeWarning, stacklevel=1)
        values = self.shift + np.random.default_rng(seed).standard_normal(self.size)
        return {"numbers": xr.Dataset({"x": ("run", values)})}

    def check(self, data: Data) -> list[Check]:
        """Mean zero, not five."""
        values = data["numbers"].x.values
        return [
            checks.mean("mean", values, 0.0),
            checks.mean("mean, as printed", values, self.shift, printed=5.0),
        ]

    def draw(self, data: Data) -> Figure:
        """A histogram."""
        figure, panels = sl.plot.panels(1, 1)
        panels[0, 0].hist(data["numbers"].x.values, label="numbers")
        sl.plot.legend_below(figure)
        return figure

"""XOR: the wider the network, the more random starts lead to an optimal one."""

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._xor import Xor, classifies


@experiment(
    paper="BGJ22",
    figure="(5.2)",
    claim="XOR: the chance that SGD ends at a global minimum tends to 1 as the width grows.",
    tiny={"widths": (6,), "runs": 64, "time": 20.0},
    quick={"widths": (4, 6, 8), "runs": 256, "time": 20.0},
)
class XorWidth(Xor):
    """Widths of the network; the data have no noise."""

    widths: tuple[int, ...] = setting((4, 5, 6, 7, 8, 9, 10), "numbers K of neurons", least=2)
    ridge: float = setting(0.05, "ridge α, below 1/8", above=0, most=0.1)
    runs: int = setting(500, "independent runs of SGD, and starts of the limit", least=20)
    time: float = setting(30.0, "duration of SGD, in units of dim samples", least=10)

    def compute(self, seed: int) -> Data:
        """Count the optimal networks at the end of SGD, and where the limit comes to rest."""

        def one(width: int) -> xr.Dataset:
            runs = self.simulate(self.task(width=width), seed + width, points=2)
            rest = self.at_rest(self.small_starts(seed + 100 + width, width), width)
            hits = [classifies(sl.results.state(ends)).sum() for ends in (runs, rest)]
            return xr.Dataset({"hits": ("source", hits)}, {"source": ["SGD", "limit"]})

        return {"chances": sl.results.over("width", self.widths, one)}

    def check(self, data: Data) -> list[Check]:
        """Formula (5.2) at every width, for the limit and for SGD."""
        return [
            checks.proportion(
                f"optimal end points of {source}, K = {width}",
                int(data["chances"].hits.sel(source=source, width=width)),
                self.runs,
                sl.theory.xor.success_probability(width),
            )
            for width in self.widths
            for source in ("SGD", "limit")
        ]

    def draw(self, data: Data) -> Figure:
        """Formula and fractions with their exact intervals over the width."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=5.6, height=3.8)
        hits = data["chances"].hits
        order = np.arange(min(4, *self.widths), max(self.widths) + 1)
        formula = [sl.theory.xor.success_probability(int(width)) for width in order]
        panel.plot(order, formula, "k", label="formula (5.2)")
        for source, shift, label, color in (
            ("SGD", -0.07, f"SGD, N = {self.dim}", sl.plot.style.SIMULATION),
            ("limit", 0.07, "limit N → ∞", sl.plot.style.PATHS),
        ):
            counts, x = hits.sel(source=source), hits.width.values + shift
            sl.plot.proportions(counts, self.runs, x, label=label, color=color, axes=panel)
        panel.set(xlabel="width $K$", ylabel="chance to end optimal", ylim=(0, 1))
        panel.set_xticks(order)
        return sl.plot.legend_below(figure)

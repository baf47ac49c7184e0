"""The population loss along SGD on spiked tensors: at the critical step size it may grow."""

from typing import Any

import xarray as xr
from scipy.integrate import cumulative_simpson

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._pca import Tensors


@experiment(
    paper="BGJ22",
    figure="(3.4)",
    claim="The population loss follows its own ODE, in which the corrector can make it grow.",
    tiny={"orders": (3,), "dim": 2_000, "runs": 24, "time": 1.0},
    quick={},
)
class PopulationLoss(Tensors):
    """Orders of the tensor, a signal, and where SGD starts."""

    orders: tuple[int, ...] = setting((2, 3), "orders k of the tensor", least=2, most=4)
    snr: float = setting(2.0, "signal-to-noise ratio λ", above=0, most=3)
    overlap: float = setting(0.3, "overlap m at the start", most=1)
    radius: float = setting(0.1, "squared radius r² at the start", above=0, most=2)
    dim: int = setting(10_000, "dimension n", least=1_000)
    runs: int = setting(128, "independent runs of SGD for each k", least=20)
    time: float = setting(1.5, "duration, in units of dim samples", above=0)

    def compute(self, seed: int) -> Data:
        """SGD from one start, the limit, and (3.4) integrated along the limit."""
        start = {"m": self.overlap, "r2": self.radius}

        def sgd(order: int) -> xr.Dataset:
            runs = self.simulate(self.task(order), seed + order, init=start, points=101)
            return self.with_loss(order, runs)

        def limit(order: int) -> xr.Dataset:
            path = self.with_loss(order, self.solve(self.task(order), start, points=2001))
            rate = sl.theory.spiked_tensor.loss_drift(path.m, path.r2, order=order, snr=self.snr)
            grown = cumulative_simpson(rate, x=path.time.values, initial=0)
            integrated = path.loss.values[0] + grown
            return path.assign(integrated=("time", integrated)).isel(time=slice(None, None, 20))

        def population(order: int) -> xr.Dataset:
            return self.with_loss(order, self.solve(self.task(order), start, points=101, step=1e-6))

        functions = {"sgd": sgd, "limit": limit, "population": population}
        return {x: sl.results.over("order", self.orders, f) for x, f in functions.items()}

    def with_loss(self, order: int, states: xr.Dataset) -> xr.Dataset:
        """States, and Φ = −2λmᵏ + R²ᵏ, the population loss up to a constant."""
        loss = sl.theory.spiked_tensor.population_loss(
            states.m.values, states.r2.values, order=order, snr=self.snr
        )
        return states.assign(loss=(states.m.dims, loss))

    def check(self, data: Data) -> list[Check]:
        """Φ of the limit against (3.4) integrated, and against Φ along SGD."""
        sgd, path = data["sgd"], data["limit"]
        gaps = abs(path.integrated - path.loss).max("time")
        gap = "largest gap between (3.4) integrated and Φ of the limit, k = {}"
        along = "Φ along SGD against Φ of the limit, k = {}"
        return [
            *checks.each("order", checks.exact, gap, gaps, 0.0, 1e-6),
            *checks.each("order", checks.path, along, sgd.loss, path.loss),
        ]

    def draw(self, data: Data) -> Figure:
        """Φ(t) for each k."""

        def one(panel: Axes, sgd: xr.Dataset, limit: xr.Dataset, population: xr.Dataset) -> None:
            sl.plot.runs(sgd.loss, most=20, label="_", axes=panel)
            sl.plot.band(sgd.loss, axes=panel)
            panel.plot(limit.time, limit.integrated, "k", label="limit (3.4)")
            label = "gradient flow on Φ: without corrector"
            panel.plot(population.time, population.loss, "k:", label=label)
            panel.set_ylabel("population loss Φ")

        size: Any = {"title": "k = {}", "height": 3.6, "share": False}
        others = data["limit"], data["population"]
        return sl.plot.facets(data["sgd"], "order", one, *others, **size)

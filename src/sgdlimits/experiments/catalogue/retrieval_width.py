"""Phase retrieval by wide networks: many runs of SGD and the ODE from the same start."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._retrieval import risk
from sgdlimits.experiments.shared import Sgd

POINTS = 61
LINEAR = 1e-5  # an overlap so small that its drift is linear
COLOURS = {"random": sl.plot.style.SIMULATION, "informed": sl.plot.style.PATHS}  # of the starts


@experiment(
    paper="AKLS23",
    figure="Fig. 2",
    claim="Wide networks: SGD scatters around the ODE from a random start and follows it later.",
    tiny={"widths": (3,), "dim": 1000, "runs": 30},
    quick={"widths": (5, 10), "dim": 1000},
)
class RetrievalWidth(Sgd):
    """The paper's γ is the step; its time is ours divided by the width p."""

    widths: tuple[int, ...] = setting((5, 20), "numbers of neurons p", least=1)
    rate: float = setting(0.12, "step over width, γ/p", above=0)
    noise: float = setting(0.0, "variance Δ of the label noise", least=0)
    overlap: float = setting(0.3, "overlaps at the informed start", above=0, most=0.9)
    dim: int = setting(5000, "dimension d", least=100)
    runs: int = setting(60, "independent runs of SGD from each start", least=10)
    time: float = setting(2.5, "duration over width, the paper's time", above=0)

    def compute(self, seed: int) -> Data:
        """Risk of SGD and of the ODE for each width, from a random start and from an informed one.

        Time is the paper's, t/p, in the data too.
        """

        def one(width: int) -> xr.Dataset:
            task = sl.tasks.PhaseRetrieval(width=width, noise=self.noise, spherical=True)
            step, ones = self.rate * width, np.ones((width, 1))
            limit = sl.effective_dynamics(task, step=step)
            uninformed = task.random_state(self.dim, seed=seed)
            informed = {"M": self.overlap * ones, "R": (1 - self.overlap**2) * np.eye(width)}
            starts = {name: np.stack([uninformed[name], informed[name]]) for name in informed}
            options: Any = {"time": self.time * width, "step": step, "points": POINTS}
            sgd = self.simulate_from(task, seed, starts, **options)
            ode = limit.solve(starts, times=sgd.time).rename(run="start")
            growth = limit.drift({"M": LINEAR * ones, "R": np.eye(width)})["M"][0, 0] / LINEAR
            both = {"sgd": risk(sgd, self.noise).risk, "ode": risk(ode, self.noise).risk}
            coords = {"start": list(COLOURS), "time": sgd.time / width}
            return xr.Dataset(both).assign(growth=growth).assign_coords(coords)

        return {"risk": sl.results.over("width", self.widths, one)}

    def check(self, data: Data) -> list[Check]:
        """Mean risk against the ODE from the informed start; the rate (38) of growing overlaps."""
        # at a random start m is as small as its noise, and the ODE no limit of the mean
        risk, name = data["risk"].sel(start="informed"), "growth rate of small overlaps, p = {}"

        def rate(width: int) -> float:
            return sl.theory.phase_retrieval.growth_rate(width, self.rate * width, self.noise)

        return [
            *checks.each("width", checks.path, "mean risk over time, p = {}", risk.sgd, risk.ode),
            *checks.each("width", checks.exact, name, risk.growth, rate, 1e-6),
        ]

    def draw(self, data: Data) -> Figure:
        """One panel for each width, both starts in each."""

        def one(panel: Axes, both: xr.Dataset) -> None:
            for start, colour in COLOURS.items():
                part = both.sel(start=start)
                sl.plot.runs(part.sgd, label=f"SGD, {start} start", color=colour, axes=panel)
                panel.plot(part.time, part.ode, "k", lw=1.8, label="ODE")
            panel.set_xlabel("time $t/p$ (= step × samples / ($p$ dim))")
            panel.set_ylabel("population risk")

        return sl.plot.facets(data["risk"], "width", one, title="$p = {:g}$", height=3.5)

"""A committee learns a smaller one in high dimension: plateau, specialisation, and the gap in d."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._committee import POINTS, Committee, excess_risk

START_DIM = 100  # all dimensions start at one state, typical of this one
TINY = {"dims": (50, 400), "runs": 60, "early": 5.0, "time": 40.0}
QUICK = {"width": 4, "dims": (50, 200, 800), "time": 500.0}


@experiment(
    paper="L23",
    figure="high-dimensional regime",
    claim="SGD in dimension d is within d^(−1/2) of its limit: a plateau, then specialisation.",
    tiny={"teachers": 2, "width": 2, "gamma": 0.5, "rest": 1e4, **TINY},
    quick={"teachers": 2, "gamma": 0.5, **QUICK},
)
class CommitteeHighDim(Committee):
    """The slides differentiate (y − f)², we (y − f)²/2: our step is 2γ, our time 2p theirs."""

    teachers: int = setting(4, "number of teacher neurons k", least=1)
    width: int = 8
    gamma: float = 0.1
    dims: tuple[int, ...] = setting((100, 300, 1000), "dimensions d, increasing", least=20)
    runs: int = setting(100, "independent runs of SGD", least=20)
    early: float = setting(15.0, "when gaps are measured, in units of dim/step samples", above=0)
    time: float = setting(200.0, "duration in the least dimension, in the same units", above=0)

    def compute(self, seed: int) -> Data:
        """Short runs in every dimension, long ones in the least, and the limit until it rests."""
        task, step = self.task(self.teachers), 2 * self.gamma
        start = task.random_state(START_DIM, seed=seed)
        limit = sl.effective_dynamics(task, step=step)

        def run(dim: int, time: float) -> xr.Dataset:
            options: Any = {"runs": self.runs, "step": step, "init": start, "points": POINTS}
            return sl.simulate(task, dim=dim, time=time, seed=seed, **options)

        def short(dim: int) -> xr.Dataset:
            sgd = run(dim, self.early)
            path = limit.solve(start, times=sgd.time)
            apart = np.abs(sgd.M - path.M).isel(time=-1, drop=True).max(("neuron", "anchor"))
            both = excess_risk(sgd).assign(limit=excess_risk(path).risk, distance=apart)
            # times are whole numbers of samples: they differ by less than step/d between dimensions
            return both.assign_coords(time=np.linspace(0, self.early, POINTS))

        return {
            "short": sl.results.over("dim", self.dims, short),
            "long": excess_risk(run(self.dims[0], self.time)),
            "later": excess_risk(limit.solve(start, times=self.later)),
        }

    def check(self, data: Data) -> list[Check]:
        """Mean risk in the largest dimension, the rate at which the gap closes, and the end."""
        least, most = self.dims[0], self.dims[-1]
        largest, note = data["short"].sel(dim=most), f"from d = {least} to {most}"
        exponents = checks.exponent(data["short"].distance, "dim")
        rest = data["later"].risk[-1] / (self.noise / 2)
        return [
            checks.path(f"mean risk over time, d = {most}", largest.risk, largest.limit),
            checks.mean("exponent of max|M − limit| in d", exponents, -0.5, note=note),
            checks.exact("excess risk of the limit at rest over Δ/2", rest, 0.0, self.least_excess),
        ]

    def draw(self, data: Data) -> Figure:
        """Excess risk over time on the left, gap to the limit over dimension on the right."""
        figure, ((left, right),) = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.3, 1))
        self.draw_limit(left, data["later"].risk)
        for number in reversed(range(len(self.dims))):  # the largest lie behind
            risk = data["short"].risk.isel(dim=number) if number else data["long"].risk
            look: Any = {"color": picture.COLOURS[number % 6], "size": 4.5 + 3 * number}
            label = f"SGD, $d = {self.dims[number]}$"
            sl.plot.band(risk, spread="deviation", bars=True, label=label, axes=left, **look)
        sl.plot.convergence(data["short"].distance, color="k", label="_", axes=right)
        right.set(xlabel="dimension $d$", title=f"$t = {self.early:g}$")
        right.set_ylabel(r"mean of max $|M - \bar{M}|$")
        return sl.plot.legend_below(figure, 6)

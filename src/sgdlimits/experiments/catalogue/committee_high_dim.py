"""A committee learns a smaller one in high dimension: plateau, specialisation, and the gap in d."""

from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._committee import LATER, POINTS, Committee, excess_risk

START_DIM = 100  # all dimensions start at one state, typical of this one
TINY = {"dims": (50, 400), "runs": 60, "early": 5.0, "time": 40.0}
QUICK = {"width": 4, "dims": (50, 200, 800), "time": 500.0}


@experiment(
    paper="L23",
    figure="high-dimensional regime",
    claim="SGD in dimension d is within d^(−1/2) of its limit: a plateau, then specialisation.",
    tiny={"teachers": 2, "width": 2, "gamma": 0.5, **TINY},
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
            "later": excess_risk(limit.solve(start, times=LATER)),
        }

    def check(self, data: Data) -> list[Check]:
        """Mean risk in the largest dimension, the rate at which the gap closes, and the end."""
        least, most = self.dims[0], self.dims[-1]
        short, distance = data["short"].sel(dim=most), data["short"].distance
        ratio = distance.sel(dim=least) / distance.sel(dim=most)
        rest = data["later"].risk[-1] / (self.noise / 2)
        name = "excess risk of the limit at rest over Δ/2"
        return [
            checks.path(f"mean risk over time, d = {most}", short.risk, short.limit),
            checks.mean(
                "exponent of max|M − limit| in d",
                -np.log(ratio) / np.log(most / least),
                -0.5,
                note=f"from d = {least} to {most}",
            ),
            checks.exact(name, rest, 0.0, self.least_excess),
        ]

    def draw(self, data: Data) -> Figure:
        """Excess risk over time on the left, gap to the limit over dimension on the right."""
        figure, ((left, right),) = sl.plot.panels(1, 2, height=3.6, width_ratios=(1.3, 1))
        right.set(xscale="log", yscale="log")
        self.draw_limit(left, data["later"].risk)
        for number in reversed(range(len(self.dims))):  # the largest lie behind
            dim, sgd = self.dims[number], data["short"].isel(dim=number)
            risk = data["long"].risk if number == 0 else sgd.risk
            look: Any = {"bars": True, "color": picture.COLOURS[number % 6]}
            sized = look | {"spread": "deviation", "size": 4.5 + 3 * number}
            sl.plot.band(risk, label=f"SGD, $d = {dim}$", axes=left, **sized)
            sl.plot.band(sgd.distance.expand_dims("dim", 1), axes=right, label="_", **look)
        distance, dims = data["short"].distance.mean("run"), data["short"].dim
        line = distance[-1] * np.sqrt(dims[-1] / dims)
        right.plot(dims, line, "k--", lw=1.2, label="$d^{-1/2}$")
        right.set(xlabel="dimension $d$", title=f"$t = {self.early:g}$")
        right.set(ylabel=r"mean of max $|M - \bar{M}|$", xticks=dims, xticklabels=self.dims)
        right.xaxis.minorticks_off()
        return sl.plot.legend_below(figure, 6)

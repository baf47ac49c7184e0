"""How long phase retrieval takes to escape from random starts, over dimension and width."""

from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._retrieval import excess
from sgdlimits.experiments.settings import Settings

AVERAGES = {"quenched": "(46), quenched", "annealed": "(47), annealed"}
LONG = 3.0  # how long runs are watched, in units of the predicted mean
# of the mean: a tolerance of the comparison. With dT at least 10, what is left is of the order of
# 1/(dT) of 1/(2ω), and of φ/d where the exit comes before 1/ω_Q
SHARE = 0.03
WORK = 5e7  # runs times d·p^(3/2), to which the time of a run is about proportional
FEWEST = 20  # runs, however long they take
DIRECTIONS = 24


@experiment(
    paper="AKLS23",
    figure="Fig. 1 right",
    claim="Exit times grow like log(d)/(2ω) for any width; SGD lies between both averages.",
    tiny={"widths": (1, 2), "dims": (100, 400), "runs": 100},
    quick={"widths": (1, 3), "dims": (100, 300, 1000), "runs": 200},
    cost=3.0,
)
class RetrievalExitTimes(Settings):
    """The paper's γ is the step; γ/p is the same for all widths."""

    widths: tuple[int, ...] = setting((1, 2, 5, 20), "numbers of neurons p", least=1)
    dims: tuple[int, ...] = setting((1000, 10_000, 100_000), "dimensions d", least=100)
    rate: float = setting(0.05, "step over width, γ/p", above=0, most=0.1)
    noise: float = setting(0.0, "variance Δ of the label noise", least=0)
    threshold: float = setting(0.1, "share T of the excess risk lost at exit", above=0, most=0.5)
    runs: int = setting(2000, "independent runs of SGD, fewer where they take long", least=50)

    def compute(self, seed: int) -> Data:
        """First passages of SGD, and what is predicted for them, in the paper's time t/p."""
        return {"exits": sl.results.over("width", self.widths, lambda p: self.one(p, seed))}

    def one(self, width: int, seed: int) -> xr.Dataset:
        """One width in all dimensions."""
        task, step = sl.tasks.PhaseRetrieval(width=width, noise=self.noise), self.rate * width
        retrieval = sl.theory.phase_retrieval
        limit = sl.effective_dynamics(task, step=step)
        escape = limit.escape({"M": np.zeros((width, 1)), "R": np.eye(width)})
        level = self.noise / 2 + (1 - self.threshold) * (1 + 1 / width)
        last, event = self.dims[-1], (excess, "<", level - self.noise / 2)
        law = escape.exit_time(last, ("risk", "<", level), directions=DIRECTIONS, seed=seed)
        # all but the size 1/√d of the start is the same in every dimension
        slowing = retrieval.growth_slowing(width, step=step, noise=self.noise)
        predicted = {
            d: (law.mean + np.log(d / last) / (2 * escape.rate)) * (1 + slowing / d)
            for d in self.dims
        }

        def sgd(dim: int, seed: int) -> xr.Dataset:
            size: Any = {"dim": dim, "runs": self.count(width, dim)}
            longest = LONG * predicted[dim]
            runs = sl.first_passage(task, event, step=step, seed=seed, max_time=longest, **size)
            times = (runs.time / width).reset_coords(drop=True)
            found = {"time": times, "waiting": int(runs.censored.sum()), "count": size["runs"]}
            # as many everywhere, for one array: those that are not there have no time
            return xr.Dataset(found).reindex(run=np.arange(self.runs))

        def formula(name: str) -> list[float]:
            words: Any = {"step": step, "noise": self.noise, "threshold": self.threshold}
            words |= {"average": name, "unit": "paper"}
            return [float(retrieval.exit_time(dim, width, **words)) for dim in self.dims]

        found = sl.results.over("dim", self.dims, sgd, count(seed))
        known: dict[str, Any] = {name: ("dim", formula(name)) for name in AVERAGES}
        known["limit"] = ("dim", [value / width for value in predicted.values()])
        known["error"] = law.error / width
        known["slope"] = 1 / (2 * escape.rate * width)
        return found.assign(known)

    def count(self, width: int, dim: int) -> int:
        """How many runs."""
        return int(np.clip(WORK / (dim * width**1.5), FEWEST, self.runs))

    def check(self, data: Data) -> list[Check]:
        """Means against ``limit.escape`` and its slope in log d; the annealed time is too early."""
        exits = data["exits"]
        found = []
        for p in self.widths:
            own = exits.sel(width=p)
            for d in self.dims:
                at = own.sel(dim=d)
                note = f"{int(at['count'])} runs; quenched {float(at.quenched):.4g}, "
                note += f"annealed {float(at.annealed):.4g}; {int(at.waiting)} wait at the end"
                bias = SHARE * float(at.limit) + 3 * float(own.error)
                name, times = f"mean exit time t/p, p = {p}, d = {d:,}", at.time.dropna("run")
                found.append(checks.mean(name, times, float(at.limit), note=note, bias=bias))
            found.append(self._slope(own, p))
        first = exits.isel(width=0)
        early = (first.time.mean("run") - first.annealed).values
        return [
            *found,
            checks.holds(f"annealed times are too early, p = {self.widths[0]}", np.all(early > 0)),
        ]

    def _slope(self, own: xr.Dataset, width: int) -> Check:
        """Of mean exit times in log d, by least squares with independent errors."""
        logs = np.log(own.dim.values)
        lever = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
        error = float(np.sqrt(np.sum(lever**2 * (own.time.var("run") / own["count"]).values)))
        slope = float(lever @ own.time.mean("run").values)
        expected, tolerance = float(own.slope), checks.allowed(int(own["count"].min())) * error
        name = f"growth of t/p with log d, p = {width}: 1/(2ω_M), (38)"
        return Check(name, expected, slope, error, tolerance + SHARE * expected)

    def draw(self, data: Data) -> Figure:
        """Mean exit times over d, one panel for each width."""

        def one(panel: Axes, own: xr.Dataset) -> None:
            error = own.time.std("run") / own["count"] ** 0.5
            look: Any = {"capsize": 3, "color": sl.plot.style.SIMULATION, "zorder": 4}
            panel.errorbar(
                own.dim, own.time.mean("run"), 2 * error, fmt="o", label="SGD ± 2 s.e.", **look
            )
            panel.plot(own.dim, own.limit, "k", label="limit.escape: with noise, nonlinear")
            for (name, words), line in zip(AVERAGES.items(), ("--", ":"), strict=True):
                panel.plot(own.dim, own[name], line, color="C1", label=words)
            panel.set(xscale="log", xlabel="dimension $d$")
            panel.set_ylabel("mean exit time $t/p$")

        return sl.plot.facets(data["exits"], "width", one, title="$p = {:g}$", height=3.5, legend=4)

"""A committee learns a smaller one by small steps: population risk of SGD and of its limit."""

import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks
from sgdlimits.experiments.base import Axes, Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._committee import POINTS, Committee, excess_risk
from sgdlimits.experiments.shared import Sgd


@experiment(
    paper="L23",
    figure="classical regime",
    claim="Small steps at fixed d: the risk of SGD follows the limit, over a plateau to the floor.",
    tiny={"teachers": (2,), "width": 2, "gamma": 0.1, "dim": 20, "time": 60.0, "rest": 1e4},
    quick={"teachers": (2, 4), "width": 4, "time": 150.0},
)
class CommitteeClassical(Committee, Sgd):
    """A student with fixed readout can be equal to the teacher only if k divides p.

    The slides differentiate (y − f)², we (y − f)²/2: our step is 2γ, our time 2p theirs.
    """

    teachers: tuple[int, ...] = setting((2, 5), "numbers of teacher neurons k", least=1)
    dim: int = setting(25, "dimension d", least=8)
    runs: int = setting(24, "independent runs of SGD", least=10)
    time: float = 400.0

    def compute(self, seed: int) -> Data:
        """Excess risk of SGD from one random start, and of the limit until it rests."""

        def one(teachers: int) -> xr.Dataset:
            task, step = self.task(teachers), 2 * self.gamma
            start = task.random_state(self.dim, seed=seed)
            both = self.with_limit(task, seed, start, points=POINTS, step=step)
            sgd, limit = (excess_risk(both[name]) for name in ("sgd", "limit"))
            until_rest = sl.effective_dynamics(task, step=step).solve(start, times=self.later)
            later = excess_risk(until_rest).risk.rename(time="later")
            return sgd.assign(limit=limit.risk, limit_later=later)

        return {"risk": sl.results.over("k", self.teachers, one)}

    def check(self, data: Data) -> list[Check]:
        """Mean risk over time against the limit, and the risk of the limit at rest."""
        risk, floor = data["risk"], self.noise / 2
        rest = (risk.limit_later.isel(later=-1) + floor) / floor
        name = "risk at rest over the noise floor Δ/2, k = {}"
        return [
            *checks.each("k", checks.path, "mean risk over time, k = {}", risk.risk, risk.limit),
            *checks.each("k", checks.exact, name, rest, 1.0, self.least_excess),
        ]

    def draw(self, data: Data) -> Figure:
        """Excess risk over time on logarithmic axes, one panel for each teacher."""

        def one(panel: Axes, sgd: xr.Dataset) -> None:
            self.draw_limit(panel, sgd.limit_later)
            label = f"SGD, $d = {self.dim}$: mean ± standard deviation"
            sl.plot.band(sgd.risk, spread="deviation", bars=True, label=label, axes=panel)

        title = f"$k = {{}}$, $p = {self.width}$"
        return sl.plot.facets(data["risk"], "k", one, title=title, height=3.5)

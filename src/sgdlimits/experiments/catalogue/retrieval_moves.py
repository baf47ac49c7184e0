"""Phase retrieval by SGD that moves in other ways: what batches, decay and momentum leave."""

from itertools import count
from typing import Any

import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.shared import Sgd

POINTS = 61
# bounds for dim times the distance of means from the limit: measured are 23 on the way, 0.2 at rest
ON_THE_WAY, AT_REST = 25.0, 1.0


@experiment(
    paper="ours",
    figure="risk of phase retrieval by several moves",
    claim="Batches lower the floor of constant steps, decay removes it, momentum is a larger step.",
    tiny={"dim": 300, "runs": 40, "time": 4.0},
    quick={"dim": 1000, "runs": 60},
)
class RetrievalMoves(Sgd):
    """One neuron on the sphere from one warm start; every move has its own limit."""

    step: float = setting(0.1, "step c of plain SGD", above=0, most=0.15)
    noise: float = setting(0.5, "variance Δ of the label noise", above=0, most=1)
    batch: int = setting(4, "samples in a batch", least=2)
    momentum: float = setting(0.5, "momentum β, at the step c(1 − β)", above=0, most=0.9)
    overlap: float = setting(0.3, "overlap m at the start", above=0, most=0.9)
    dim: int = 2000
    runs: int = 100
    time: float = setting(8.0, "duration, in units of dim/step steps", above=0)

    @property
    def moves(self) -> dict[str, dict[str, Any]]:
        """Names of moves, and the words that ``simulate`` and ``effective_dynamics`` take."""
        small = self.step * (1 - self.momentum)
        return {
            f"c = {self.step:g}": {"step": self.step},
            f"batches of {self.batch}": {"step": self.step, "batch": self.batch},
            f"β = {self.momentum:g}, c = {small:g}": {"step": small, "momentum": self.momentum},
            f"c = {self.step:g}/(1 + t)": {"step": self.decaying},
        }

    def decaying(self, time: Any) -> Any:
        """A step that falls like 1/t."""
        return self.step / (1 + time)

    def compute(self, seed: int) -> Data:
        """Excess risk 2(1 − m²) of SGD and of the limit, for every move."""
        task = sl.tasks.PhaseRetrieval(noise=self.noise)
        start = {"M": [[self.overlap]], "R": [[1 - self.overlap**2]]}

        def one(name: str, seed: int) -> xr.Dataset:
            words = self.moves[name]
            sgd = self.simulate(task, seed, init=start, points=POINTS, **words)
            limit = sl.effective_dynamics(task, **words).solve(start, times=sgd.time)
            risk = 2 * sgd.R.isel(neuron=0, neuron_=0, drop=True).drop_vars("samples")
            # times are whole numbers of steps: they differ by less than step/d between moves
            even = np.linspace(0, self.time, POINTS)
            both = xr.Dataset({"risk": risk.assign_coords(time=even)})
            return both.assign(limit=("time", 2 * limit.R.values[:, 0, 0]))

        return {"excess": sl.results.over("move", list(self.moves), one, count(seed))}

    def floor(self, words: dict[str, Any]) -> float:
        """Excess risk at rest, (8) of AKLS23, at the step of plain SGD with as much noise."""
        step = words["step"] / (1 - words.get("momentum", 0.0)) / words.get("batch", 1)
        return sl.theory.phase_retrieval.excess_risk(step, self.noise)

    def check(self, data: Data) -> list[Check]:
        """Each path against its limit, and what is left against the closed form."""
        excess, name, bias = data["excess"], "excess risk, {}", ON_THE_WAY / self.dim
        found = checks.each("move", checks.path, name, excess.risk, excess.limit, bias=bias)
        *constant, decaying = self.moves
        for name in constant:
            end, floor = excess.risk.sel(move=name)[:, -1], self.floor(self.moves[name])
            found.append(
                checks.mean(f"excess risk at the end, {name}", end, floor, bias=AT_REST / self.dim)
            )
        left = float(excess.risk.sel(move=decaying)[:, -1].mean())
        plain = self.floor(self.moves[constant[0]])
        lower = f"less than half of the floor is left, {decaying}"
        found.append(checks.holds(lower, left < plain / 2, note=f"{left:.2g} and {plain:.2g}"))
        return found

    def draw(self, data: Data) -> Figure:
        """Means over runs on a logarithmic axis, limits on top, floors at the right."""
        figure, ((panel,),) = sl.plot.panels(1, 1, width=6.4, height=4.2)
        excess = data["excess"]
        for name, colour in picture.coloured(list(self.moves)):
            part = excess.sel(move=name)
            sl.plot.band(part.risk, label=f"SGD, {name}", color=colour, axes=panel)
            panel.plot(part.time, part.limit, "k", lw=1.2, label="limit")
            if name in list(self.moves)[:-1]:
                panel.axhline(self.floor(self.moves[name]), color="0.5", lw=1, ls=":", label="rest")
        panel.set(yscale="log", ylabel="excess risk", xlabel="time $t$ (= sum of all step/dim)")
        return sl.plot.legend_below(figure, 3)

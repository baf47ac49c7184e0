"""Phase retrieval with momentum: it is SGD at a larger step, and at that step nothing else."""

import numpy as np

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._retrieval_moves import (
    AT_REST,
    ON_THE_WAY,
    RetrievalMoves,
    Words,
)


@experiment(
    paper="ours",
    figure="excess risk with momentum",
    claim="In the limit momentum β at the step c(1 − β) is SGD at c; at the step c it is not.",
    tiny={"dim": 300, "runs": 40, "time": 4.0, "momenta": (0.0, 0.8)},
    quick={"dim": 1000, "runs": 400},
)
class MomentumStep(RetrievalMoves):
    """All momenta at one step/(1 − β), and one of them at the step itself."""

    step: float = setting(0.05, "step/(1 − β) of all momenta", above=0, most=0.07)
    momenta: tuple[float, ...] = setting((0.0, 0.5, 0.9), "momenta β", least=0, most=0.95)
    other: float = setting(0.5, "momentum β at the step c, for contrast", above=0, most=0.5)
    runs: int = 1000
    time: float = 4.0

    @property
    def moves(self) -> dict[str, Words]:
        """The same effective step for each."""
        return {f"β = {b:g}": self.moved(b) for b in self.momenta}

    def moved(self, beta: float) -> Words:
        """With the step that momentum makes c of; time is as fast as without it."""
        return {"step": self.step * (1 - beta), "momentum": beta}

    def compute(self, seed: int) -> Data:
        """Excess risk for every momentum, and for one at the step that plain SGD has."""
        same = {f"β = {self.other:g}": {"step": self.step, "momentum": self.other}}
        return {
            "effective": self.excess(self.moves, seed),
            "same": self.excess(same, seed + len(self.momenta)),
        }

    def check(self, data: Data) -> list[Check]:
        """One limit and one floor for all momenta; another one at equal steps."""
        excess, same = data["effective"], data["same"].isel(move=0)
        plain = excess.limit.isel(move=0)
        bias, rest = ON_THE_WAY / self.dim, self.floor(self.step)
        gap = float(np.abs(excess.limit - plain).max())
        found = [checks.exact("largest distance of the limits of all momenta", gap, 0.0, 1e-3)]
        name = "excess risk against the limit of plain SGD, {}"
        found += checks.each("move", checks.path, name, excess.risk, plain, bias=bias)
        end = excess.risk.isel(time=-1)
        name, bias = "excess risk at the end, {}: γΔ/(1 − 6γ), γ = c", AT_REST / self.dim
        found += checks.each("move", checks.mean, name, end, rest, bias=bias)
        # the same two checks must fail where the step is not made smaller
        wrong = checks.mean("", same.risk.isel(time=-1), rest, bias=bias)
        note = f"{wrong.measured:.3g} is left, not {rest:.3g}"
        said = f"at the step c, β = {self.other:g} has another floor"
        found.append(checks.holds(said, wrong.status == checks.FAILED, note=note))
        larger = self.floor(self.step / (1 - self.other))
        said = f"excess risk at the end, β = {self.other:g} at the step c: γ = c/(1 − β)"
        found.append(checks.mean(said, same.risk.isel(time=-1), larger, bias=bias))
        return found

    def draw(self, data: Data) -> Figure:
        """All momenta on one limit, and the one that is not; on the right what dim adds to it."""
        figure, ((left, right),) = sl.plot.panels(1, 2, width=4.6, height=3.6)
        excess, same = data["effective"], data["same"].isel(move=0)
        plain = excess.limit.isel(move=0)
        *colours, contrast = picture.coloured([*self.moves, "other"])
        for (name, colour), size in zip(colours, np.linspace(8.0, 4.0, len(colours)), strict=True):
            part = excess.risk.sel(move=name)
            label = f"SGD, {name}, step c(1 − β)"
            sl.plot.band(part, label=label, color=colour, size=float(size), axes=left)
            gap = (part - plain) * self.dim
            sl.plot.band(gap, label=label, color=colour, size=float(size), axes=right)
        label = f"SGD, β = {self.other:g}, step c"
        sl.plot.band(same.risk, label=label, color=contrast[1], axes=left)
        left.plot(same.time, same.limit, "k--", lw=1.2, label="limit at the step c/(1 − β)")
        left.plot(excess.time, plain, "k", lw=1.2, label=f"limit at the step c = {self.step:g}")
        right.axhline(0.0, color="k", lw=1.2)
        for panel in (left, right):
            panel.set_xlabel("time $t/(1-\\beta)$ (= steps · c/dim)")
        left.set(yscale="log", ylabel="excess risk")
        right.set(ylabel="dim · (SGD − limit)")
        return sl.plot.legend_below(figure, 2)

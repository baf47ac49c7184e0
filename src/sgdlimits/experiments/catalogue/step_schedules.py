"""Phase retrieval by steps that change: a floor that moves with the step, and goes with it."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

import sgdlimits as sl
from sgdlimits.experiments import checks, picture
from sgdlimits.experiments.base import Check, Data, Figure, experiment, setting
from sgdlimits.experiments.catalogue._retrieval_moves import (
    AT_REST,
    ON_THE_WAY,
    POINTS,
    TIME,
    RetrievalMoves,
    Words,
)

CONSTANT, DROP, DECAY = "constant", "one drop", "warm-up, then 1/t"
LOWER = 5.0  # how many times smaller the step is after the drop
SLOW = 0.25  # relative distance of the excess risk from the floor of the step of that time


@experiment(
    paper="ours",
    figure="excess risk by schedules",
    claim="A step that is warmed up and decays as 1/t removes the floor: risk falls as the step.",
    tiny={"dim": 200, "runs": 40, "time": 12.0},
    quick={"dim": 500, "runs": 60},
)
class StepSchedules(RetrievalMoves):
    """One start and three schedules; the floor follows a step that changes slowly."""

    warm: float = setting(2.0, "time at which the step has come up to c", above=0)
    dim: int = 1000
    time: float = 30.0

    @property
    def moves(self) -> dict[str, Words]:
        """Functions of time, and pairs of times and steps."""
        drop = [(0.0, self.step), (self.time / 2, self.step / LOWER)]
        return {
            CONSTANT: {"step": self.step},
            DROP: {"step": drop},
            DECAY: {"step": self.decaying},
        }

    def decaying(self, time: Any) -> Any:
        """It rises from a tenth of c, and falls like 1/t from then on."""
        rise = 0.1 + 0.9 * jnp.minimum(time / self.warm, 1.0)
        return self.step * rise / (1 + jnp.maximum(time - self.warm, 0.0))

    def steps(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """Every schedule at these times."""
        drop = np.where(times < self.time / 2, self.step, self.step / LOWER)
        return {
            CONSTANT: np.full(len(times), self.step),
            DROP: drop,
            DECAY: np.asarray(self.decaying(times)),
        }

    def compute(self, seed: int) -> Data:
        """Excess risk at times that are spaced evenly in their logarithm."""
        times = np.append(0.0, np.geomspace(0.1, self.time, POINTS))
        return {"excess": self.excess(self.moves, seed, times=times)}

    def check(self, data: Data) -> list[Check]:
        """Each path against its limit, what is left in the end, and the exponent of its fall."""
        excess, bias = data["excess"], ON_THE_WAY / self.dim
        name = "excess risk, {}"
        found = checks.each("move", checks.path, name, excess.risk, excess.limit, bias=bias)
        end = excess.risk.isel(time=-1)
        last = {name: float(step[-1]) for name, step in self.steps(excess.time.values).items()}
        for kind in (CONSTANT, DROP):
            said, rest = f"excess risk at the end, {kind}: γΔ/(1 − 6γ)", self.floor(last[kind])
            bias = AT_REST / self.dim * last[kind] / self.step
            found.append(checks.mean(said, end.sel(move=kind), rest, bias=bias))
        said, left = f"excess risk at the end over γ(t)Δ, {DECAY}", end.sel(move=DECAY)
        found.append(checks.mean(said, left / (last[DECAY] * self.noise), 1.0, bias=SLOW))
        return [*found, self.exponent(excess, DECAY)]

    def exponent(self, excess: xr.Dataset, kind: str) -> Check:
        """Of the mean in the step, over the last half of the logarithm of time: one."""
        times = excess.time.values
        half = int(np.searchsorted(times, np.sqrt(times[-1] * self.warm * 2)))
        step = self.steps(times)[kind][[half, -1]]
        risk = excess.risk.sel(move=kind).isel(time=[half, -1]).mean("run").values
        slope = float(np.log(risk[1] / risk[0]) / np.log(step[1] / step[0]))
        said = f"exponent of the excess risk in the step, {kind}"
        note = f"from t = {times[half]:.3g} to {times[-1]:.3g}"
        return checks.exact(said, slope, 1.0, SLOW, note=note)

    def draw(self, data: Data) -> Figure:
        """The schedules on the left; on the right what they leave, and the floor of each step."""
        figure, ((left, right),) = sl.plot.panels(1, 2, width=4.6, height=3.6)
        excess = data["excess"].isel(time=slice(1, None))
        fine = np.geomspace(float(excess.time[0]), self.time, 1000)
        steps = self.steps(fine)
        for panel in (left, right):
            panel.set(xscale="log", yscale="log", xlabel=TIME)
        for name, colour in picture.coloured(self.moves):
            part = excess.sel(move=name)
            left.plot(fine, steps[name], color=colour, lw=1.8)
            sl.plot.band(part.risk, label=f"SGD, {name}", color=colour, axes=right)
            right.plot(part.time, part.limit, "k", lw=1.2, label="limit")
            floor = [self.floor(step) for step in steps[name]]
            right.plot(fine, floor, ":", color=colour, lw=1.2)
        right.plot([], [], ":", color="0.4", lw=1.2, label="floor of the step of that time")
        left.set(ylabel="step $c(t)$", title="schedules")
        right.set(ylabel="excess risk", xlabel=TIME, title="what they leave")
        return sl.plot.legend_below(figure, 3)
